"""Open files below one root so that no symbolic link and no `..` can lead out of it.

Uses `openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS if the kernel has it (5.6), otherwise
opens one component at a time. Files are checked on the open descriptor: only regular files and
directories are accepted.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_SYS_OPENAT2 = 437  # the same number on every architecture
_RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x04, 0x08
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
MAX_PATH = 4096


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Root:
    """An open directory that bounds all file operations."""

    def __init__(self, fd: int, *, openat2: bool = True) -> None:
        self.fd = fd
        self._libc = ctypes.CDLL(None, use_errno=True) if openat2 else None

    def open(self, path: bytes) -> int:
        """Open `path` below the root for reading.

        Raises OSError: ELOOP for a symbolic link, EXDEV for a path that leads out, ENOENT,
        EINVAL for an object that is neither file nor directory.
        """
        fd = self._open(check_path(path))
        try:
            kind = os.fstat(fd).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise OSError(errno.EINVAL, "neither a regular file nor a directory")
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _open(self, path: bytes) -> int:
        if self._libc is not None:
            how = _OpenHow(_READ, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
            fd: int = self._libc.syscall(
                ctypes.c_long(_SYS_OPENAT2),
                ctypes.c_int(self.fd),
                ctypes.c_char_p(path or b"."),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if fd >= 0:
                return fd
            number = ctypes.get_errno()
            if number not in (errno.ENOSYS, errno.EPERM):
                raise OSError(number, os.strerror(number))
            if number == errno.ENOSYS:
                self._libc = None
        return self._walk(path)

    def _walk(self, path: bytes) -> int:
        """Open `path` without openat2: each component without following links."""
        with self.parent(path) as (folder, name):
            try:
                return os.open(name or b".", _READ | os.O_NOFOLLOW, dir_fd=folder)
            except OSError as error:
                raise _drop_name(error) from None

    @contextmanager
    def parent(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the open directory that holds `path`, and the last component."""
        *folders, name = check_path(path).split(b"/")
        current = os.dup(self.fd)
        try:
            for part in folders:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    child = os.open(part, flags, dir_fd=current)
                except OSError as error:
                    raise _drop_name(error) from None
                os.close(current)
                current = child
            yield current, name
        finally:
            os.close(current)


def _drop_name(error: OSError) -> OSError:
    """Drop the file name, as openat2 does: names of a trace are printed in one place only."""
    number = error.errno or errno.EIO
    return OSError(number, os.strerror(number))


def check_path(path: bytes) -> bytes:
    """Return `path` if it is relative and has no `..`; raises OSError otherwise."""
    if len(path) >= MAX_PATH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    if b"\0" in path or path.startswith(b"/") or b".." in path.split(b"/"):
        raise OSError(errno.EXDEV, "the path leads out of the directory")
    return path


@contextmanager
def open_root(path: str | os.PathLike[str], *, openat2: bool = True) -> Iterator[Root]:
    """Open a root, which may itself be a symbolic link: the user named it."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Root(fd, openat2=openat2)
    finally:
        os.close(fd)
