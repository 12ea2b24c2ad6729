"""tracehint: find the storage hints of a workflow by watching one run of it."""

__version__ = "0.1.0"
