"""A workflow's own directory: what is known of its store and nodes, and its runs so far.

config        `tracehint.toml`
discover      find engine, nodes and store
state         `.tracehint/`: the runs
"""
