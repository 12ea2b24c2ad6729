"""The application layer: what several commands and the Python API share."""
