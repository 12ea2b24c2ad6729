"""One strategy a file; registry.py is their table."""
