"""Workload of an analysis: reads, computing and writes of each task, and its dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    codes,
    column,
    finder,
    floats,
    order_by,
    starts_of,
)
from tracehint.analyzer.dataflow.model import Rows
from tracehint.analyzer.dataflow.ranges import expand
from tracehint.analyzer.predict.cluster import Dispatch
from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE, Floats, Workload
from tracehint.errors import InputError
from tracehint.schemas.wording import agree

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis


MAX_RANGES = 8  # per task and file; more are merged into one range from the first to the last
PIECES = 20  # maximum number of pieces into which the computing of a task is split


@dataclass
class Operations(Rows):
    """Reads, writes and computing. `when`: time at which it happens; `seconds`: of a read, the time
    from its first to its last access, which computing can overlap."""

    task: Ints
    kind: Ints
    file: Ints
    start: Ints
    length: Ints
    bytes: Ints
    seconds: Floats
    when: Floats


def accesses(table: pa.Table, kind: int, tasks: Ints, files: Ints, sizes: Ints) -> Operations:
    """Return one operation per range of each row of `producers` or `consumers`.

    `tasks` and `files`: keys to include; other rows are skipped. `when`: time of the first access
    for reads, of the last for writes, in seconds of the run; NaN: unknown.
    """
    task, file = finder(tasks)(column(table, "task")), finder(files)(column(table, "file"))
    keep = np.flatnonzero((task >= 0) & (file >= 0))
    table, task, file = table.take(keep), task[keep], file[keep]
    moved = column(table, "unique_bytes")
    moved = np.where(moved < 0, column(table, "bytes"), moved)
    moved = np.where(moved < 0, sizes[file], moved)
    first, last = (
        np.where(_are_declared(table), np.nan, floats(table, name))
        for name in ("first_s", "last_s")
    )
    row, start, length, many = _ranges(table, moved)
    # files with many read ranges get no read-ahead: their reads overlap no computing
    overlap = np.nan_to_num(last - first) * (~many & (kind == READ))
    # a row's bytes are divided among its ranges in proportion to their length
    total = np.bincount(row, length, len(table))
    share = np.divide(length, total[row], out=np.ones(len(row)), where=total[row] > 0)
    return Operations(
        task=task[row],
        kind=np.full(len(row), kind),
        file=file[row],
        start=start,
        length=length,
        bytes=np.rint(moved[row] * share).astype(np.int64),
        seconds=overlap[row] * share,
        when=(first if kind == READ else last)[row],
    )


def _are_declared(table: pa.Table) -> Bools:
    """Mark rows that are declared only, not observed: their times are those of the task."""
    import pyarrow.compute as pc

    how = table.column("how").combine_chunks()
    seen = pc.not_equal(how.flatten(), "declared").to_numpy(zero_copy_only=False)
    row = pc.list_parent_indices(how).to_numpy()
    return np.asarray(np.bincount(row[seen], minlength=len(how)) == 0)


def _ranges(table: pa.Table, moved: Ints) -> tuple[Ints, Ints, Ints, Bools]:
    """Return (row, start, length) of the ranges of each row, in order (rows without ranges: the
    first `moved` bytes), and the mask of rows with more than MAX_RANGES."""
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
    return row[order], start[order], length[order], many


def insert_computing(moves: Operations, start: Floats, end: Floats) -> Operations:
    """Return all operations, sorted by task and time, with the computing between them.

    `start`, `end`: times of the tasks. The computing before an operation is the time since the
    previous operation. Operations of unknown time: reads at the start, writes at the end.
    """
    begin, until = start[moves.task], end[moves.task]
    when = np.where(np.isnan(moves.when), np.where(moves.kind == READ, begin, until), moves.when)
    when = np.clip(when, begin, np.maximum(begin, until))
    step = np.maximum(until - begin, 1e-9) / PIECES
    part = (when - begin) / step
    # round reads down to the start of their piece, writes up to its end
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
    gaps = _make_computing(moves.task, moves.when, (moves.when - before) * length[moves.task])
    tails = _make_computing(
        np.arange(len(start)), np.full(len(start), np.inf), (PIECES - last) * length
    )
    joined = Operations.concat_parts([moves, gaps, tails])
    # computing precedes the operation at the same time
    rank = np.where(joined.kind == COMPUTE, -1, joined.kind)
    return joined.take(np.lexsort((joined.file, rank, joined.when, joined.task)))


def _make_computing(task: Ints, when: Floats, seconds: Floats) -> Operations:
    some = np.flatnonzero(seconds > 1e-9)
    zero = np.zeros(len(some), np.int64)
    return Operations(
        task[some], zero + COMPUTE, zero - 1, zero, zero, zero, seconds[some], when[some]
    )


MAX_OPERATIONS = 1 << 28  # limit of the engine


@dataclass(frozen=True)
class ScaleFactors:
    """Factors on the sizes of all files and on the times of all tasks."""

    bytes: float = 1.0
    seconds: float = 1.0


def from_analysis(analysis: Analysis, scale: ScaleFactors | None = None) -> Workload:
    """Return the workload of a run; missing data is assumed, and the assumptions are in `notes`.

    Raises InputError for a run without tasks or with too many operations.
    """
    scale = scale or ScaleFactors()
    tasks, notes = _select_tasks(analysis.tasks)
    start, end = _times(tasks, scale, notes)
    files = _select_files(analysis.files)
    task_id, file_id = column(tasks, "task"), column(files, "file")
    sizes = _sizes(analysis, files, file_id, notes)
    reads = accesses(analysis.consumers, READ, task_id, file_id, sizes)
    writes = accesses(analysis.producers, WRITE, task_id, file_id, sizes)
    moves = Operations.concat_parts([reads, writes])
    _note_order(moves, notes)
    moves.when *= scale.seconds
    moves.seconds *= scale.seconds
    operations = _check_amount(insert_computing(_scale_moves(moves, scale), start, end))
    dep_begin, dep = _find_waiting_tasks(analysis.edges, task_id, start, notes)
    dispatch = dispatch_of(*_seen_times(tasks), dep_begin, dep)
    notes += [dispatch.source] if dispatch.source else []
    return Workload(
        task_id=task_id,
        names=tasks.column("name").fill_null("").to_pylist(),
        type=codes(tasks, "type").astype(np.int32),
        type_names=_type_names(tasks),
        cores=np.ones(len(task_id), np.int32),
        op_begin=np.searchsorted(operations.task, np.arange(len(task_id) + 1)).astype(np.int64),
        op_kind=operations.kind.astype(np.int32),
        op_file=operations.file.astype(np.int32),
        op_start=operations.start,
        op_length=operations.length,
        op_bytes=operations.bytes,
        op_seconds=operations.seconds * _computing_share(tasks, notes)[operations.task],
        busy=_busy_share(tasks),
        dep_begin=dep_begin,
        dep=dep.astype(np.int32),
        size=np.rint(sizes * scale.bytes).astype(np.int64),
        produced=np.isin(np.arange(len(file_id)), writes.file).astype(np.int32),
        file_id=file_id,
        notes=notes,
        guessed=_guessed_share(tasks, files),
        dispatch=dispatch,
    )


def _check_amount(operations: Operations) -> Operations:
    if len(operations) > MAX_OPERATIONS:
        raise InputError(
            f"{len(operations):,} reads and writes are too many to simulate",
            f"The limit is {MAX_OPERATIONS:,}.",
        )
    return operations


def _select_tasks(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Return the tasks in the order of their start, without processes of engines, and notes."""
    import pyarrow.compute as pc

    work = table.filter(pc.invert(pc.fill_null(table.column("engine"), False)))
    if not work.num_rows:
        raise InputError("the run has no task to simulate", "Record or import one with tasks.")
    notes = []
    if left := table.num_rows - work.num_rows:
        notes.append(agree(left, "{n} [process|processes] of the engine left out"))
    order = np.lexsort((column(work, "task"), np.nan_to_num(floats(work, "start_s"))))
    return work.take(order), notes


