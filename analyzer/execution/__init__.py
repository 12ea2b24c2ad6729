"""Who computes on the accesses of a run: this process, or Spark."""
