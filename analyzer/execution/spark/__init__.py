"""The accesses of runs that do not fit one machine, computed by Spark."""