def _times(tasks: pa.Table, scale: ScaleFactors, notes: list[str]) -> tuple[Floats, Floats]:
    """Return start and end of each task, scaled; tasks without times have a duration of 0."""
    start, end = floats(tasks, "start_s"), floats(tasks, "end_s")
    bare = np.isnan(start) | np.isnan(end)
    if bare.any():
        notes.append(f"{int(bare.sum())} of {len(start)} tasks without times: counted as 0 s")
    start = np.nan_to_num(start)
    end = np.where(bare, start, np.maximum(np.nan_to_num(end), start))
    return start * scale.seconds, end * scale.seconds


def _seen_times(tasks: pa.Table) -> tuple[Floats, Floats, Bools]:
    """Return start and end as recorded, and which tasks were observed: the start in an engine's log
    can be the time of submission."""
    start, end = floats(tasks, "start_s"), floats(tasks, "end_s")
    timed = ~(np.isnan(start) | np.isnan(end))
    start = np.nan_to_num(start)
    end = np.where(timed, np.nan_to_num(end), start)
    learned = np.array([source == "learned" for source in tasks.column("source").to_pylist()], bool)
    return start, np.maximum(start, end), timed & ~learned & ~_are_logged(tasks)


def _are_logged(tasks: pa.Table) -> Bools:
    return np.array([source == "declared" for source in tasks.column("source").to_pylist()], bool)


