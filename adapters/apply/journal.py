"""The journal of changes below a root, for undo.

`DIR/.tracehint/journal`: one line per change, six fields separated by tabs: op, path in
hexadecimal, attribute, old value (`-`: none) and new value as 0x and hexadecimal, inode. A session
line (store as path, prefix as old value) precedes its changes; a `set` line precedes its change; a
`made` line follows the creation of its file or directory. Scripts of `emit` write the same format
(adapters/tag/journal.c), and either side can undo the changes of the other. Another user may have
planted the file: it is opened without following links, must belong to the caller, and every line
is checked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tracehint.adapters.apply.root_files import Root
from tracehint.adapters.stores.base import Store, reports_value
from tracehint.errors import InputError

FOLDER, FILE = b".tracehint", b"journal"
MAX_BYTES = 1 << 30
MAX_LINE = 512 << 10  # two attribute values of at most 64 KiB and a path, in hexadecimal digits
_OPS = frozenset({"session", "made", "set"})


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """One change, or a session: the store and prefix of the changes that follow."""

    op: str  # session, made, set
    path: bytes = b""
    key: str = ""
    old: bytes | None = None
    new: bytes = b""
    ino: int = 0


def session_entry(store: str, prefix: str | None) -> JournalEntry:
    """Return the session line that precedes the changes of one store."""
    old = None if prefix is None else os.fsencode(prefix)
    return JournalEntry(op="session", path=os.fsencode(store), old=old)


def to_line(entry: JournalEntry) -> str:
    """Return the entry as one line of ASCII; the path may hold any bytes."""
    old = "-" if entry.old is None else f"0x{entry.old.hex()}"
    fields = (entry.op, entry.path.hex(), entry.key, old, f"0x{entry.new.hex()}", str(entry.ino))
    return "\t".join(fields) + "\n"


def from_line(line: str) -> JournalEntry:
    """Parse a line of `to_line`; raises InputError."""
    try:
        op, path, key, old, new, ino = line.split("\t")
        if op not in _OPS or len(line) > MAX_LINE:
            raise ValueError
        return JournalEntry(
            op=op,
            path=bytes.fromhex(path),
            key=key,
            old=None if old == "-" else _parse_value(old),
            new=_parse_value(new),
            ino=int(ino),
        )
    except ValueError as error:
        raise InputError(
            "the journal .tracehint/journal has a line that tracehint did not write",
            "Move the file away; its changes can then not be undone.",
        ) from error


def _parse_value(text: str) -> bytes:
    if not text.startswith("0x"):
        raise ValueError
    return bytes.fromhex(text[2:])


class LockedJournal:
    """The open and locked journal file."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._pending: list[str] = []

    def add(self, entry: JournalEntry) -> None:
        """Queue a line for the next `flush` or `sync`."""
        self._pending.append(to_line(entry))

    def flush(self) -> None:
        """Write the queued lines."""
        data = "".join(self._pending).encode()
        self._pending.clear()
        while data:
            data = data[os.write(self.fd, data) :]

    def sync(self) -> None:
        """Write the queued lines and wait until they are on disk."""
        self.flush()
        os.fdatasync(self.fd)

    def entries(self) -> list[JournalEntry]:
        """Return every complete line; a last line cut off by a crash is a change not made."""
        if os.fstat(self.fd).st_size > MAX_BYTES:
            raise InputError("the journal is larger than 1 GiB", "Move .tracehint away.")
        with os.fdopen(os.dup(self.fd), "rb") as stream:
            stream.seek(0)
            text = stream.read().decode("ascii", "replace")
        lines = text.split("\n")
        return [from_line(line) for line in lines[:-1] if line]


@contextmanager
def open_journal(root: Root, *, create: bool) -> Iterator[LockedJournal | None]:
    """Open and lock the journal below `root`; None if it is missing and `create` is false."""
    if create:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=root.fd)
    try:
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.fd)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _unusable_journal(error) from None
    try:
        fd = _open_file(folder, create)
        if fd is None:
            yield None
            return
        try:
            yield LockedJournal(fd)
        finally:
            os.close(fd)
    finally:
        os.close(folder)


