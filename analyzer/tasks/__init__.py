"""Task identity: which processes of a run make up which task (docs/reference/tasks.md)."""
