"""Hints at creation: rules compiled for the preload library, and its results.

resolution    hints of a new file, also of one that is renamed at the end
rule_table    the rules as one table that each process maps; table_layout: its bytes
launch        switch hints on for a command
journal       settings that the processes made
outcome       what was set, refused, removed or never matched
"""
