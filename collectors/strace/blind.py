"""What this collector cannot see."""

from __future__ import annotations

BLIND = ("io_uring", "mmap", "setuid_programs")
BLIND_LIGHT = ("bytes", "io_uring", "mmap", "setuid_programs")
