"""Opening a file where others may put things: nothing is waited for, no link is followed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_plain(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600, *, own: bool = True) -> int:
    """A descriptor of a regular file; with `own`, of one of the caller without a second name.

    Raises OSError: ELOOP or ENXIO for links and pipes, EPERM for what else was put there.
    """
    more = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(path, flags | more, mode)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EPERM, "is no regular file")
        if own and info.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "belongs to another user")
        if own and info.st_nlink > 1:
            raise OSError(errno.EPERM, "has several hard links")
    except BaseException:
        os.close(fd)
        raise
    return fd
