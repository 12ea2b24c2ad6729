"""Open files where other users may write: without blocking, without following links."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PosixPath


def open_plain(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600, *, own: bool = True) -> int:
    """Open a regular file; with `own`, one that belongs to the caller and has only one name.

    Raises OSError: ELOOP or ENXIO for links and pipes, EPERM for any other file.
    """
    more = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(path, flags | more, mode)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EPERM, "is not a regular file")
        if own and info.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "belongs to another user")
        if own and info.st_nlink > 1:
            raise OSError(errno.EPERM, "has several hard links")
    except BaseException:
        os.close(fd)
        raise
    return fd


class ConfiguredPath(PosixPath):
    """A file named in a configuration, not typed by the user: read with `open_trusted`."""


class ConfiguredName(str):
    """The same for an option whose value is a name or a file (--store, --cluster)."""


def open_trusted(path: Path) -> int:
    """Open a configuration file: regular, owned by the caller or root, writable by no other user.

    No link is followed. Raises OSError with the reason.
    """
    try:
        fd = open_plain(path, own=False)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "is a symbolic link") from None
        raise
    info = os.fstat(fd)
    why = ""
    if info.st_uid not in (0, os.geteuid()):
        why = "belongs to another user"
    elif info.st_mode & stat.S_IWOTH or (info.st_mode & stat.S_IWGRP and not _is_private(fd, info)):
        why = "other users may write to it (chmod go-w)"
    if why:
        os.close(fd)
        raise OSError(errno.EPERM, why)
    return fd


def _is_private(fd: int, info: os.stat_result) -> bool:
    """Whether the file's group is its owner's private group (as with umask 002), without an ACL."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(info.st_uid), grp.getgrgid(info.st_gid)
        acl = "system.posix_acl_access" in os.listxattr(fd)
    except (KeyError, OSError):
        return False
    private = (owner.pw_gid, owner.pw_name) == (group.gr_gid, group.gr_name)
    return private and set(group.gr_mem) <= {owner.pw_name} and not acl


def distrust(path: Path) -> str:
    """Return why a file named in a configuration is rejected; empty: it is usable, or missing."""
    try:
        os.close(open_trusted(path))
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or "cannot be opened"
    return ""


def named_path(name: str) -> Path:
    """Return a name as a path; a ConfiguredName becomes a ConfiguredPath."""
    return ConfiguredPath(name) if isinstance(name, ConfiguredName) else Path(name)


def read_named(path: str | Path, most: int) -> bytes:
    """Read at most `most` bytes of a file; a configured one must be trusted. Raises OSError."""
    configured = isinstance(path, ConfiguredPath | ConfiguredName)
    fd = open_trusted(Path(path)) if configured else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as stream:
        return stream.read(most)


class HeldFolder(PosixPath):
    """A directory of the caller that is held open, even if its name is replaced meanwhile."""

    fd = -1

    @property
    def inside(self) -> Path:
        """Path of the open directory, for this process and its children while this object exists;
        without /proc its name."""
        held = Path(f"/proc/{os.getpid()}/fd/{self.fd}")
        return held if self.fd >= 0 and held.is_dir() else Path(self)


def hold(path: Path, name: Path | None = None) -> HeldFolder:
    """Open the directory at `path`; it must belong to the caller and be no link. Raises OSError.

    name: for messages, if `path` goes through a held directory.
    """
    held = HeldFolder(name or path)
    if isinstance(path, HeldFolder) and path.fd >= 0:
        fd = os.dup(path.fd)
    else:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    held.fd = fd
    weakref.finalize(held, os.close, fd)
    if os.fstat(fd).st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user")
    return held


def sibling_path(path: Path, name: str) -> Path:
    """Return the path of a sibling of the directory, in its real parent directory."""
    return inside(path) / ".." / name if inside(path) != path else path.with_name(name)


def inside(path: Path) -> Path:
    """Return the path for entries of the directory: through the descriptor of a held one."""
    return path.inside if isinstance(path, HeldFolder) else path


def is_own_folder(path: Path) -> bool:
    """Whether the path is a directory of this user, and no link."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def is_stream(path: Path) -> bool:
    """Whether the path is a device, pipe or socket, which is written to and never replaced.

    False if it, or a link at the path, belongs to a user other than the caller and root.
    """
    try:
        mode, owner = path.stat().st_mode, path.lstat().st_uid
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and owner in (0, os.geteuid())


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[int]:
    """Yield a descriptor of a new file that replaces `path`, also a link, at the end.

    The replacement is atomic; a stream is written to instead. Raises OSError.
    """
    if is_stream(path):
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)
        return
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    with suppress(FileNotFoundError):  # left by a killed call, or planted
        temporary.unlink()
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        yield fd
        temporary.replace(path)
    finally:
        os.close(fd)
        with suppress(OSError):
            temporary.unlink()


def try_sharing(fd: int) -> None:
    """Map the first page of a file as its writers will. Raises OSError if that fails: a store
    that is mounted without a page cache supports no shared mapping (ENODEV)."""
    mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE).close()
