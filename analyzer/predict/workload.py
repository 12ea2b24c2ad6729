"""A workload from an analysis: what each task reads, computes and writes, and whom it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, finder, order_by, starts_of
from tracehint.analyzer.columns import codes, column, floats
from tracehint.analyzer.predict.model import READ, WRITE, Floats, Workload
from tracehint.analyzer.predict.operations import Operations, accesses, with_computing
from tracehint.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis

MAX_OPERATIONS = 1 << 28  # what the engine takes


@dataclass(frozen=True)
class ScaleFactors:
    """Factors on the sizes of all files and on the times of all tasks."""

    bytes: float = 1.0
    seconds: float = 1.0


def from_analysis(analysis: Analysis, scale: ScaleFactors | None = None) -> Workload:
    """The workload of a run; what it does not say is assumed, and the notes say what.

    Raises InputError for a run without tasks, or with tasks that wait for each other.
    """
    scale = scale or ScaleFactors()
    tasks, notes = _work(analysis.tasks)
    start, end = _times(tasks, scale, notes)
    files = _data(analysis.files)
    task_id, file_id = column(tasks, "task"), column(files, "file")
    sizes = _sizes(analysis, files, file_id, notes)
    reads = accesses(analysis.consumers, READ, task_id, file_id, sizes)
    writes = accesses(analysis.producers, WRITE, task_id, file_id, sizes)
    moves = Operations.joined([reads, writes])
    _note_order(moves, notes)
    moves.when *= scale.seconds
    operations = _checked(with_computing(_scaled(moves, scale), start, end))
    dep_begin, dep = _waiting(analysis.edges, task_id, start, notes)
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
        guessed=_guessed(tasks, files),
    )


def _checked(operations: Operations) -> Operations:
    if len(operations) > MAX_OPERATIONS:
        raise InputError(
            f"{len(operations):,} reads and writes are too many to simulate",
            f"At most {MAX_OPERATIONS:,} can be.",
        )
    return operations


def _work(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """Tasks that do the work, in the order of their start; the engines' processes are left out."""
    import pyarrow.compute as pc

    work = table.filter(pc.invert(pc.fill_null(table.column("engine"), False)))
    if not work.num_rows:
        raise InputError("the run has no task to simulate", "Record or import one with tasks.")
    notes = []
    if left := table.num_rows - work.num_rows:
        notes.append(
            f"of the engine {left:,} {'process is' if left == 1 else 'processes are'} left out"
        )
    order = np.lexsort((column(work, "task"), np.nan_to_num(floats(work, "start_s"))))
    return work.take(order), notes


def _times(tasks: pa.Table, scale: ScaleFactors, notes: list[str]) -> tuple[Floats, Floats]:
    """Start and end of each task, scaled; a task without an end computes for no time."""
    start, end = floats(tasks, "start_s"), floats(tasks, "end_s")
    bare = np.isnan(start) | np.isnan(end)
    if bare.any():
        notes.append(f"{int(bare.sum())} of {len(start)} tasks have no times: taken as 0 s")
    start = np.nan_to_num(start)
    end = np.where(bare, start, np.maximum(np.nan_to_num(end), start))
    return start * scale.seconds, end * scale.seconds


def _guessed(tasks: pa.Table, files: pa.Table) -> float:
    """The share of the tasks without times, or of the files without a size if that is larger."""
    bare = np.isnan(floats(tasks, "start_s")) | np.isnan(floats(tasks, "end_s"))
    unsized = column(files, "size_bytes") < 0
    return float(max(bare.mean(), unsized.mean() if len(unsized) else 0.0))


def _computing_share(tasks: pa.Table, notes: list[str]) -> Floats:
    """Of the time of each task, what is not waiting for files: that is left to the simulation."""
    lasted = floats(tasks, "end_s") - floats(tasks, "start_s")
    waited = floats(tasks, "io_wait_s")
    timed, known = lasted > 0, (lasted > 0) & ~np.isnan(waited)
    if known.any():
        notes.append(
            f"of {_of(known, timed)} the time in which they had files in use and no processor is "
            "left out as waiting for I/O; other waiting counts as computing"
        )
    if (timed & ~known).any():
        notes.append(
            f"the recorded times of {_of(timed & ~known, timed)} count as computing: waiting for "
            "I/O in them is not known"
        )
    share = np.divide(lasted - waited, lasted, out=np.ones(len(lasted)), where=known)
    return np.asarray(np.clip(share, 0.0, 1.0), np.float64)


def _type_names(tasks: pa.Table) -> list[str]:
    named = tasks.column("type").fill_null("").combine_chunks().dictionary_encode()
    return list(named.dictionary.to_pylist())


def _busy_share(tasks: pa.Table) -> Floats:
    """Of the computing of each task, what it spends on a processor (1 where that is not known):
    the rest is sleeping and other waiting."""
    lasted = floats(tasks, "end_s") - floats(tasks, "start_s")
    alone = lasted - np.nan_to_num(floats(tasks, "io_wait_s"))
    used = floats(tasks, "cpu_s")
    share = np.divide(used, alone, out=np.ones(len(used)), where=(alone > 0) & ~np.isnan(used))
    return np.asarray(np.clip(share, 0.0, 1.0), np.float64)


def _of(some: Bools, every: Bools) -> str:
    count = int(some.sum())
    return "all tasks" if count == int(every.sum()) else f"{count} of {int(every.sum())} tasks"


def _data(files: pa.Table) -> pa.Table:
    """Files on the store: all but software."""
    import pyarrow.compute as pc

    return files.filter(pc.not_equal(pc.fill_null(files.column("role"), ""), "software"))


def _sizes(analysis: Analysis, files: pa.Table, ids: Ints, notes: list[str]) -> Ints:
    """Sizes in bytes; unknown ones are as large as what tasks moved of them."""
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
            f"{int(unknown.sum())} of {len(ids)} files have no size: as large as what was moved"
            + (f"; {bare} count as empty" if bare else "")
        )
    return np.where(unknown, seen, sizes)


def _note_order(moves: Operations, notes: list[str]) -> None:
    bare = int(np.isnan(moves.when).sum())
    if bare:
        notes.append(
            f"{bare} of {len(moves)} reads and writes have no time: "
            "a task reads first, then computes, then writes"
        )


def _scaled(moves: Operations, scale: ScaleFactors) -> Operations:
    if scale.bytes != 1:
        ends = np.rint((moves.start + moves.length) * scale.bytes).astype(np.int64)
        moves.start = np.rint(moves.start * scale.bytes).astype(np.int64)
        moves.length = ends - moves.start
        moves.bytes = np.rint(moves.bytes * scale.bytes).astype(np.int64)
    return moves


def _waiting(edges: pa.Table, tasks: Ints, start: Floats, notes: list[str]) -> tuple[Ints, Ints]:
    """(begin, tasks that wait) by task, in the order of the tasks.

    With times, a task waits for those that started before it. Without, tasks that wait for each
    other are an error.
    """
    find = finder(tasks)
    before, after = find(column(edges, "producer")), find(column(edges, "consumer"))
    keep = (before >= 0) & (after >= 0) & (before != after)
    before, after = before[keep], after[keep]
    backwards = before > after
    if backwards.any() and len(start) and start.max() > start.min():
        notes.append(
            f"{int(backwards.sum())} reads of what a task wrote that started later wait for nothing"
        )
        before, after = before[~backwards], after[~backwards]
    order = order_by(before, after)
    order = order[starts_of(before[order], after[order])]
    before, after = before[order], after[order]
    return np.searchsorted(before, np.arange(len(tasks) + 1)).astype(np.int64), after
