"""Files that several processes write to through their memory."""

from __future__ import annotations

import mmap


def try_sharing(fd: int) -> None:
    """Map the first page of a file as its writers will. Raises OSError where that cannot be: a
    store that is mounted without a page cache takes no shared mapping (ENODEV)."""
    mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE).close()
