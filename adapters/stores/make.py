"""Make files and directories below a root, each noted in the manifest."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.beneath import Root
from tracehint.adapters.stores.journal import Entry, Journal
from tracehint.adapters.stores.outcome import Outcome


def make_targets(root: Root, targets: Iterable[Target], journal: Journal, outcome: Outcome) -> None:
    """Make what the targets need, after the manifest says so."""
    targets = list(targets)
    files = [target.path for target in targets if target.kind == "file"]
    folders = _missing_folders(root, targets)
    for path in folders:
        journal.add(Entry(op="mkdir", path=path))
    for path in files:
        journal.add(Entry(op="create", path=path))
    journal.sync()
    for path in folders:
        try:
            journal.add(Entry(op="created", path=path, ino=_make_folder(root, path)))
        except FileExistsError:  # somebody else made it meanwhile: not ours
            continue
        except OSError as error:
            outcome.fail(path, error)
    for path in files:
        _make_file(root, path, journal, outcome)


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


def _make_file(root: Root, path: bytes, journal: Journal, outcome: Outcome) -> None:
    """Make an empty file; one that somebody else made meanwhile is not counted as ours."""
    try:
        fd = root.open(path, create=True)
    except FileExistsError:
        return
    except OSError as error:
        outcome.fail(path, error)
        return
    try:
        _keep_owner(root, fd, path)
        journal.add(Entry(op="created", path=path, ino=os.fstat(fd).st_ino))
        outcome.created += 1
    finally:
        os.close(fd)


def _make_folder(root: Root, path: bytes) -> int:
    """Make one directory and return its inode number."""
    with root.parent(path) as (folder, name):
        os.mkdir(name, dir_fd=folder)
    fd = root.open(path)
    try:
        _keep_owner(root, fd, path)
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def _keep_owner(root: Root, fd: int, path: bytes) -> None:
    """What root makes belongs to the owner of the directory that it lies in."""
    if os.geteuid() == 0:
        with root.parent(path) as (folder, _):
            info = os.fstat(folder)
        os.fchown(fd, info.st_uid, info.st_gid)
