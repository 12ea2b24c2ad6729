"""Stores: the hints that each supports, and how they are set and read back.

registry  the stores by name: tables (TOML) and adapters; adding a table is a file
base      the interface of an adapter
script    the script that sets attributes; call_script: the one for stores with tools
places    the node, pool or class of a hint at a site
survival  which hints a run would lose
"""
