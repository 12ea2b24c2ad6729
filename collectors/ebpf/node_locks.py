"""Lock files that are removed when nobody needs them any more.

Who holds one alone may remove it. Somebody may have opened it before, and gets
a lock that nobody else will ever ask for. So after locking, the name must still
lead to the file that was locked: else it is opened, or made, again. All who
lock these files do that (rec/join.c too).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tracehint.schemas.plain import open_plain

PATIENCE_S = 60.0  # a recorder that starts holds its lock for a second or a few
_LOOK_S = 0.02


@contextlib.contextmanager
def locked(
    path: Path, *, wait: bool = True, shared: bool = False, patience: float = PATIENCE_S
) -> Iterator[int]:
    """Hold the lock. Raises BlockingIOError when that is not possible and not to wait for.

    Who waits does so for `patience` seconds at most. Other OSErrors: the file cannot be made, or
    it is not a plain file of this user.
    """
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    end = time.monotonic() + (patience if wait else 0)
    fd = _open_locked(path, how, end)
    while not _still_named(fd, path):
        os.close(fd)
        fd = _open_locked(path, how, end)
    try:
        yield fd
    finally:
        with contextlib.suppress(OSError):  # a recorder in the background has closed it
            os.close(fd)


def _open_locked(path: Path, how: int, end: float) -> int:
    fd = open_plain(path, os.O_RDWR | os.O_CREAT)
    try:
        while True:
            try:
                fcntl.flock(fd, how | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise BlockingIOError(errno.EAGAIN, "another process holds it") from None
                time.sleep(_LOOK_S)
    except BaseException:
        os.close(fd)
        raise


def _still_named(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False
