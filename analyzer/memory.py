"""Memory that this process was given once, it keeps: fresh memory is what an analysis pays for."""

from __future__ import annotations

import contextlib
import os

# glibc's <malloc.h>: parameter of mallopt -> value.
MALLOPT = {
    -4: 0,  # M_MMAP_MAX: no block of its own for a large array, which goes back when it is freed
    -1: (1 << 31) - 1,  # M_TRIM_THRESHOLD: what is free at the end stays
}
ONE_ARENA = {-8: 1}  # M_ARENA_MAX: what one thread freed another one may use
SMALL = 1 << 30  # bytes of this process in memory


def give_back() -> None:
    """Give the kernel what is free now, between the large steps of an analysis.

    Kept memory is in pieces between what is in use, and the next step's arrays are of other
    lengths, so a large run would take more. A run that takes less than `SMALL`
    keeps it: there is room, and to be given it again takes time. Without glibc nothing happens.
    """
    import ctypes
    from pathlib import Path

    with contextlib.suppress(AttributeError, OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        if pages * os.sysconf("SC_PAGESIZE") > SMALL:
            ctypes.CDLL(None).malloc_trim(0)


def keep_memory(*, sql: bool = False) -> None:
    """Ask the allocator to use freed memory again; before numpy is imported. `sql`: DuckDB is
    asked about the run; its threads would wait for each other at one arena.

    The kernel clears every page that it hands out. An analysis makes and drops some gigabytes of
    arrays, so that was more than a third of its time (docs/explanation/design.md). Asking for
    huge pages, as numpy does, clears more than is used. Without glibc nothing changes.
    """
    import ctypes

    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    with contextlib.suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in (MALLOPT if sql else MALLOPT | ONE_ARENA).items():
            mallopt(parameter, value)
