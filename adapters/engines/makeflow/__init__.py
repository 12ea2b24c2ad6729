"""Makeflow's own files: their text, graph and log, file lists, hints before commands, JX."""
