"""The program's version, the same as in pyproject.toml; importing it loads no other module."""

__version__ = "0.1.0"
