"""Stores: what each takes as hints, and how they are set and read back.

registry  the stores by name: tables (TOML) and adapters; adding a table is a file
base      what an adapter offers
script    the setfattr script; call_script: that of stores with tools
places    which node, pool or class a hint means at a site
survival  which hints a run would lose
"""
