"""Hints at creation: rules compiled for the preload library, and what it did with them.

resolution    which hint a new file gets, also one that is renamed at the end
rule_table    the rules as one table that each process maps; table_layout: its bytes
launch        switch hints on for a command
journal       read what the processes set
outcome       what was set, refused, removed or never matched
"""
