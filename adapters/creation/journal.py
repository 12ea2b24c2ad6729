"""Reading what the processes of a run set, and what the store refused: the journals beside a table.

`TABLE.journal.HOST` is written by collectors/preload/tag/journal.c: a page of counts, then chunks
of a page, each filled by one process. It may be cut off anywhere, and is read with limits.
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
    "created", "outside", "no_rule", "no_hint", "conflict", "costly", "damaged", "set",
    "refused", "dropped", "nameless", "silent",
)  # fmt: skip  # a table
_COUNTS = struct.Struct(f"<{len(COUNTS)}Q")


@dataclass(frozen=True)
class Record:
    """One file that was made. `failed`: bit i stands for its i-th setting; `error` of the first.

    `type`: number of the type of the task that made it, UNASKED or UNKNOWN (layout.py).
    """

    host: str
    t_ns: int
    pid: int
    root: int  # which of the table's roots it lies in
    path: bytes  # below that root
    failed: int
    error: int
    type: int
    withheld: bool  # nothing was set, because of that type


@dataclass(frozen=True)
class Journal:
    """All of one run: records in the order of their hosts and chunks, and counts by name.

    Of the counts `unreadable` are journals, `silent` questions and `untyped` files.
    """

    records: list[Record]
    counts: dict[str, int]


def make_journal(table: Path) -> None:
    """The journal of this host, whole and sparse, so that no process has to make it.

    Raises OSError, also where no file can be shared through memory.
    """
    path = _journal_of(table)
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
    """The journal of this host in a directory that it can be shared in; a link beside the table."""
    there = folder / table.name
    make_journal(there)
    _journal_of(table).symlink_to(_journal_of(there).resolve())


def _journal_of(table: Path) -> Path:
    return table.with_name(f"{table.name}.journal.{os.uname().nodename.replace('/', '_')}")


def read_journals(table: Path) -> Journal:
    """What all hosts wrote beside the table; a journal that cannot be read is counted."""
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
                records += _chunk(host, os.pread(fd, CHUNK, at))
        finally:
            os.close(fd)
    return Journal(records, {**counts, "untyped": len(_untyped_files(records))})


def _untyped_files(records: list[Record]) -> set[tuple[int, bytes]]:
    """Files of tasks whose type was not known when they were made, nor when they were written."""
    withheld = {(r.root, r.path) for r in records if r.withheld and r.type == UNKNOWN}
    return withheld - {(r.root, r.path) for r in records if not r.withheld}


def _chunk(host: str, data: bytes) -> Iterator[Record]:
    """The whole records of one chunk; what a killed process left half is not read."""
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
