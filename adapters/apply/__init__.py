"""Applying hints below a root: set, journal, take back, read back.

applier       set hints on open descriptors
journal       what was changed, written before each change
readback      read hints from the store and compare
root_files    open files below a root, never outside it
"""
