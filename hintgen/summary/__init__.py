"""Summary of a run: totals, task types, patterns, and placements with their simulated gain."""
