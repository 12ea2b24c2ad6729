"""Allocator settings that reuse freed memory, because fresh pages are expensive."""

from __future__ import annotations

import contextlib
import os

# glibc's <malloc.h>: parameter of mallopt -> value.
MALLOPT = {
    -4: 0,  # M_MMAP_MAX: no mapping of its own for a large array, unmapped when freed
    -1: (1 << 31) - 1,  # M_TRIM_THRESHOLD: free memory at the top of the heap is kept
}
ONE_ARENA = {-8: 1}  # M_ARENA_MAX: memory freed by one thread is reused by others
KEEP_MAX = 1 << 30  # resident bytes up to which free memory is kept


def give_back() -> None:
    """Return free memory to the kernel between the large steps of an analysis.

    Free memory is fragmented and the next step's arrays have other lengths, so a large run would
    use more. A process of up to `KEEP_MAX` resident bytes keeps its memory: there is enough of it,
    and allocating it again takes time. Without glibc nothing happens.
    """
    import ctypes
    from pathlib import Path

    with contextlib.suppress(AttributeError, OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        if pages * os.sysconf("SC_PAGESIZE") > KEEP_MAX:
            ctypes.CDLL(None).malloc_trim(0)


def keep_memory(*, sql: bool = False) -> None:
    """Make the allocator reuse freed memory; call before numpy is imported. `sql`: DuckDB will
    query the run; its threads would contend for a single arena.

    The kernel clears every page that it allocates. An analysis allocates and frees gigabytes of
    arrays, so that took more than a third of its time (docs/explanation/design.md). Requesting
    huge pages, as numpy does, clears more than is used. Without glibc nothing changes.
    """
    import ctypes

    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in (MALLOPT if sql else MALLOPT | ONE_ARENA).items():
            mallopt(parameter, value)
