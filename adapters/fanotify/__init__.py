"""tracehint-fanotify: hints where the kernel asks before opens (C), and where it lies."""
