"""Text input and output: escaping, units, masks of names, files written by users."""
