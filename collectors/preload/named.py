"""Whether the library is there, and can be named to the loader: to record, and to set hints."""

from __future__ import annotations

from tracehint.collectors.preload.blind import LIBRARY


def can_be_named() -> tuple[str, str]:
    """Why it can be preloaded or not, and in the second case what mends it."""
    if not LIBRARY.is_file():
        return (
            f"the preload library is not built ({LIBRARY.name} is missing)",
            "Run `make tracer` in the source tree (x86-64 Linux, a C compiler), or install a wheel "
            "that carries it.",
        )
    if any(mark in str(LIBRARY) for mark in " :"):
        return (
            f"the loader cannot be told a path with a space or a colon: {LIBRARY}",
            "Install tracehint in another directory.",
        )
    return "the preload library is there", ""
