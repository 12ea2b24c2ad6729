"""Pictures of a run: the file/task graph and the report page."""
