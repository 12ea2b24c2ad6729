"""What this collector cannot see."""

from __future__ import annotations

BLIND = ("io_uring", "aio", "mmap", "passed_descriptors", "long_paths", "environment")
