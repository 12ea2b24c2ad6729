"""Engines whose workflow is the user's own Python program: Dask, Parsl, TaskVine."""
