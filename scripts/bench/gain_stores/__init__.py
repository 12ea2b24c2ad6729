"""What hints bring on stores that are reached by commands, in bytes: Confuga, HDFS, Work Queue."""
