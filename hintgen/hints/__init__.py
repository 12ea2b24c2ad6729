"""Hint files: the neutral vocabulary, rules as records, path templates, reading and writing."""