def _guessed_share(tasks: pa.Table, files: pa.Table) -> float:
    """Return the share of tasks without times or of files without a size, whichever is larger."""
    bare = np.isnan(floats(tasks, "start_s")) | np.isnan(floats(tasks, "end_s"))
    unsized = column(files, "size_bytes") < 0
    return float(max(bare.mean(), unsized.mean() if len(unsized) else 0.0))


def _computing_share(tasks: pa.Table, notes: list[str]) -> Floats:
    """Return the share of each task's time that is not waiting for files, which is simulated."""
    lasted = floats(tasks, "end_s") - floats(tasks, "start_s")
    waited = floats(tasks, "io_wait_s")
    timed, known = lasted > 0, (lasted > 0) & ~np.isnan(waited)
    if known.any():
        notes.append(
            f"of {_format_share(known, timed)} the time in which they had files in use and no "
            "processor is left out as waiting for I/O; other waiting counts as computing"
        )
    logged = timed & ~known & _are_logged(tasks)
    if logged.any():
        notes.append(
            f"the times of {_format_share(logged, timed)} are those of an engine's log, in which "
            "waiting for slots and files counts as computing (--learned RUN: those of a recorded "
            "run)"
        )
    if (rest := timed & ~known & ~logged).any():
        notes.append(
            f"the recorded times of {_format_share(rest, timed)} count as computing: waiting for "
            "I/O in them is not known"
        )
    share = np.divide(lasted - waited, lasted, out=np.ones(len(lasted)), where=known)
    return np.asarray(np.clip(share, 0.0, 1.0), np.float64)


def _type_names(tasks: pa.Table) -> list[str]:
    named = tasks.column("type").fill_null("").combine_chunks().dictionary_encode()
    return list(named.dictionary.to_pylist())


def _busy_share(tasks: pa.Table) -> Floats:
    """Return the share of each task's computing spent on a processor (1 if unknown); the rest is
    sleeping and other waiting."""
    lasted = floats(tasks, "end_s") - floats(tasks, "start_s")
    alone = lasted - np.nan_to_num(floats(tasks, "io_wait_s"))
    used = floats(tasks, "cpu_s")
    share = np.divide(used, alone, out=np.ones(len(used)), where=(alone > 0) & ~np.isnan(used))
    return np.asarray(np.clip(share, 0.0, 1.0), np.float64)


def _format_share(some: Bools, every: Bools) -> str:
    count = int(some.sum())
    return "all tasks" if count == int(every.sum()) else f"{count} of {int(every.sum())} tasks"


def _select_files(files: pa.Table) -> pa.Table:
    """Return the files on the store: all except software."""
    import pyarrow.compute as pc

    return files.filter(pc.not_equal(pc.fill_null(files.column("role"), ""), "software"))


def _sizes(analysis: Analysis, files: pa.Table, ids: Ints, notes: list[str]) -> Ints:
    """Return sizes in bytes; an unknown size is the most unique bytes that a task moved."""
    sizes = column(files, "size_bytes")
    unknown = sizes < 0
    seen = np.zeros(len(ids), np.int64)
    for table in (analysis.producers, analysis.consumers):
        at = finder(ids)(column(table, "file"))
        moved = np.maximum(column(table, "unique_bytes"), 0)
        np.maximum.at(seen, at[at >= 0], moved[at >= 0])
    if unknown.any():
        bare = int((unknown & (seen == 0)).sum())
        notes.append(
            f"{int(unknown.sum())} of {len(ids)} files without a size: as large as what was moved"
            + (f"; {bare} counted as empty" if bare else "")
        )
    return np.where(unknown, seen, sizes)


def _note_order(moves: Operations, notes: list[str]) -> None:
    bare = int(np.isnan(moves.when).sum())
    if bare:
        notes.append(
            f"{bare} of {len(moves)} reads and writes without a time: "
            "a task reads first, then computes, then writes"
        )


