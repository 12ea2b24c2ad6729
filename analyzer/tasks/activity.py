"""File activity of processes, and processor and I/O wait times of tasks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.arrays import (
    Numbers,
    Shorts,
    blocks,
    column,
    distinct,
    finder,
    floats,
    ints,
    numbers,
    order_by,
    positions,
    starts_of,
)
from tracehint.analyzer.path_rules import data_names, looks_like_data
from tracehint.analyzer.tasks.tree import Bools, Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Segmentation
    from tracehint.schemas.store import Bundle


_ACCESS_MODE = 3  # of open flags: 0 read, 1 write, 2 both


@dataclass(frozen=True)
class Activity:
    """Per epoch: `wrote` a data file; `opened` one itself and wrote to it (not through an inherited
    descriptor); `makes` one: opened it itself for writing by any process; `used` one at all.
    `known` is false without any opens.

    `moved`: bytes of data files that it read and wrote; `made`: without inherited descriptors. If
    the collector records no bytes, each open counts as 1.

    Pipes: pairs of (epoch, file) that were written and read.
    """

    known: bool
    wrote: Bools
    opened: Bools
    makes: Bools
    used: Bools
    moved: Ints
    made: Ints
    pipe_writes: tuple[Ints, Ints]
    pipe_reads: tuple[Ints, Ints]


def activity_of(bundle: Bundle, proc: Ints) -> Activity:
    """Return the activity of the epochs `proc` (identifiers in tree order)."""
    import pyarrow.compute as pc

    opens, files = bundle.tables["opens"], bundle.tables["files"]
    n = len(proc)
    at = positions(proc, numbers(opens, "proc", -1)).astype(np.int32)
    file = numbers(opens, "file", -1)
    position = positions(column(files, "file", -1), file).astype(np.int32)
    kinds = files.column("kind")

    def of_kind(kind: str) -> Bools:
        flags = np.append(pc.equal(kinds, kind).to_numpy(zero_copy_only=False), False)
        return np.asarray(flags[position], bool) & (at >= 0)

    flags = numbers(opens, "flags", 0) & _ACCESS_MODE
    read_ops = numbers(opens, "read_ops", 0) > 0
    write_ops = numbers(opens, "write_ops", 0) > 0
    blind = "bytes" in bundle.manifest.blind_to
    plain = of_kind("file") & ~_own_scratch(files, position, at)
    plain &= data_names(opens.column("path"))
    writes = write_ops | (flags > 0) if blind else write_ops
    reads = read_ops | (flags == 0) if blind else read_ops
    wrote, opened, makes, used = (np.zeros(n, bool) for _ in range(4))
    wrote[at[plain & writes]] = True
    itself = pc.not_equal(opens.column("via"), "inherited").to_numpy(zero_copy_only=False)
    opened[at[plain & writes & itself]] = True
    makes[at[plain & (flags > 0) & itself]] = True
    used[at[plain & (reads | writes)]] = True
    moved, made = (_bytes(opens, at, which, n, blind=blind) for which in (plain, plain & itself))
    pipe = of_kind("pipe")
    # for a pipe end without recorded operations, use the mode of the open
    w = pipe & (write_ops | ((flags == 1) & ~_occurs_in(file, pipe & write_ops)))
    r = pipe & (read_ops | ((flags == 0) & ~write_ops & ~_occurs_in(file, pipe & read_ops)))
    pipes = (ints(at[w]), ints(file[w])), (ints(at[r]), ints(file[r]))
    return Activity(opens.num_rows > 0, wrote, opened, makes, used, moved, made, *pipes)


def _bytes(opens: pa.Table, at: Shorts, which: Bools, epochs: int, *, blind: bool) -> Ints:
    """Return per epoch the bytes of the opens `which`; if no bytes are recorded, their number."""
    total = np.zeros(epochs, np.int64)
    sides = [numbers(opens, name, 0) for name in ("read_bytes", "write_bytes")]
    for some in blocks(len(at)):
        chosen = which[some]
        amount = sum(ints(side[some][chosen]) for side in sides)
        np.add.at(total, at[some][chosen], 1 if blind else np.maximum(amount, 0))
    return total


def _own_scratch(files: pa.Table, position: Shorts, at: Shorts) -> Bools:
    """Return opens of deleted files that only one process used: they are no data of the run
    (Python's tempfile writes one to test each directory)."""
    gone = np.asarray(files.column("deleted").fill_null(False).to_numpy(zero_copy_only=False), bool)
    uses = np.append(gone, False)[position]  # of deleted files: usually few
    pairs = np.unique(np.stack((position[uses], at[uses])), axis=1)
    users = np.bincount(pairs[0], minlength=files.num_rows)
    scratch = np.append(gone & (users < 2), False)
    return np.asarray(scratch[position], bool)


def _occurs_in(file: Numbers, which: Bools) -> Bools:
    return np.isin(file, distinct(file[which]))


Floats = npt.NDArray[np.float64]

SLOWEST_CALL_NS, SLOWEST_BYTES_PER_S = 100_000_000, 1_000_000  # assumed of the slowest store
MIN_USE_NS = 200_000  # shorter uses do not count as waiting
SHORT_NS = 10_000_000  # shorter uses are added up, even if they overlap
UNKNOWN_SHARE = 0.05  # of process lifetimes without processor time; above this a task's is unknown
BLOCK = 1 << 20  # opens per pass
_TICK_NS = 1_000  # resolution of the sums below, which must fit into 63 bits


def with_waiting(bundle: Bundle, segmented: Segmentation) -> Segmentation:
    """Return the tasks with `cpu_s` and `io_wait_s`, as far as recorded for the processes."""
    import pyarrow as pa

    processes, tasks = bundle.tables["processes"], segmented.tasks
    if not processes.num_rows or not tasks.num_rows:
        return segmented
    task_of = _task_finder(segmented)
    of = task_of(column(processes, "proc"))
    lasted = floats(tasks, "end_s") - floats(tasks, "start_s")
    in_use, users = _use_time(bundle, task_of, len(lasted))
    cpu, computing, lives = _processor_time(processes, of, len(lasted), users)
    waited = np.minimum(np.maximum(lasted - computing, 0.0), in_use)
    measured = _measured_wait(processes, of, lives, lasted)
    waited = np.where(np.isnan(measured), waited, measured)
    for name, values in (("cpu_s", cpu), ("io_wait_s", waited)):
        known = tasks.column(name).is_valid().to_numpy()
        values = np.where(known, floats(tasks, name), values)
        at = tasks.schema.get_field_index(name)
        new = pa.array(np.round(values, 6), mask=np.isnan(values))
        tasks = tasks.set_column(at, tasks.schema.field(at), new)
    return replace(segmented, tasks=tasks)


def _task_finder(segmented: Segmentation) -> Callable[[Ints], Ints]:
    """Return a function from process epochs to the rows of their tasks; -1: no task."""
    epoch = finder(column(segmented.proc_task, "proc"))
    task = np.append(column(segmented.proc_task, "task"), -1)
    row = finder(column(segmented.tasks, "task"))
    return lambda epochs: row(task[epoch(epochs)])


def _processor_time(
    processes: pa.Table, of: Ints, tasks: int, users: Ints
) -> tuple[Floats, Floats, Floats]:
    """Return per task: processor seconds; the same, NaN only if unknown for `users` (process epochs
    that used data files); and total seconds of process lifetimes. Between a fork and the
    following exec nothing computes, however long the process waited to be scheduled."""
    used = numbers(processes, "cpu_ns", -1).astype(np.float64)
    life = np.maximum(column(processes, "end_ns") - column(processes, "start_ns"), 0) / 1e9
    mine = of >= 0
    lives = _sums(of[mine], life[mine], tasks)
    known = mine & (used >= 0)
    became = np.isin(column(processes, "proc"), column(processes, "prev", -1))
    unknown_life = np.where(mine & ~known & ~became, life, 0.0)
    unknown_life[mine & processes.column("end_ns").is_null().to_numpy()] = np.inf
    seconds = _sums(of[known], used[known] / 1e9, tasks)
    seconds[np.bincount(of[known], minlength=tasks) == 0] = np.nan

    def where_known(these: Bools) -> Floats:
        unknown = _sums(of[these], unknown_life[these], tasks)
        return np.where(unknown <= UNKNOWN_SHARE * lives, seconds, np.nan)

    uses = mine & np.isin(column(processes, "proc"), users)
    return where_known(mine), where_known(uses), lives


def _sums(of: Ints, values: npt.ArrayLike, tasks: int) -> Floats:
    """Return the sum of the values of each task."""
    return np.bincount(of, values, tasks).astype(np.float64)


def _measured_wait(processes: pa.Table, of: Ints, lives: Floats, lasted: Floats) -> Floats:
    """Return the measured seconds in file calls of each task, NaN if not measured. For processes
    that ran concurrently it is their mean."""
    spent = numbers(processes, "io_ns", -1).astype(np.float64)
    known = (of >= 0) & (spent >= 0)
    life = np.maximum(column(processes, "end_ns") - column(processes, "start_ns"), 0) / 1e9
    total = _sums(of[known], spent[known] / 1e9, len(lives))
    measured = _sums(of[known], life[known], len(lives))
    overlap = np.maximum(np.divide(measured, lasted, where=lasted > 0, out=np.ones(len(lives))), 1)
    any_known = np.bincount(of[known], minlength=len(lives)) > 0
    return np.where(any_known, np.minimum(total / overlap, lasted), np.nan)


def _use_time(bundle: Bundle, task_of: Callable[[Ints], Ints], tasks: int) -> tuple[Floats, Ints]:
    """Return the seconds in which each task had data files in use: from the open, or the first
    access through an inherited descriptor, to the last read, or to the close after writes. Also
    return the process epochs that used them."""
    opens = bundle.tables["opens"]
    if not opens.num_rows:
        return np.full(tasks, np.nan), np.zeros(0, np.int64)
    total, most = np.zeros(tasks), np.zeros(tasks)
    long: list[tuple[Ints, Ints, Ints]] = []
    users = []
    for low in range(0, opens.num_rows, BLOCK):
        rows, start, end, bound = _find_uses(bundle, opens.slice(low, BLOCK))
        epochs = column(opens.slice(low, BLOCK), "proc")[rows]
        users.append(distinct(epochs))
        of = task_of(epochs)
        short = (end - start < SHORT_NS) & (of >= 0)
        total += _sums(of[short], np.minimum(end - start, bound)[short], tasks)
        rest = ~short & (of >= 0)
        most += _sums(of[rest], np.minimum(end - start, bound)[rest], tasks)
        long.append((of[rest], start[rest], end[rest]))
    of, start, end = (np.concatenate(part) for part in zip(*long, strict=True))
    seconds = (total + np.minimum(_union(of, start, end, tasks), most)) / 1e9
    return seconds, np.concatenate(users)


def _find_uses(bundle: Bundle, opens: pa.Table) -> tuple[Ints, Ints, Ints, Floats]:
    """Return (row, start, end, maximum wait) of those uses of data files that may wait."""
    wrote = numbers(opens, "write_ops", 0) > 0
    start = np.where(_are_inherited(opens), column(opens, "first_ns"), column(opens, "open_ns"))
    closed = column(opens, "close_ns")
    end = np.where(wrote & (closed > 0), closed, column(opens, "last_ns"))
    used = wrote | (numbers(opens, "read_ops", 0) > 0)
    rows = np.flatnonzero(used & (start > 0) & (end - start >= MIN_USE_NS))
    rows = rows[_are_data(bundle, opens, rows)]
    counts = {
        name: numbers(opens, name, 0)[rows].astype(np.float64)
        for name in ("read_ops", "write_ops", "read_bytes", "write_bytes")
    }
    calls = counts["read_ops"] + counts["write_ops"] + 1
    size = counts["read_bytes"] + counts["write_bytes"]
    bound = calls * SLOWEST_CALL_NS + size * (1e9 / SLOWEST_BYTES_PER_S)
    return rows, start[rows], end[rows], bound


def _are_inherited(opens: pa.Table) -> Bools:
    """Return which opens are of inherited or passed descriptors."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(["inherited", "passed"], pa.string())
    return np.asarray(pc.is_in(opens.column("via").cast(pa.string()), value_set=words).to_numpy())


def _are_data(bundle: Bundle, opens: pa.Table, rows: Ints) -> Bools:
    """Return which of these opens are of regular files with names that data can have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    files = bundle.tables["files"]
    plain = pc.equal(files.column("kind").cast(pa.string()), "file").to_numpy()
    position = finder(column(files, "file"))(column(opens, "file")[rows])
    named = pc.dictionary_encode(opens.column("path").take(pa.array(rows))).combine_chunks()
    data = np.append(looks_like_data(named.dictionary), False)
    is_data = data[named.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return np.asarray(np.append(plain, False)[position] & is_data, bool)


def _union(of: Ints, start: Ints, end: Ints, tasks: int) -> Floats:
    """Return per task the nanoseconds covered by at least one of its intervals."""
    if not len(of):
        return np.zeros(tasks)
    base = int(start.min())
    begin, until = (start - base) // _TICK_NS, (end - base) // _TICK_NS
    order = order_by(of, begin)
    of, begin, until = of[order], begin[order], until[order]
    rank = np.zeros(len(of), np.int64)
    rank[starts_of(of)[1:]] = 1
    rank = np.cumsum(rank)
    width = int(until.max()) + 1  # shifts later tasks behind all intervals of earlier ones
    reach = np.maximum.accumulate(until + rank * width) - rank * width
    before = np.concatenate([[0], reach[:-1]])
    before[starts_of(of)] = 0
    own = np.maximum(until - np.maximum(begin, before), 0)
    return _sums(of, own * float(_TICK_NS), tasks)
