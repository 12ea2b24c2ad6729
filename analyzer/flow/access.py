"""Accesses of tasks to objects, from `extents` and, where ranges are not known, from `opens`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.flow.identity import column, lookup
from tracehint.analyzer.flow.model import (
    EXTEND,
    HOW_BIT,
    MAX_PIECES,
    OPS,
    READ,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Objects,
)
from tracehint.analyzer.flow.ranges import Bools, Ints, distinct, ints, order_by

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

_HUGE = 1 << 60  # offsets and lengths beyond are damaged records
_ACCMODE, _WRONLY, _RDWR = 3, 1, 2


def accesses(bundle: Bundle, objects: Objects, known: Tasks, notes: list[str]) -> Access:
    """All accesses by known tasks to data files, software left out; notes what was dropped."""
    parts = [_from_extents(bundle.tables["extents"], objects, known, notes)]
    parts.append(_truncating_opens(bundle.tables["opens"], objects, known))
    light = _from_opens(bundle, objects, known, len(parts[0]))
    if len(light):
        parts.append(light)
        notes.append(
            f"{len(light)} opened files without recorded ranges are taken as read or written "
            "whole (upper bound)"
        )
    return _clipped(Access.joined(parts), objects)


class Tasks:
    """Task (its place in the sorted task ids) of a process epoch, by binary search."""

    def __init__(self, proc_task: pa.Table, tasks: Ints) -> None:
        proc = column(proc_task, "proc")
        task = lookup(tasks, np.arange(len(tasks)), column(proc_task, "task"))
        order = order_by(proc)
        self._proc, self._task = proc[order], task[order]

    def of(self, proc: Ints) -> Ints:
        return lookup(self._proc, self._task, proc)


def _codes(table: pa.Table, name: str, known: dict[str, int]) -> Ints:
    """The codes of a text column; unknown words become UNKNOWN."""
    import pyarrow.compute as pc

    if not table.num_rows:
        return ints([])
    words = pc.dictionary_encode(table.column(name)).combine_chunks()
    table_of = ints([known.get(w, UNKNOWN) for w in words.dictionary.to_pylist()])
    return table_of[words.indices.to_numpy(zero_copy_only=False)]


def _from_extents(table: pa.Table, objects: Objects, known: Tasks, notes: list[str]) -> Access:
    start, length = column(table, "start"), column(table, "length")
    stride, count = column(table, "stride"), column(table, "count")
    op = _codes(table, "op", OPS)
    obj = lookup(objects.file_ids, objects.file_obj, column(table, "file"))
    task = known.of(column(table, "proc"))
    wanted = (obj >= 0) & (task >= 0)
    wanted[wanted] = ~objects.software[obj[wanted]]
    sane = (op >= 0) & (start >= 0) & (start <= _HUGE) & (length >= 0) & (length <= _HUGE)
    reach = start + np.maximum(count - 1, 0).astype(float) * stride
    sane &= (count >= 1) & (reach >= 0) & (reach + length <= _HUGE)
    if dropped := int((wanted & ~sane).sum()):
        notes.append(f"{dropped} damaged access records were left out")
    at = np.flatnonzero(wanted & sane & ((length > 0) | (op == TRUNCATE)))
    joined = stride[at] == length[at]  # pieces without gaps are one
    end = start[at] + np.where(joined, length[at] * count[at], length[at])
    first, last = column(table, "first_ns")[at], column(table, "last_ns")[at]
    return Access(
        obj=obj[at], task=task[at], proc=column(table, "proc")[at], op=op[at], start=start[at],
        end=end, stride=stride[at], count=np.where(joined, 1, count[at]),
        bytes=np.clip(column(table, "bytes")[at], 0, _HUGE >> 8), first=first,
        last=np.maximum(first, last), exact=column(table, "exact")[at] == 1,
        how=np.maximum(_codes(table, "how", HOW_BIT)[at], 0), seq=at,
    )  # fmt: skip


def _truncating_opens(opens: pa.Table, objects: Objects, known: Tasks) -> Access:
    """O_TRUNC of files that had bytes; a second record of the same one does nothing more."""
    at = np.flatnonzero(column(opens, "truncated") == 1)
    obj = lookup(objects.file_ids, objects.file_obj, column(opens, "file")[at])
    proc = column(opens, "proc")[at]
    task, when = known.of(proc), column(opens, "open_ns")[at]
    zero, one = np.zeros(len(at), np.int64), np.ones(len(at), np.int64)
    found = Access(
        obj=obj, task=task, proc=proc, op=one * TRUNCATE, start=zero, end=zero, stride=zero,
        count=one, bytes=zero, first=when, last=when, exact=one == 1,
        how=one * HOW_BIT["open"], seq=-one,
    )  # fmt: skip
    found = found.take((obj >= 0) & (task >= 0))
    return found.take(~objects.software[found.obj])


def _from_opens(bundle: Bundle, objects: Objects, known: Tasks, seq: int) -> Access:
    """Whole files for opens that have counters but no ranges, or nothing but an open.

    A bare open counts only where the collector is blind to bytes: elsewhere no operation
    happened.
    """
    opens = bundle.tables["opens"]
    blind = "bytes" in bundle.manifest.blind_to or bundle.manifest.collector == "strace-light"
    obj = lookup(objects.file_ids, objects.file_obj, column(opens, "file"))
    task = known.of(column(opens, "proc"))
    here = (obj >= 0) & (task >= 0)
    here[here] = ~objects.software[obj[here]]
    ranged = distinct(column(bundle.tables["extents"], "open", null=UNKNOWN))
    here &= lookup(ranged, ranged, column(opens, "open")) == UNKNOWN
    mode = column(opens, "flags") & _ACCMODE
    ops_known = (column(opens, "read_ops") > 0) | (column(opens, "write_ops") > 0)
    bare = here & blind & ~ops_known
    reads = (here & (column(opens, "read_ops") > 0)) | (bare & (mode != _WRONLY))
    writes = (here & (column(opens, "write_ops") > 0)) | (
        bare & ((mode == _WRONLY) | (mode == _RDWR))
    )
    # a read-write open of a file that is new has nothing to read first
    reads &= ~(bare & (mode == _RDWR) & (column(opens, "created") == 1))
    parts = [
        _whole(opens, objects, known, np.flatnonzero(which), op, seq)
        for op, which in ((READ, reads), (WRITE, writes))
        if which.any()
    ]
    ends = _process_ends(bundle)
    joined = Access.joined(parts) if parts else Access.empty()
    open_end = joined.last == UNKNOWN
    joined.last[open_end] = np.maximum(
        lookup(*ends, joined.proc[open_end]), joined.first[open_end]
    )
    return joined


def _process_ends(bundle: Bundle) -> tuple[Ints, Ints]:
    table = bundle.tables["processes"]
    proc = column(table, "proc")
    order = order_by(proc)
    return proc[order], column(table, "end_ns")[order]


def _whole(opens: pa.Table, objects: Objects, known: Tasks, at: Ints, op: int, seq: int) -> Access:
    """Accesses of whole files; of one byte where the size is not known (`tables` shows 0)."""
    obj = lookup(objects.file_ids, objects.file_obj, column(opens, "file")[at])
    size = np.maximum(objects.size[obj], objects.opened_size[obj])
    keep = size != 0
    at, obj, size = at[keep], obj[keep], size[keep]
    objects.unsized[obj[size == UNKNOWN]] = True
    first = column(opens, "first_ns")[at]
    first = np.where(first == UNKNOWN, column(opens, "open_ns")[at], first)
    last = column(opens, "last_ns")[at]
    last = np.where(last == UNKNOWN, column(opens, "close_ns")[at], last)
    moved = column(opens, "read_bytes" if op == READ else "write_bytes")[at]
    proc = column(opens, "proc")[at]
    n = len(at)
    return Access(
        obj=obj, task=known.of(proc), proc=proc, op=np.full(n, op), start=np.zeros(n, np.int64),
        end=np.where(size == UNKNOWN, 1, size), stride=np.zeros(n, np.int64),
        count=np.ones(n, np.int64), bytes=np.where(moved > 0, moved, np.maximum(size, 0)),
        first=first, last=last, exact=np.zeros(n, bool),
        how=np.full(n, HOW_BIT["open"]), seq=seq + np.arange(n),
    )  # fmt: skip


def _clipped(access: Access, objects: Objects) -> Access:
    """Upper bounds (mapped pages) cut to the largest size that the file is known to have had."""
    limit = np.maximum(objects.size, objects.opened_size)
    far = access.start + (access.count - 1) * np.maximum(access.stride, 0)
    reach = access.end - access.start + far
    sure = access.exact & (access.op == WRITE)
    np.maximum.at(limit, access.obj[sure], reach[sure])
    truncated = access.op == TRUNCATE
    np.maximum.at(limit, access.obj[truncated], access.start[truncated])
    loose = np.flatnonzero(~access.exact & ~truncated & (limit[access.obj] >= 0))
    top = limit[access.obj[loose]]
    access.end[loose] = np.minimum(access.end[loose], top)
    return access.take((access.end > access.start) | truncated)


def pieces(access: Access, notes: list[str]) -> Access:
    """Strided runs as single pieces; those of more than MAX_PIECES as one inexact range."""
    strided = access.count > 1
    if not strided.any():
        return access
    plain, runs = access.take(~strided), access.take(strided)
    far = runs.count > MAX_PIECES
    if far.any():
        notes.append(
            f"{int(far.sum())} strided accesses of more than {MAX_PIECES} pieces are taken as "
            "one range (upper bound)"
        )
        reach = runs.stride * (runs.count - 1)
        runs.start[far] += np.minimum(reach, 0)[far]
        runs.end[far] += np.maximum(reach, 0)[far]
        runs.exact[far] = False
        runs.count[far] = 1
    rows = np.repeat(np.arange(len(runs)), runs.count)
    nth = np.arange(len(rows)) - (np.cumsum(runs.count) - runs.count)[rows]
    cut = runs.take(rows)
    shift = nth * cut.stride
    cut.start, cut.end = cut.start + shift, cut.end + shift
    cut.bytes = share(runs.bytes, runs.count)
    cut.count = np.ones(len(rows), np.int64)
    return Access.joined([plain, cut])


def share(amount: Ints, parts: Ints) -> Ints:
    """Each amount divided into equal whole numbers that add up to it."""
    rows = np.repeat(np.arange(len(parts)), parts)
    nth = np.arange(len(rows)) - (np.cumsum(parts) - parts)[rows]
    low, rest = np.divmod(amount, np.maximum(parts, 1))
    return np.asarray(low[rows] + (nth < rest[rows]), np.int64)


def is_mutation(op: Ints) -> Bools:
    """Whether the operation changes bytes of the file."""
    return (op != READ) & (op != EXTEND)
