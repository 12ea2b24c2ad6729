"""Execution on Spark, for runs whose accesses do not fit on one machine."""
