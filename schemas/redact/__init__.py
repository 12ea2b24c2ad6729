"""Secrets out of commands: names.py and values.py say what a secret is called and looks like,
shapes.py and options.py are the tables, shelltext.py reads shell text, commands.py puts them
together, tables.py and manifest text pass through it whatever enters a bundle."""
