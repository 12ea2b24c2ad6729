"""The manifest of what `apply` changed below a root: written before each change, so that a crash
at any moment can be taken back or completed.

`DIR/.tracehint/applied.jsonl`, one JSON object per line: a session line (store, prefix), then
`mkdir`, `create`, `created` and `set` lines. The file may have been put there by somebody else:
it is opened without following links, must belong to the caller, and every line is checked.
"""

from __future__ import annotations

import base64
import binascii
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from tracehint.adapters.stores.beneath import Root
from tracehint.errors import InputError

SCHEMA = "tracehint.applied/1"
FOLDER, FILE = b".tracehint", b"applied.jsonl"
MAX_BYTES = 1 << 30
MAX_LINE = 64 << 10


@dataclass(frozen=True, kw_only=True)
class JournalEntry:
    """One change. `ino` is 0 until a created file is known to be ours."""

    op: str  # session, mkdir, create, created, set
    path: bytes = b""
    key: str = ""
    old: bytes | None = None
    new: bytes = b""
    ino: int = 0
    store: str = ""
    prefix: str | None = None


def to_line(entry: JournalEntry) -> str:
    """One JSON line; bytes as base64, so that any name survives."""
    data = {k: v for k, v in asdict(entry).items() if v not in (None, b"", "", 0)}
    for key in ("path", "old", "new"):
        if key in data:
            data[key] = base64.b64encode(data[key]).decode()
    if entry.old == b"":
        data["old"] = ""
    if entry.op == "session":
        data["schema"] = SCHEMA
    return json.dumps(data) + "\n"


def from_line(line: str) -> JournalEntry:
    """Inverse of `to_line`; raises InputError."""
    try:
        data: Any = json.loads(line) if len(line) <= MAX_LINE else None
        if not isinstance(data, dict) or data.get("op") not in _OPS:
            raise ValueError
        raw: dict[str, bytes | None] = {
            key: base64.b64decode(data[key], validate=True) if key in data else None
            for key in ("path", "old", "new")
        }
        return JournalEntry(
            op=data["op"],
            path=raw["path"] or b"",
            old=raw["old"],
            new=raw["new"] or b"",
            key=_text(data, "key"),
            ino=int(data.get("ino", 0)),
            store=_text(data, "store"),
            prefix=_text(data, "prefix") if "prefix" in data else None,
        )
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise InputError(
            "the manifest .tracehint/applied.jsonl has a line that tracehint did not write",
            "Move the file away; what it recorded can then not be taken back.",
        ) from error


_OPS = frozenset({"session", "mkdir", "create", "created", "set"})


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        raise TypeError
    return value


class LockedJournal:
    """The open, locked manifest."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._pending: list[str] = []

    def add(self, entry: JournalEntry) -> None:
        """Remember a line for the next `sync`."""
        self._pending.append(to_line(entry))

    def sync(self) -> None:
        """Write what is pending and wait until it is on disk."""
        data = "".join(self._pending).encode()
        self._pending.clear()
        while data:
            data = data[os.write(self.fd, data) :]
        os.fdatasync(self.fd)

    def entries(self) -> list[JournalEntry]:
        """Every complete line; a last line cut off by a crash stands for a change not made."""
        if os.fstat(self.fd).st_size > MAX_BYTES:
            raise InputError("the manifest is larger than 1 GiB", "Move .tracehint away.")
        with os.fdopen(os.dup(self.fd), "rb") as stream:
            stream.seek(0)
            text = stream.read().decode("ascii", "replace")
        lines = text.split("\n")
        return [from_line(line) for line in lines[:-1] if line]


@contextmanager
def open_journal(root: Root, *, create: bool) -> Iterator[LockedJournal | None]:
    """The manifest below `root`, locked; None where there is none and `create` is false."""
    if create:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=root.fd)
    try:
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.fd)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _refused(error) from None
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
        raise _refused(error) from None
    try:
        for part in (folder, fd):
            check_own(part, file=part == fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _end_cut_line(fd)
    except BlockingIOError:
        os.close(fd)
        raise InputError("another apply is at work below this directory", "Wait for it.") from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def check_own(fd: int, *, file: bool) -> None:
    """Raises InputError unless nobody but the caller can have written there."""
    info = os.fstat(fd)
    problem = ""
    if file and not stat.S_ISREG(info.st_mode):
        problem = "it is no regular file"
    elif info.st_uid != os.geteuid():
        problem = "it belongs to another user"
    elif info.st_mode & 0o22:
        problem = "others may write to it"
    elif file and info.st_nlink != 1:
        problem = "it has several hard links"
    if problem:
        raise _refused(PermissionError(errno.EPERM, problem))


def _end_cut_line(fd: int) -> None:
    """Drop a last line that a crash cut off, so that the next line stands alone."""
    size = os.fstat(fd).st_size
    start = max(0, size - MAX_LINE)
    tail = os.pread(fd, size - start, start)
    if tail and not tail.endswith(b"\n"):
        os.ftruncate(fd, start + tail.rfind(b"\n") + 1)


def _refused(error: OSError) -> InputError:
    return InputError(
        f"cannot use the manifest .tracehint/applied.jsonl: {error.strerror}",
        "It must be a plain file in a plain directory of your own; move .tracehint away.",
    )


def remove_journal(root: Root) -> None:
    """After a complete undo: the manifest and, where it is empty, its directory."""
    with suppress(OSError):
        folder = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root.fd)
        try:
            os.unlink(FILE, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(FOLDER, dir_fd=root.fd)
