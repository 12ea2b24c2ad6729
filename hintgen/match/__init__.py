"""Which rule of a hint file fires for a path, with which values, and why."""
