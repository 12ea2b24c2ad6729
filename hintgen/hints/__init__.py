"""Hint files: store-independent vocabulary, rule records, path templates, reading and writing."""
