"""Lock files that are removed when nobody needs them any more.

Who holds one alone may remove it. Somebody may have opened it before, and gets
a lock that nobody else will ever ask for. So after locking, the name must still
lead to the file that was locked: else it is opened, or made, again. All who
lock these files do that (rec/join.c too).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True, shared: bool = False) -> Iterator[int]:
    """Hold the lock. Raises BlockingIOError when that is not possible and not to wait for."""
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    fd = _open_locked(path, how)
    while not _still_named(fd, path):
        os.close(fd)
        fd = _open_locked(path, how)
    try:
        yield fd
    finally:
        with contextlib.suppress(OSError):  # a recorder in the background has closed it
            os.close(fd)


def _open_locked(path: Path, how: int) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, how)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _still_named(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
