"""Processor time of the tasks, and how much of the rest they waited for files.

A collector that adds up the time inside of calls (Darshan) says it. Of the others it is estimated:
a task waited for a file while it had it in use and ran on no processor. A program that sleeps with
a file in its hand would wait for it forever, so a use counts no longer than the slowest store
would need for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.arrays import Bools, Ints, finder, order_by, starts_of
from tracehint.analyzer.columns import column, floats, numbers
from tracehint.analyzer.path_rules import looks_like_data

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.tasks.model import Segmentation
    from tracehint.schemas.store import Bundle

Floats = npt.NDArray[np.float64]

SLOWEST_CALL_NS, SLOWEST_BYTES_PER_S = 100_000_000, 1_000_000  # of a store that is still used
SHORT_NS = 10_000_000  # shorter uses are added up, whether or not they overlap
UNKNOWN_SHARE = 0.05  # of the lives of a task's processes; more without processor time: unknown
_TICK_NS = 1_000  # of the sums below, which must fit into 63 bits


def with_waiting(bundle: Bundle, segmented: Segmentation) -> Segmentation:
    """The tasks with `cpu_s` and `io_wait_s` as far as the bundle's processes tell."""
    import pyarrow as pa

    processes, tasks = bundle.tables["processes"], segmented.tasks
    if not processes.num_rows or not tasks.num_rows:
        return segmented
    of = _task_of(processes, segmented)
    lasted = floats(tasks, "end_s") - floats(tasks, "start_s")
    cpu, lives = _processor_time(processes, of, len(lasted))
    waited = np.minimum(np.maximum(lasted - cpu, 0.0), _in_use(bundle, segmented))
    measured = _measured(processes, of, lives, lasted)
    waited = np.where(np.isnan(measured), waited, measured)
    for name, values in (("cpu_s", cpu), ("io_wait_s", waited)):
        known = tasks.column(name).is_valid().to_numpy()
        values = np.where(known, floats(tasks, name), values)
        at = tasks.schema.get_field_index(name)
        new = pa.array(np.round(values, 6), mask=np.isnan(values))
        tasks = tasks.set_column(at, tasks.schema.field(at), new)
    return replace(segmented, tasks=tasks)


def _task_of(processes: pa.Table, segmented: Segmentation) -> Ints:
    """The row of the task of each process epoch; -1: of none."""
    known = column(segmented.proc_task, "proc")
    task = np.append(column(segmented.proc_task, "task"), -1)
    number = task[finder(known)(column(processes, "proc"))]
    return finder(column(segmented.tasks, "task"))(number)


def _processor_time(processes: pa.Table, of: Ints, tasks: int) -> tuple[Floats, Floats]:
    """Per task: seconds of processors (NaN: unknown), and of the lives of its processes. Between a
    fork and the exec that follows it nothing computes, however long it had to wait for its turn."""
    used = numbers(processes, "cpu_ns", -1).astype(np.float64)
    life = np.maximum(column(processes, "end_ns") - column(processes, "start_ns"), 0) / 1e9
    mine = of >= 0
    lives = _sums(of[mine], life[mine], tasks)
    known = mine & (used >= 0)
    became = np.isin(column(processes, "proc"), column(processes, "prev", -1))
    unsaid = mine & ~known & ~became
    unknown = _sums(of[unsaid], life[unsaid], tasks)
    endless = mine & processes.column("end_ns").is_null().to_numpy()
    unknown[of[endless]] = np.inf
    seconds = _sums(of[known], used[known] / 1e9, tasks)
    enough = (unknown <= UNKNOWN_SHARE * lives) & (np.bincount(of[known], minlength=tasks) > 0)
    return np.where(enough, seconds, np.nan), lives


def _sums(of: Ints, values: npt.ArrayLike, tasks: int) -> Floats:
    """Per task the sum of its values."""
    return np.bincount(of, values, tasks).astype(np.float64)


def _measured(processes: pa.Table, of: Ints, lives: Floats, lasted: Floats) -> Floats:
    """Seconds in calls on files that a collector measured, NaN: none did. Of processes that ran
    side by side it is the mean."""
    spent = numbers(processes, "io_ns", -1).astype(np.float64)
    known = (of >= 0) & (spent >= 0)
    life = np.maximum(column(processes, "end_ns") - column(processes, "start_ns"), 0) / 1e9
    total = _sums(of[known], spent[known] / 1e9, len(lives))
    measured = _sums(of[known], life[known], len(lives))
    aside = np.maximum(np.divide(measured, lasted, where=lasted > 0, out=np.ones(len(lives))), 1)
    any_known = np.bincount(of[known], minlength=len(lives)) > 0
    return np.where(any_known, np.minimum(total / aside, lasted), np.nan)


def _in_use(bundle: Bundle, segmented: Segmentation) -> Floats:
    """Per task the seconds in which it had data files in use: from the opening, or the first
    access through what it inherited, to the last read, or to the closing after writes."""
    opens = bundle.tables["opens"]
    tasks = segmented.tasks.num_rows
    if not opens.num_rows:
        return np.full(tasks, np.nan)
    of = _task_of(opens, segmented)
    wrote, moved = column(opens, "write_ops", 0) > 0, _moved(opens)
    given = _via(opens)
    start = np.where(given, column(opens, "first_ns"), column(opens, "open_ns"))
    last, closed = column(opens, "last_ns"), column(opens, "close_ns")
    end = np.where(wrote & (closed > 0), closed, last)
    keep = np.flatnonzero((of >= 0) & moved & (start > 0) & (end > start))
    keep = keep[_data(bundle, opens, keep)]
    calls = (column(opens, "read_ops", 0) + column(opens, "write_ops", 0))[keep]
    size = (column(opens, "read_bytes", 0) + column(opens, "write_bytes", 0))[keep]
    most = (calls + 1.0) * SLOWEST_CALL_NS + size * (1e9 / SLOWEST_BYTES_PER_S)
    of, start, end = of[keep], start[keep], end[keep]
    length = np.minimum(end - start, most)
    short = end - start < SHORT_NS
    total = _sums(of[short], length[short], tasks)
    long = np.flatnonzero(~short)
    together = _union(of[long], start[long], end[long], tasks)
    return (total + np.minimum(together, _sums(of[long], length[long], tasks))) / 1e9


def _moved(opens: pa.Table) -> Bools:
    return np.asarray((column(opens, "read_ops", 0) > 0) | (column(opens, "write_ops", 0) > 0))


def _via(opens: pa.Table) -> Bools:
    """Opens of what others had opened."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(["inherited", "passed"], pa.string())
    return np.asarray(pc.is_in(opens.column("via").cast(pa.string()), value_set=words).to_numpy())


def _data(bundle: Bundle, opens: pa.Table, rows: Ints) -> Bools:
    """Whether these opens are of files by names that data can have."""
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
    """Per task the nanoseconds in which at least one of its intervals is."""
    if not len(of):
        return np.zeros(tasks)
    base = int(start.min())
    begin, until = (start - base) // _TICK_NS, (end - base) // _TICK_NS
    order = order_by(of, begin)
    of, begin, until = of[order], begin[order], until[order]
    rank = np.zeros(len(of), np.int64)
    rank[starts_of(of)[1:]] = 1
    rank = np.cumsum(rank)
    room = int(until.max()) + 1  # later tasks lie behind all intervals of earlier ones
    reach = np.maximum.accumulate(until + rank * room) - rank * room
    before = np.concatenate([[0], reach[:-1]])
    before[starts_of(of)] = 0
    own = np.maximum(until - np.maximum(begin, before), 0)
    return _sums(of, own * float(_TICK_NS), tasks)
