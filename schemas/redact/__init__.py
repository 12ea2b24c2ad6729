"""Redaction of commands. rules.py: the tables; values.py: names and values; text.py: program
text; commands.py: words and shell text; tables.py: the tables of a bundle."""
