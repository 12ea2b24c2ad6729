"""Make files and directories below a root, each noted in the manifest.

What root makes in somebody's directory is given to the owner of that directory, who may exchange
names there at any moment. So a file is given away by the descriptor that made it, and a directory
while it lies where nobody else can reach it: it is made in a folder of root's own (STAGING), given
away there, and then moved to its place in one step.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.beneath import Root
from tracehint.adapters.stores.journal import JournalEntry, LockedJournal
from tracehint.adapters.stores.outcome import Outcome

STAGING = b".tracehint.new"  # beside the directory that is made; always of mode 0700
_NOREPLACE = 1

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_targets(
    root: Root, targets: Iterable[Target], journal: LockedJournal, outcome: Outcome
) -> None:
    """Make what the targets need, after the manifest says so."""
    targets = list(targets)
    files = [target.path for target in targets if target.kind == "file"]
    folders = _missing_folders(root, targets)
    for path in folders:
        journal.add(JournalEntry(op="mkdir", path=path))
    for path in files:
        journal.add(JournalEntry(op="create", path=path))
    journal.sync()
    for make, paths in ((make_folder, folders), (make_file, files)):
        for path in paths:
            try:
                inode = make(root, path)
            except FileExistsError:  # somebody else made it meanwhile: not ours
                continue
            except OSError as error:
                outcome.fail(path, error)
                continue
            journal.add(JournalEntry(op="created", path=path, ino=inode))
            outcome.created += make is make_file


def _missing_folders(root: Root, targets: list[Target]) -> list[bytes]:
    """Directories that must be made for the targets, outermost first."""
    found: dict[bytes, None] = {}
    for target in targets:
        parts = target.path.split(b"/")
        for depth in range(1, len(parts) + (target.kind == "directory")):
            path = b"/".join(parts[:depth])
            if path not in found and not _is_there(root, path):
                found[path] = None
    return list(found)


def _is_there(root: Root, path: bytes) -> bool:
    try:
        os.close(root.open(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def make_file(root: Root, path: bytes) -> int:
    """Make an empty file and return its inode number. Raises OSError: EEXIST if there is one."""
    with root.parent(path) as (folder, name):
        fd = os.open(name, _FILE, 0o666, dir_fd=folder)
        try:
            _give_away(fd, folder)
            return os.fstat(fd).st_ino
        finally:
            os.close(fd)


def make_folder(root: Root, path: bytes) -> int:
    """Make one directory and return its inode number. Raises OSError as `make_file` does."""
    with root.parent(path) as (folder, name):
        if os.geteuid() == 0:
            with _staging(folder) as staging:
                return _make_staged(folder, name, staging)
        os.mkdir(name, dir_fd=folder)
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino


def _make_staged(folder: int, name: bytes, staging: int) -> int:
    """Make the directory in the staging folder, give it away, and move it to its place."""
    new = b"%d" % os.getpid()
    os.mkdir(new, dir_fd=staging)
    fd = os.open(new, _FOLDER, dir_fd=staging)
    try:
        _give_away(fd, folder)
        _move(staging, new, folder, name)
        return os.fstat(fd).st_ino
    except OSError:
        os.rmdir(new, dir_fd=staging)
        raise
    finally:
        os.close(fd)


@contextmanager
def _staging(folder: int) -> Iterator[int]:
    """A folder in `folder` that only root may enter, whatever its owner does with names."""
    with suppress(FileExistsError):  # of an earlier call that was killed, or planted: see below
        os.mkdir(STAGING, 0o700, dir_fd=folder)
    fd = os.open(STAGING, _FOLDER, dir_fd=folder)
    try:
        info = os.fstat(fd)
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o77:
            said = f"{os.fsdecode(STAGING)} beside it belongs to another user: remove it"
            raise OSError(errno.EPERM, said)
        yield fd
    finally:
        os.close(fd)
        with suppress(OSError):
            os.rmdir(STAGING, dir_fd=folder)


def _move(source: int, old: bytes, target: int, new: bytes) -> None:
    """Rename a directory over nothing. Raises OSError: EEXIST where something is."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(source, old, target, new, _NOREPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, os.strerror(number))
    # A file system without it (NFS): a directory can replace an empty directory at most.
    if _lexists(target, new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)


def _lexists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _give_away(fd: int, folder: int) -> None:
    """What root makes belongs to the owner of the directory that it lies in."""
    if os.geteuid() == 0:
        info = os.fstat(folder)
        os.fchown(fd, info.st_uid, info.st_gid)
