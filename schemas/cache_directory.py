"""Directories below the user's cache directory, for results that are computed once and reused.

Only files that no other user could have written are read, and every file is opened through a
descriptor of the checked directory.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_PART = ".part"
_ABANDONED_S = 3600.0  # age at which an incomplete file counts as abandoned
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class CacheDirectory:
    """One cache directory; its files have the suffix `ending`."""

    name: str
    ending: str

    def folder(self) -> Path:
        """Return its path. Raises OSError if the user's cache directory is not known."""
        given = os.environ.get("XDG_CACHE_HOME", "")
        home = os.environ.get("HOME", "")
        if given[:1] == "/":
            return Path(given) / "tracehint" / self.name
        if home[:1] != "/":
            raise OSError(errno.ENOENT, "no home directory")
        return Path(home) / ".cache" / "tracehint" / self.name

    @contextmanager
    def opened(self, *, make: bool) -> Iterator[int]:
        """Yield a descriptor of it. Raises OSError: it is missing or may be another user's."""
        where = self.folder()
        base = where.parent.parent
        if make:
            base.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_uid != os.geteuid():  # sudo: root writes nothing in a user's home
                raise OSError(errno.EPERM, "belongs to another user")
            for part in (where.parent.name, where.name):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=fd)
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _FLAGS, dir_fd=fd)
                os.close(fd)
                fd = inner
                _check_own(fd)
            yield fd
        finally:
            os.close(fd)

    def get(self, key: str) -> bytes | None:
        """Return the data that this user stored under this key, or None."""
        try:
            with self.opened(make=False) as inside:
                fd = os.open(key + self.ending, os.O_RDONLY | _FLAGS, dir_fd=inside)
                with os.fdopen(fd, "rb") as stream:
                    _check_file(fd)
                    with suppress(OSError):
                        os.utime(fd)  # least recently used files are removed first
                    return stream.read()
        except OSError:
            return None

    def put(self, key: str, write: Callable[[BinaryIO], None], most: int) -> None:
        """Store the output of `write` under this key atomically; then remove files until all
        together have at most `most` bytes. Output that is too large or fails is not stored."""
        with suppress(OSError), self.opened(make=True) as inside:
            part = f"{key}.{os.urandom(8).hex()}{_PART}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
            try:
                fd = os.open(part, flags, 0o600, dir_fd=inside)
                with os.fdopen(fd, "wb") as stream:
                    write(stream)
                    size = stream.tell()
                if size <= most:
                    os.rename(part, key + self.ending, src_dir_fd=inside, dst_dir_fd=inside)
            finally:
                with suppress(OSError):
                    os.unlink(part, dir_fd=inside)
            self._make_room(inside, most)

    def _make_room(self, inside: int, most: int) -> None:
        """Remove least recently used files above `most` bytes, and leftovers of killed commands."""
        kept = []
        for name in os.listdir(inside):
            with suppress(OSError):
                info = os.stat(name, dir_fd=inside, follow_symlinks=False)
                if name.endswith(self.ending):
                    kept.append((info.st_mtime_ns, name, info.st_size))
                elif name.endswith(_PART) and info.st_mtime < time.time() - _ABANDONED_S:
                    os.unlink(name, dir_fd=inside)
        total = 0
        for _, name, size in sorted(kept, reverse=True):
            total += size
            if total > most:
                with suppress(OSError):
                    os.unlink(name, dir_fd=inside)


def _check_own(fd: int) -> None:
    """Raise OSError if it belongs to another user, or others may write to it."""
    info = os.fstat(fd)
    if info.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "belongs to another user")
    if info.st_mode & 0o022:
        raise OSError(errno.EPERM, "others may write to it")


def _check_file(fd: int) -> None:
    _check_own(fd)
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        raise OSError(errno.EPERM, "is no regular file with one name")
