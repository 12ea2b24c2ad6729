"""Metadata over several sites, measured on real registries beside `predict --metadata`."""
