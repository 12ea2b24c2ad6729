"""Take back what the manifest says that `apply` did, newest change first."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from tracehint.adapters.stores.base import Store, says
from tracehint.adapters.stores.beneath import Root
from tracehint.adapters.stores.journal import JournalEntry
from tracehint.errors import InputError


@dataclass
class Undone:
    """What was taken back, and what was left because somebody changed it since."""

    restored: int = 0
    removed: int = 0
    already: int = 0
    kept: list[tuple[bytes, str]] = field(default_factory=list)
    lines: list[tuple[bytes, str]] = field(default_factory=list)


def sessions(entries: list[JournalEntry]) -> list[tuple[JournalEntry, list[JournalEntry]]]:
    """The manifest's sessions (store and prefix) with their changes."""
    out: list[tuple[JournalEntry, list[JournalEntry]]] = []
    for entry in entries:
        if entry.op == "session":
            out.append((entry, []))
        elif out:
            out[-1][1].append(entry)
        else:
            raise InputError("the manifest does not begin with a session", "Move it away.")
    return out


def undo(
    root: Root,
    entries: list[JournalEntry],
    store_of: Callable[[JournalEntry], Store | None],
    *,
    allow_trusted: bool = False,
    dry_run: bool = False,
) -> Undone:
    """Undo all sessions whose store `store_of` gives; the others stay."""
    done = Undone()
    for session, changes in reversed(sessions(entries)):
        store = store_of(session)
        if store is None:
            continue
        inodes = {c.path: c.ino for c in changes if c.op == "created"}
        for change in reversed(changes):
            try:
                if change.op == "set":
                    store.check_key(change.key, allow_trusted=allow_trusted)
                    _unset(root, store, change, done, dry_run)
                elif change.op in ("create", "mkdir"):
                    _unmake(root, change, inodes.get(change.path, 0), done, dry_run)
            except FileNotFoundError:
                done.already += 1
            except OSError as error:
                done.kept.append((change.path, error.strerror or "error"))
    return done


def _unset(root: Root, store: Store, change: JournalEntry, done: Undone, dry_run: bool) -> None:
    fd = root.open(change.path)
    try:
        now = store.read(fd, change.key)
        if now == change.old:
            done.already += 1
        elif not says(store, change.key, change.new, now):
            done.kept.append((change.path, f"{change.key} was changed since"))
        elif dry_run:
            verb = "remove" if change.old is None else "restore"
            done.lines.append((change.path, f"{verb} {change.key}"))
        elif change.old is None:
            store.remove(fd, change.key)
            done.restored += 1
        else:
            store.write(fd, change.key, change.old)
            done.restored += 1
    finally:
        os.close(fd)


def _unmake(root: Root, change: JournalEntry, ino: int, done: Undone, dry_run: bool) -> None:
    """Remove a file that we made and nobody wrote to, or a directory that is still empty."""
    with root.parent(change.path) as (folder, name):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if info.st_ino != ino:
            done.kept.append((change.path, "it is not the one that was made"))
        elif change.op == "create" and info.st_size:
            done.kept.append((change.path, "it has been written"))
        elif dry_run:
            done.lines.append((change.path, "remove"))
        elif change.op == "create":
            os.unlink(name, dir_fd=folder)
            done.removed += 1
        else:
            os.rmdir(name, dir_fd=folder)
            done.removed += 1
