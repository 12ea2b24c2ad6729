"""The operations of the tasks, from the tables of producers and consumers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, finder
from tracehint.analyzer.columns import column, floats
from tracehint.analyzer.flow.model import Rows
from tracehint.analyzer.flow.ranges import expand
from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE, Floats

if TYPE_CHECKING:
    import pyarrow as pa

MAX_RANGES = 8  # of one task in one file; more become one range from the first to the last
PIECES = 20  # that the computing of one task is cut into at most


@dataclass
class Operations(Rows):
    """Reads, writes and computing; `when` is the second of the task at which it happens."""

    task: Ints
    kind: Ints
    file: Ints
    start: Ints
    length: Ints
    bytes: Ints
    seconds: Floats
    when: Floats


def accesses(table: pa.Table, kind: int, tasks: Ints, files: Ints, sizes: Ints) -> Operations:
    """One operation per range of a row of `producers` or `consumers`.

    `tasks` and `files` are the keys that count; rows of others are left out. `when` is the time
    of the first access for reads, of the last for writes, in seconds of the run; NaN: unknown.
    """
    task, file = finder(tasks)(column(table, "task")), finder(files)(column(table, "file"))
    keep = np.flatnonzero((task >= 0) & (file >= 0))
    table, task, file = table.take(keep), task[keep], file[keep]
    moved = column(table, "unique_bytes")
    moved = np.where(moved < 0, column(table, "bytes"), moved)
    moved = np.where(moved < 0, sizes[file], moved)
    when = np.where(
        _declared(table), np.nan, floats(table, "first_s" if kind == READ else "last_s")
    )
    row, start, length = _ranges(table, moved)
    # a row's bytes are shared among its ranges by their length
    total = np.bincount(row, length, len(table))
    share = np.divide(length, total[row], out=np.ones(len(row)), where=total[row] > 0)
    return Operations(
        task=task[row], kind=np.full(len(row), kind), file=file[row], start=start, length=length,
        bytes=np.rint(moved[row] * share).astype(np.int64), seconds=np.zeros(len(row)),
        when=when[row],
    )  # fmt: skip  # a table


def _declared(table: pa.Table) -> Bools:
    """Rows that somebody stated and nobody saw: their times are those of the task."""
    import pyarrow.compute as pc

    how = table.column("how").combine_chunks()
    seen = pc.not_equal(how.flatten(), "declared").to_numpy(zero_copy_only=False)
    row = pc.list_parent_indices(how).to_numpy()
    return np.asarray(np.bincount(row[seen], minlength=len(how)) == 0)


def _ranges(table: pa.Table, moved: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, start, length) of the ranges of each row, in order; without any: all of the file."""
    lists = table.column("ranges").combine_chunks()
    count = np.asarray(lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    ends = np.asarray(lists.flatten().flatten().to_numpy(zero_copy_only=False), np.int64)
    ends = ends.reshape(-1, 2)
    first = np.cumsum(count) - count
    few, many = (count > 0) & (count <= MAX_RANGES), count > MAX_RANGES
    last = np.where(few, first + count, first + (count > 0))
    row, at = expand(first, np.where(many, first + 1, last))
    start, end = ends[at, 0], ends[at, 1]
    wide = many[row]
    end[wide] = ends[(first + count - 1)[row[wide]], 1]
    bare = np.flatnonzero(count == 0)
    row = np.concatenate([row, bare])
    start = np.concatenate([start, np.zeros(len(bare), np.int64)])
    length = np.concatenate([end - start[: len(end)], moved[bare]])
    order = np.argsort(row, kind="stable")
    return row[order], start[order], length[order]


def with_computing(moves: Operations, start: Floats, end: Floats) -> Operations:
    """All operations in the order of the tasks and of time, with the computing between them.

    `start` and `end` of the tasks: what a task computes before an operation is the time that
    passed since the one before it. Unknown times: reads at the start, writes at the end.
    """
    begin, until = start[moves.task], end[moves.task]
    when = np.where(np.isnan(moves.when), np.where(moves.kind == READ, begin, until), moves.when)
    when = np.clip(when, begin, np.maximum(begin, until))
    step = np.maximum(until - begin, 1e-9) / PIECES
    part = (when - begin) / step
    # reads move to the start of their piece, writes to its end
    part = np.where(moves.kind == READ, np.floor(part), np.ceil(part))
    moves.when = part
    moves = moves.take(np.lexsort((moves.file, moves.kind, part, moves.task)))
    before = np.zeros(len(moves))
    same = np.zeros(len(moves), bool)
    same[1:] = moves.task[1:] == moves.task[:-1]
    before[same] = moves.when[np.flatnonzero(same) - 1]
    last = np.zeros(len(start))
    np.maximum.at(last, moves.task, moves.when)
    length = (end - start) / PIECES
    gaps = _computing(moves.task, moves.when, (moves.when - before) * length[moves.task])
    tails = _computing(np.arange(len(start)), np.full(len(start), np.inf), (PIECES - last) * length)
    joined = Operations.joined([moves, gaps, tails])
    # computing comes before the operation that it leads to
    rank = np.where(joined.kind == COMPUTE, -1, joined.kind)
    return joined.take(np.lexsort((joined.file, rank, joined.when, joined.task)))


def _computing(task: Ints, when: Floats, seconds: Floats) -> Operations:
    some = np.flatnonzero(seconds > 1e-9)
    zero = np.zeros(len(some), np.int64)
    return Operations(
        task[some], zero + COMPUTE, zero - 1, zero, zero, zero, seconds[some], when[some]
    )


__all__ = ["COMPUTE", "READ", "WRITE", "Operations", "accesses", "with_computing"]
