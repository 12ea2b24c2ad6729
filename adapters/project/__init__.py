"""A workflow's directory: its store and nodes, and its runs so far.

config        `tracehint.toml`
discover      discovery of engine, nodes and store
state         `.tracehint/`: the runs
"""
