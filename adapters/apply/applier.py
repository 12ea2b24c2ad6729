"""Set hints on files and directories below a root, all on open descriptors."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tracehint.adapters.apply.journal import JournalEntry, LockedJournal
from tracehint.adapters.apply.readback import Outcome
from tracehint.adapters.apply.root_files import Root
from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Setting, Store, reports_value, translate_once

STAGING = b".tracehint.new"  # in the parent of the new directory; mode 0700
_NOREPLACE = 1

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_targets(
    root: Root, targets: Iterable[Target], journal: LockedJournal, outcome: Outcome
) -> None:
    """Create the missing directories and files of the targets, with a journal line each."""
    targets = list(targets)
    files = [target.path for target in targets if target.kind == "file"]
    for make, paths in ((make_folder, _find_missing_folders(root, targets)), (make_file, files)):
        for path in paths:
            try:
                inode = make(root, path)
            except FileExistsError:  # made by another process: undo must not remove it
                continue
            except OSError as error:
                outcome.fail(path, error)
                continue
            journal.add(JournalEntry(op="made", path=path, ino=inode))
            journal.flush()
            outcome.created += make is make_file


def _find_missing_folders(root: Root, targets: list[Target]) -> list[bytes]:
    """Return the directories to create for the targets, outermost first."""
    missing: dict[bytes, None] = {}
    for target in targets:
        parts = target.path.split(b"/")
        for depth in range(1, len(parts) + (target.kind == "directory")):
            path = b"/".join(parts[:depth])
            if path not in missing and not _exists(root, path):
                missing[path] = None
    return list(missing)


def _exists(root: Root, path: bytes) -> bool:
    try:
        os.close(root.open(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def make_file(root: Root, path: bytes) -> int:
    """Create an empty file and return its inode number. Raises OSError: EEXIST if it exists."""
    with root.parent(path) as (folder, name):
        fd = os.open(name, _NEW_FILE_FLAGS, 0o666, dir_fd=folder)
        try:
            _give_to_owner(fd, folder)
            return os.fstat(fd).st_ino
        finally:
            os.close(fd)


def make_folder(root: Root, path: bytes) -> int:
    """Create one directory and return its inode number. Raises OSError as `make_file` does."""
    with root.parent(path) as (folder, name):
        if os.geteuid() == 0:
            with _staging(folder) as staging:
                return _make_staged(folder, name, staging)
        os.mkdir(name, dir_fd=folder)
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino


def _make_staged(folder: int, name: bytes, staging: int) -> int:
    """Create the directory in the staging folder, change its owner, and rename it into place."""
    new = b"%d" % os.getpid()
    os.mkdir(new, dir_fd=staging)
    fd = os.open(new, _FOLDER_FLAGS, dir_fd=staging)
    try:
        _give_to_owner(fd, folder)
        _rename_new(staging, new, folder, name)
        return os.fstat(fd).st_ino
    except OSError:
        os.rmdir(new, dir_fd=staging)
        raise
    finally:
        os.close(fd)


@contextmanager
def _staging(folder: int) -> Iterator[int]:
    """Yield a directory in `folder` that only root may enter: nobody else can rename in it."""
    with suppress(FileExistsError):  # left by a killed call, or planted: see below
        os.mkdir(STAGING, 0o700, dir_fd=folder)
    fd = os.open(STAGING, _FOLDER_FLAGS, dir_fd=folder)
    try:
        info = os.fstat(fd)
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o77:
            reason = f"{os.fsdecode(STAGING)} beside it belongs to another user: remove it"
            raise OSError(errno.EPERM, reason)
        yield fd
    finally:
        os.close(fd)
        with suppress(OSError):
            os.rmdir(STAGING, dir_fd=folder)


def _rename_new(source: int, old: bytes, target: int, new: bytes) -> None:
    """Rename a directory without replacing anything. Raises OSError: EEXIST if `new` exists."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(source, old, target, new, _NOREPLACE) == 0:
        return
    number = ctypes.get_errno()
    if number not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(number, os.strerror(number))
    # No RENAME_NOREPLACE (NFS): a race can at most replace an empty directory.
    if _lexists(target, new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)