def _scale_moves(moves: Operations, scale: ScaleFactors) -> Operations:
    if scale.bytes != 1:
        ends = np.rint((moves.start + moves.length) * scale.bytes).astype(np.int64)
        moves.start = np.rint(moves.start * scale.bytes).astype(np.int64)
        moves.length = ends - moves.start
        moves.bytes = np.rint(moves.bytes * scale.bytes).astype(np.int64)
    return moves


def _find_waiting_tasks(
    edges: pa.Table, tasks: Ints, start: Floats, notes: list[str]
) -> tuple[Ints, Ints]:
    """Return the dependents of each task as (offsets, dependents), in the order of the tasks.

    If tasks have times, only tasks that started earlier are waited for. Otherwise all edges are
    kept; cycles among them are an error in the simulation.
    """
    find = finder(tasks)
    before, after = find(column(edges, "producer")), find(column(edges, "consumer"))
    keep = (before >= 0) & (after >= 0) & (before != after)
    before, after = before[keep], after[keep]
    backwards = before > after
    if backwards.any() and len(start) and start.max() > start.min():
        notes.append(
            agree(
                int(backwards.sum()),
                "{n} [read|reads] of what a task wrote that started later: not waited for",
            )
        )
        before, after = before[~backwards], after[~backwards]
    order = order_by(before, after)
    order = order[starts_of(before[order], after[order])]
    before, after = before[order], after[order]
    return np.searchsorted(before, np.arange(len(tasks) + 1)).astype(np.int64), after


# How engine and scheduler started the tasks.

MIN_SAMPLES = 3  # minimum number of samples for an estimate
FULL_SHARE = 0.9  # share of the maximum number of concurrent tasks at which the run counts as full
MAX_SPREAD = 0.5  # maximum deviation / mean of start intervals that do not result from tasks' ends
CAUSED_SHARE = 0.25  # share of a start interval: a start so soon after a task's end is caused by it


def dispatch_of(start: Floats, end: Floats, seen: Bools, dep_begin: Ints, dep: Ints) -> Dispatch:
    """Estimate the start delays of tasks beyond waiting for their inputs and a free slot.

    Tasks are in the order of their start; `seen`: tasks whose times were observed. A task whose
    inputs were ready before the previous task started waited for its turn: the time between the two
    starts is a sample of the interval, unless the end of a task shortly before is the cause, or the
    run was full after the inputs were ready and the intervals are irregular, as ends of tasks are.
    Other tasks are samples of the delay: they waited since their last input or since a slot became
    free in a full run.
    """
    first = start[:1]
    ready = np.full(len(start), start.min(initial=np.inf))
    np.maximum.at(ready, dep, np.repeat(end, np.diff(dep_begin)))
    slot = _last_free_core(start, end)
    able = np.minimum(np.maximum(ready, slot), start)
    before, since = np.concatenate([first, start[:-1]]), _last_up_to(np.sort(end), start)
    gap = start - before
    turn = (ready < before) & (np.minimum(gap, start - since) >= CAUSED_SHARE * gap)
    gaps, full = gap[seen & turn & (slot <= ready)], gap[seen & turn & (slot > ready)]
    if len(full) and full.std() < MAX_SPREAD * full.mean():
        gaps = np.concatenate([gaps, full])
    interval = float(gaps.mean()) if len(gaps) >= MIN_SAMPLES else 0.0
    waits = (start - able)[seen & ~turn & (able >= before) & (start > first)]
    delay = max(0.0, float(np.median(waits)) - interval) if len(waits) >= MIN_SAMPLES else 0.0
    if not delay and not interval:
        return Dispatch()
    source = (
        f"as recorded, a task starts {delay:.3g} s after its inputs and a slot are there (median "
        f"of {len(waits)}), and one each {interval:.3g} s (mean of {len(gaps)}); longer where the "
        "cluster file states it"
    )
    return Dispatch(delay, interval, source)


def _last_free_core(start: Floats, end: Floats) -> Floats:
    """Return per task the last time before its start at which a task ended while the run was (at
    FULL_SHARE or more) full: slots whose next task is just being started also count as used."""
    when, step = np.concatenate([end, start]), np.repeat([-1, 1], len(start))
    order = np.lexsort((step, when))  # at equal times, ends before starts: a slot is reused
    running = np.cumsum(step[order])
    fell = (step[order] < 0) & (running + 1 >= FULL_SHARE * running.max(initial=1))
    return _last_up_to(when[order][fell], start)


def _last_up_to(times: Floats, start: Floats) -> Floats:
    """Return the last of the sorted times up to each start; -inf: none."""
    return np.asarray(np.concatenate([[-np.inf], times])[np.searchsorted(times, start, "right")])
