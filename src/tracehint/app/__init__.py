"""The application layer: code that several commands and the Python API share."""
