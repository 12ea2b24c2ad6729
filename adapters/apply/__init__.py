"""Apply hints below a root directory: set, journal, undo, read back.

applier       set hints on open descriptors
journal       record of the changes, written before each change
readback      read hints from the store and compare
root_files    open files below a root, never outside it
"""
