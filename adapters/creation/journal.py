"""The journals beside a rule table: files that processes created, and settings that failed.

`TABLE.journal.HOST` is written by collectors/preload/tag/journal.c: one page of counters, then
one-page chunks, each filled by one process. It may be truncated anywhere; reads are bounded.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.creation.table_layout import UNKNOWN
from tracehint.schemas.plain import open_plain, try_sharing

MAGIC = b"THJRNL\0\2"
SIZE, CHUNK = 1 << 30, 4096  # bytes; the file is sparse
_NEXT = struct.Struct("<8sQ")
_USED = struct.Struct("<II")
_RECORD = struct.Struct("<IIIHHQQII")
COUNTS = (
    "created",
    "outside",
    "no_rule",
    "no_hint",
    "conflict",
    "costly",
    "damaged",
    "set",
    "refused",
    "dropped",
    "nameless",
    "silent",
)
_COUNTS = struct.Struct(f"<{len(COUNTS)}Q")


@dataclass(frozen=True)
class Record:
    """One created file. `failed`: bit i for its i-th setting; `error`: errno of the first failure.

    `type`: number of the creating task's type, UNASKED or UNKNOWN (table_layout.py).
    """

    host: str
    t_ns: int
    pid: int
    root: int  # index of its root in the table
    path: bytes  # below that root
    failed: int
    error: int
    type: int
    withheld: bool  # nothing was set, because of `type`


@dataclass(frozen=True)
class Journal:
    """All journals of one run: records ordered by host and chunk, and counters by name.

    `unreadable` counts journals, `silent` unanswered calls of a store's tool, `untyped` files.
    """

    records: list[Record]
    counts: dict[str, int]


def make_journal(table: Path) -> None:
    """Create this host's journal at full size (sparse), so that no process has to.

    Raises OSError, also if a file there cannot be shared through memory.
    """
    path = _journal_path(table)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, SIZE)
        os.pwrite(fd, MAGIC, 0)
        try_sharing(fd)
    except OSError:
        path.unlink()
        raise
    finally:
        os.close(fd)


def link_journal(table: Path, folder: Path) -> None:
    """Create this host's journal in `folder`, where it can be shared; link it beside the table."""
    shared = folder / table.name
    make_journal(shared)
    _journal_path(table).symlink_to(_journal_path(shared).resolve())


def _journal_path(table: Path) -> Path:
    return table.with_name(f"{table.name}.journal.{os.uname().nodename.replace('/', '_')}")


def read_journals(table: Path) -> Journal:
    """Read the journals of all hosts beside the table; unreadable ones are counted."""
    records: list[Record] = []
    counts = {**dict.fromkeys(COUNTS, 0), "unreadable": 0}
    for path in sorted(table.parent.glob(f"{table.name}.journal.*")):
        host = path.name.removeprefix(f"{table.name}.journal.")
        try:
            fd = open_plain(path.resolve())
        except OSError:
            counts["unreadable"] += 1
            continue
        try:
            head = os.pread(fd, CHUNK, 0)
            if len(head) < CHUNK or not head.startswith(MAGIC):
                counts["unreadable"] += 1
                continue
            for name, count in zip(COUNTS, _COUNTS.unpack_from(head, _NEXT.size), strict=True):
                counts[name] += count
            last = min(_NEXT.unpack_from(head)[1], SIZE - CHUNK)
            for at in range(CHUNK, last + 1, CHUNK):
                records += _parse_chunk(host, os.pread(fd, CHUNK, at))
        finally:
            os.close(fd)
    return Journal(records, {**counts, "untyped": len(_untyped_files(records))})


def _untyped_files(records: list[Record]) -> set[tuple[int, bytes]]:
    """Return files whose task type was unknown at their creation and at every write."""
    withheld = {(r.root, r.path) for r in records if r.withheld and r.type == UNKNOWN}
    return withheld - {(r.root, r.path) for r in records if not r.withheld}


def _parse_chunk(host: str, data: bytes) -> Iterator[Record]:
    """Yield the records of one chunk up to one that a killed process left incomplete."""
    at = _USED.size
    while at + _RECORD.size <= len(data):
        head = _RECORD.unpack_from(data, at)
        size, error, pid, length, root, failed, t_ns, kind, withheld = head
        if size < _RECORD.size + length or size % 8 or at + size > len(data):
            return
        start = at + _RECORD.size
        path = data[start : start + length]
        yield Record(host, t_ns, pid, root, path, failed, error, kind, bool(withheld))
        at += size
