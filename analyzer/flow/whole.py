"""Accesses known from `opens` alone: truncations at open, and files without recorded ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, Shorts, lookup, order_by
from tracehint.analyzer.columns import column
from tracehint.analyzer.flow.access import EpochTasks
from tracehint.analyzer.flow.model import HOW_BIT, READ, TRUNCATE, UNKNOWN, WRITE, Access, Objects

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.flow.extents import Execution
    from tracehint.schemas.store import Bundle

_ACCMODE, _WRONLY, _RDWR = 3, 1, 2


def from_opens(
    bundle: Bundle, objects: Objects, known: EpochTasks, extents: Execution, notes: list[str]
) -> Access:
    """Truncations and accesses of whole files (upper bounds); notes how many of the latter.

    They are numbered behind the extents.
    """
    opens = bundle.tables["opens"]
    obj = lookup(objects.file_ids, objects.file_obj, column(opens, "file")).astype(np.int32)
    mine = obj >= 0
    mine &= ~np.append(objects.software, True)[obj]
    cut = np.flatnonzero(mine & (column(opens, "truncated") == 1))
    parts = [_truncations(opens, obj, known, cut)]
    reads, writes = _unranged(bundle, extents, mine)
    for op, at in ((READ, reads), (WRITE, writes)):
        if len(at):
            parts.append(_whole(opens, objects, obj, known, at, op))
    found = Access.joined(parts)
    found = found.take(found.task >= 0)
    unknown_end = found.last == UNKNOWN
    if unknown_end.any():
        ends = _process_ends(bundle.tables["processes"])
        found.last[unknown_end] = lookup(*ends, found.proc[unknown_end])
    found.last = np.maximum(found.first, found.last)
    if bounds := int((found.op != TRUNCATE).sum()):
        notes.append(
            f"{bounds} accesses without recorded ranges are taken as of the whole file "
            "(upper bound)"
        )
    found.seq = np.where(found.op == TRUNCATE, -1, extents.rows() + np.arange(len(found)))
    return found


def _truncations(opens: pa.Table, obj: Shorts, known: EpochTasks, at: Ints) -> Access:
    """O_TRUNC of files that had bytes; a second record of the same one does nothing more."""
    proc, when = column(opens, "proc")[at], column(opens, "open_ns")[at]
    zero, one = np.zeros(len(at), np.int64), np.ones(len(at), np.int64)
    return Access(
        obj=obj[at].astype(np.int64),
        task=known.of(proc),
        proc=proc,
        op=one * TRUNCATE,
        start=zero,
        end=zero,
        stride=zero,
        count=one,
        bytes=zero,
        first=when,
        last=when,
        exact=one == 1,
        how=one * HOW_BIT["open"],
        seq=-one,
    )


def _unranged(bundle: Bundle, extents: Execution, mine: Bools) -> tuple[Ints, Ints]:
    """Opens to read and to write that have no extents.

    A bare open without any counter is one only where the collector is blind to bytes: elsewhere
    no operation happened. A read-write open of a new file has nothing to read first.
    """
    opens = bundle.tables["opens"]
    blind = "bytes" in bundle.manifest.blind_to or bundle.manifest.collector == "strace-light"
    reads, writes = column(opens, "read_ops") > 0, column(opens, "write_ops") > 0
    bare = mine & ~reads & ~writes & blind
    number = column(opens, "open")
    order = order_by(number)
    ranged = np.zeros(len(number), bool)
    at = lookup(number[order], order, extents.opens())
    ranged[at[at >= 0]] = True
    mine = mine & ~ranged
    if not mine.any():
        return np.flatnonzero(mine), np.flatnonzero(mine)
    mode = column(opens, "flags") & _ACCMODE
    fresh = (mode == _RDWR) & (column(opens, "created") == 1)
    reads = (reads | (bare & (mode != _WRONLY) & ~fresh)) & mine
    writes = (writes | (bare & ((mode == _WRONLY) | (mode == _RDWR)))) & mine
    return np.flatnonzero(reads), np.flatnonzero(writes)


def _process_ends(table: pa.Table) -> tuple[Ints, Ints]:
    proc = column(table, "proc")
    order = order_by(proc)
    return proc[order], column(table, "end_ns")[order]


def _whole(
    opens: pa.Table, objects: Objects, obj: Shorts, known: EpochTasks, at: Ints, op: int
) -> Access:
    """Accesses of whole files; of one byte where the size is not known (`tables` shows 0)."""
    size = np.maximum(objects.size, objects.opened_size)[obj[at]]
    at, size = at[size != 0], size[size != 0]
    rows = obj[at].astype(np.int64)
    objects.unsized[rows[size == UNKNOWN]] = True

    def first_of(name: str, other: str) -> Ints:
        value = column(opens, name)[at]
        return np.where(value == UNKNOWN, column(opens, other)[at], value)

    moved = column(opens, "read_bytes" if op == READ else "write_bytes")[at]
    proc, zero = column(opens, "proc")[at], np.zeros(len(at), np.int64)
    return Access(
        obj=rows,
        task=known.of(proc),
        proc=proc,
        op=zero + op,
        start=zero,
        end=np.where(size == UNKNOWN, 1, size),
        stride=zero,
        count=zero + 1,
        bytes=np.where(moved > 0, moved, np.maximum(size, 0)),
        first=first_of("first_ns", "open_ns"),
        last=first_of("last_ns", "close_ns"),
        exact=zero != 0,
        how=zero + HOW_BIT["open"],
        seq=zero,
    )
