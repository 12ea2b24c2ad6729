"""Text in and out: escaping, units, masks of names, files that people wrote."""