def _lexists(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _give_to_owner(fd: int, folder: int) -> None:
    """As root, give the new file or directory to the owner of its parent directory."""
    if os.geteuid() == 0:
        info = os.fstat(folder)
        os.fchown(fd, info.st_uid, info.st_gid)


BATCH = 256  # open descriptors at a time; the usual limit is 1024

Wanted = tuple[Target, list[Setting]]


@dataclass
class _Opened:
    target: Target
    settings: list[Setting]
    fd: int
    to_do: list[Setting] = field(default_factory=list)


def check_keys(store: Store, targets: Iterable[Target], *, allow_trusted: bool) -> None:
    """Raise UsageError or InputError if the key of any setting must not be written."""
    translated = translate_once(store)
    keys = {setting.key for target in targets for setting in translated(target)[0]}
    for key in sorted(keys):
        store.check_key(key, allow_trusted=allow_trusted)


def apply(
    root: Root, store: Store, targets: list[Target], journal: LockedJournal | None
) -> Outcome:
    """Set the hints; `journal` None: a dry run. Directories must precede files in `targets`."""
    outcome = Outcome()
    for start in range(0, len(targets), BATCH):
        batch = _open_or_create(root, store, targets[start : start + BATCH], journal, outcome)
        try:
            for item in batch:
                _compare(store, item, journal, outcome)
            if journal is not None:
                journal.sync()
                for item in batch:
                    _write_changes(store, item, outcome)
        finally:
            for item in batch:
                os.close(item.fd)
    return outcome


def _open_or_create(
    root: Root, store: Store, targets: list[Target], journal: LockedJournal | None, outcome: Outcome
) -> list[_Opened]:
    """Open the existing targets; create and open missing ones that have `create`."""
    wanted: list[Wanted] = []
    for target in targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        if settings:
            wanted.append((target, settings))
    batch, missing = _open_all(root, wanted, outcome)
    to_create = [(target, settings) for target, settings in missing if target.create]
    outcome.absent += len(missing) - len(to_create)
    if not to_create:
        return batch
    if journal is None:
        _report_creations(to_create, outcome)
        return batch
    make_targets(root, [target for target, _ in to_create], journal, outcome)
    made, _ = _open_all(root, to_create, outcome)  # failures are in `outcome` already
    return batch + made


def _open_all(
    root: Root, wanted: list[Wanted], outcome: Outcome
) -> tuple[list[_Opened], list[Wanted]]:
    """Return the opened targets and those that do not exist."""
    batch: list[_Opened] = []
    missing: list[Wanted] = []
    for target, settings in wanted:
        try:
            fd = outcome.open(root, target)
        except FileNotFoundError:
            missing.append((target, settings))
            continue
        if fd is not None:
            batch.append(_Opened(target, settings, fd))
    return batch, missing


def _report_creations(to_create: list[Wanted], outcome: Outcome) -> None:
    for target, settings in to_create:
        outcome.created += 1
        outcome.changed += len(settings)
        outcome.lines.append((target.path, "create"))
        outcome.lines += [(target.path, f"set {s.key} ({s.hint})") for s in settings]


def _compare(store: Store, item: _Opened, journal: LockedJournal | None, outcome: Outcome) -> None:
    for setting in item.settings:
        try:
            old = store.read(item.fd, setting.key)
        except OSError as error:
            outcome.fail(item.target.path, error, f"cannot read {setting.key}")
            continue
        if reports_value(store, setting.key, setting.value, old):
            outcome.unchanged += 1
            continue
        item.to_do.append(setting)
        if journal is None:
            outcome.changed += 1
            outcome.lines.append((item.target.path, f"set {setting.key} ({setting.hint})"))
        else:
            journal.add(
                JournalEntry(
                    op="set", path=item.target.path, key=setting.key, old=old, new=setting.value
                )
            )


def _write_changes(store: Store, item: _Opened, outcome: Outcome) -> None:
    for setting in item.to_do:
        try:
            store.write(item.fd, setting.key, setting.value)
            outcome.changed += 1
        except OSError as error:
            outcome.fail(item.target.path, error, f"cannot set {setting.key}")
