"""Two recorded runs, the second with hints: what was in force, and what it brought."""
