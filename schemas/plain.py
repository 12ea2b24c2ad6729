"""Files where others may put things: nothing is waited for, no link is followed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def is_own_folder(path: Path) -> bool:
    """Whether there is a directory of this user, and no link to one."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def is_stream(path: Path) -> bool:
    """Whether a device, pipe or socket is there: it is written to, never replaced by a file.

    Not where somebody else put it there, or a link to it.
    """
    try:
        mode, owner = path.stat().st_mode, path.lstat().st_uid
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and owner in (0, os.geteuid())


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[int]:
    """A descriptor of a new file that takes the place of `path` at the end, links included.

    Whole or not at all; a stream is written to. Raises OSError.
    """
    if is_stream(path):
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
        return
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    with suppress(FileNotFoundError):  # of a call that was killed, or planted
        temporary.unlink()
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        yield fd
        temporary.replace(path)
    finally:
        os.close(fd)
        with suppress(OSError):
            temporary.unlink()
