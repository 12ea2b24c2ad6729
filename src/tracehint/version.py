"""The version of the program: the one that pyproject.toml states, without loading anything."""

__version__ = "0.1.0"
