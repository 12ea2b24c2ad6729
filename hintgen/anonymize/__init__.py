"""A bundle without the names of its owner: same structure, other words."""
