"""Accesses of tasks to objects, read from the table `extents`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    Numbers,
    Shorts,
    column,
    ints,
    lookup,
    numbers,
    order_by,
)
from tracehint.analyzer.dataflow.model import (
    EXTEND,
    HOW_BIT,
    HUGE,
    MAX_ALL_PIECES,
    MAX_PIECES,
    OPS,
    READ,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Objects,
)

if TYPE_CHECKING:
    import pyarrow as pa


_COLUMNS = ("proc", "start", "length", "stride", "count", "bytes", "first_ns", "last_ns", "exact")


class EpochTasks:
    """Task of each process epoch, as a position in the sorted task ids."""

    def __init__(self, proc_task: pa.Table, tasks: Ints) -> None:
        proc = column(proc_task, "proc")
        task = lookup(tasks, np.arange(len(tasks)), column(proc_task, "task"))
        order = order_by(proc)
        self._proc, self._task = proc[order], task[order]

    def of(self, proc: Numbers) -> Ints:
        """Return the task of each process; UNKNOWN for a process without a task."""
        return lookup(self._proc, self._task, proc)


@dataclass
class Raw:
    """Extents with their objects and tasks; columns of the bundle are not copied.

    `rows` are the valid extents: of data files, by known tasks, not damaged.
    """

    rows: Ints
    obj: Shorts
    task: Shorts
    op: Shorts
    how: Shorts
    table: pa.Table

    def access(self, at: Ints) -> Access:
        """Return the accesses of these extents (row numbers of the table)."""
        get = {name: ints(values[at]) for name, values in self.columns.items()}
        joined = get["stride"] == get["length"]  # contiguous pieces form one range
        length = np.where(joined, get["length"] * get["count"], get["length"])
        return Access(
            obj=ints(self.obj[at]),
            task=ints(self.task[at]),
            proc=get["proc"],
            op=ints(self.op[at]),
            start=get["start"],
            end=get["start"] + length,
            stride=get["stride"],
            count=np.where(joined, 1, get["count"]),
            bytes=np.clip(get["bytes"], 0, HUGE >> 1),
            first=get["first_ns"],
            last=np.maximum(get["first_ns"], get["last_ns"]),
            exact=get["exact"] == 1,
            how=ints(self.how[at]),
            seq=at,
        )

    def __post_init__(self) -> None:
        self.columns = {name: numbers(self.table, name) for name in _COLUMNS}


def _codes(table: pa.Table, name: str, known: dict[str, int], unknown: int) -> Shorts:
    """Return the codes of a text column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not table.num_rows:
        return np.empty(0, np.int32)
    found = []
    for chunk in table.column(name).chunks:
        words = chunk if pa.types.is_dictionary(chunk.type) else pc.dictionary_encode(chunk)
        codes = np.array([known.get(w, unknown) for w in words.dictionary.to_pylist()], np.int32)
        found.append(codes[words.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(found)


def read_extents(table: pa.Table, objects: Objects, known: EpochTasks) -> tuple[Raw, int]:
    """Return the extents with their objects and tasks, and the number of damaged ones left out."""
    op = _codes(table, "op", OPS, UNKNOWN)
    obj = lookup(objects.file_ids, objects.file_obj, numbers(table, "file")).astype(np.int32)
    task = known.of(numbers(table, "proc")).astype(np.int32)
    raw = Raw(ints([]), obj, task, op, _codes(table, "how", HOW_BIT, 0), table)
    start, length = raw.columns["start"], raw.columns["length"]
    count = raw.columns["count"]
    wanted = (obj >= 0) & (task >= 0)
    wanted &= ~np.append(objects.software, True)[obj]
    sane = (op >= 0) & (start >= 0) & (start <= HUGE) & (length >= 0) & (length <= HUGE)
    sane &= count >= 1
    many = np.flatnonzero(count > 1)
    pieces, size = count[many].astype(float), length[many].astype(float)
    reach = start[many] + (pieces - 1) * raw.columns["stride"][many]
    sane[many] &= (reach >= 0) & (reach + size <= HUGE) & (size * pieces <= HUGE)
    raw.rows = np.flatnonzero(wanted & sane & ((length > 0) | (op == TRUNCATE)))
    return raw, int(np.count_nonzero(wanted & ~sane))


def clip(access: Access, objects: Objects) -> Access:
    """Clip inexact ranges (mapped pages) to the largest size that the file is known to have had."""
    truncated = access.op == TRUNCATE
    loose = np.flatnonzero(~access.exact & ~truncated)
    if len(loose):
        limit = np.maximum(objects.size, objects.opened_size)
        reach = access.end + (access.count - 1) * np.maximum(access.stride, 0)
        sure = access.exact & (access.op == WRITE)
        np.maximum.at(limit, access.obj[sure], reach[sure])
        np.maximum.at(limit, access.obj[truncated], access.start[truncated])
        loose = loose[limit[access.obj[loose]] >= 0]
        top = limit[access.obj[loose]]
        access.end[loose] = np.minimum(access.end[loose], top)
        access = access.take((access.end > access.start) | truncated)
    return access


def pieces(access: Access, notes: list[str]) -> Access:
    """Expand strided runs into pieces; a run of too many pieces becomes one inexact range."""
    strided = access.count > 1
    if not strided.any():
        return access
    plain, runs = access.take(~strided), access.take(strided)
    most = MAX_PIECES
    while runs.count[runs.count <= most].sum() > MAX_ALL_PIECES:
        most //= 2
    far = runs.count > most
    if far.any():
        notes.append(
            f"{int(far.sum())} [strided run|strided runs] of more than {most} pieces counted as "
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
    return Access.concat_parts([plain, cut])


def share(amount: Ints, parts: Ints) -> Ints:
    """Divide each amount into integers that are as equal as possible and add up to it."""
    rows = np.repeat(np.arange(len(parts)), parts)
    nth = np.arange(len(rows)) - (np.cumsum(parts) - parts)[rows]
    low, rest = np.divmod(amount, np.maximum(parts, 1))
    return np.asarray(low[rows] + (nth < rest[rows]), np.int64)


def is_mutation(op: Ints) -> Bools:
    """Return which operations change bytes of the file."""
    return np.asarray((op != READ) & (op != EXTEND))
