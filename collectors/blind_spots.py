"""Codes of what the strace and bpftrace collectors cannot record."""

from __future__ import annotations

STRACE_BLIND = ("io_uring", "mmap", "setuid_programs")
STRACE_LIGHT_BLIND = ("bytes", "io_uring", "mmap", "setuid_programs")


BPFTRACE_BLIND = ("io_uring", "aio", "mmap", "passed_descriptors", "long_paths", "environment")
