"""What this collector cannot see, and where its library lies."""

from __future__ import annotations

from pathlib import Path

LIBRARY = Path(__file__).parent / "bin" / "libtracehint.so"
BLIND = ("io_uring", "mmap", "setuid_programs")
# added where the run had such programs
BLIND_UNENTERED = "static_binaries"