def _open_file(folder: int, create: bool) -> int | None:
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(FILE, flags | (os.O_CREAT if create else 0), 0o600, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable_journal(error) from None
    try:
        for part in (folder, fd):
            check_own(part, file=part == fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _drop_cut_line(fd)
    except BlockingIOError:
        os.close(fd)
        raise InputError(
            "another apply is running below this directory", "Wait until it ends."
        ) from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_own(fd: int, *, file: bool) -> None:
    """Raise InputError unless only the caller can have written to the file or directory."""
    info = os.fstat(fd)
    problem = ""
    if file and not stat.S_ISREG(info.st_mode):
        problem = "it is not a regular file"
    elif info.st_uid != os.geteuid():
        problem = "it belongs to another user"
    elif info.st_mode & 0o22:
        problem = "other users may write to it"
    elif file and info.st_nlink != 1:
        problem = "it has several hard links"
    if problem:
        raise _unusable_journal(PermissionError(errno.EPERM, problem))


def _drop_cut_line(fd: int) -> None:
    """Remove a last line that a crash cut off, so that the next line starts cleanly."""
    size = os.fstat(fd).st_size
    start = max(0, size - MAX_LINE)
    tail = os.pread(fd, size - start, start)
    if tail and not tail.endswith(b"\n"):
        os.ftruncate(fd, start + tail.rfind(b"\n") + 1)


def _unusable_journal(error: OSError) -> InputError:
    return InputError(
        f"cannot use the journal .tracehint/journal: {error.strerror}",
        "It must be a plain file in a plain directory of your own; move .tracehint away.",
    )


def remove_journal(root: Root) -> None:
    """Remove the journal after a complete undo, and its directory if that is empty."""
    with suppress(OSError):
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.fd)
        try:
            os.unlink(FILE, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(FOLDER, dir_fd=root.fd)


@dataclass
class Undone:
    """Counts of undone changes; `kept`: path and reason; `lines`: actions of a dry run."""

    restored: int = 0
    removed: int = 0
    kept: list[tuple[bytes, str]] = field(default_factory=list)
    lines: list[tuple[bytes, str]] = field(default_factory=list)


def sessions(entries: list[JournalEntry]) -> list[tuple[JournalEntry, list[JournalEntry]]]:
    """Group the entries by session (store and prefix). Raises InputError."""
    out: list[tuple[JournalEntry, list[JournalEntry]]] = []
    for entry in entries:
        if entry.op == "session":
            out.append((entry, []))
        elif out:
            out[-1][1].append(entry)
        else:
            raise InputError("the journal does not begin with a session", "Move it away.")
    return out


def undo(
    root: Root,
    entries: list[JournalEntry],
    store_of: Callable[[JournalEntry], Store | None],
    *,
    allow_trusted: bool = False,
    dry_run: bool = False,
) -> Undone:
    """Undo the sessions for which `store_of` returns a store, newest change first."""
    done = Undone()
    for session, changes in reversed(sessions(entries)):
        store = store_of(session)
        if store is None:
            continue
        for change in reversed(changes):
            try:
                if change.op == "set":
                    store.check_key(change.key, allow_trusted=allow_trusted)
                    _undo_set(root, store, change, done, dry_run)
                else:
                    _undo_made(root, change, done, dry_run)
            except FileNotFoundError:
                pass  # already removed
            except OSError as error:
                done.kept.append((change.path, error.strerror or "error"))
    return done


def _undo_set(root: Root, store: Store, change: JournalEntry, done: Undone, dry_run: bool) -> None:
    fd = root.open(change.path)
    try:
        current = store.read(fd, change.key)
        if current == change.old:
            return  # already undone
        if not reports_value(store, change.key, change.new, current):
            done.kept.append((change.path, f"{change.key} has changed since"))
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


def _undo_made(root: Root, change: JournalEntry, done: Undone, dry_run: bool) -> None:
    """Remove a created file or directory if it is still the same object and empty."""
    with root.parent(change.path) as (folder, name):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if info.st_ino != change.ino:
            done.kept.append((change.path, "it is not the one that was created"))
        elif not is_folder and info.st_size:
            done.kept.append((change.path, "it has been written to"))
        elif dry_run:
            done.lines.append((change.path, "remove"))
        else:
            (os.rmdir if is_folder else os.unlink)(name, dir_fd=folder)
            done.removed += 1
