"""A workflow's own directory: what is known of its store and nodes, and its runs so far."""
