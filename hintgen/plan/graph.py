"""The graph of a workload in arrays: reads and writes of tasks, stages, computing times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Ints, order_by, starts_of
from tracehint.analyzer.dataflow.model import Rows
from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE, Floats, Workload
from tracehint.errors import InputError


@dataclass
class Moves(Rows):
    """Bytes of each file moved by each task: one row per pair, sorted by file, then task."""

    task: Ints
    file: Ints
    bytes: Ints


@dataclass(frozen=True)
class Graph:
    """Data flow of a workload. `link_*`: reads of another task's output, with the bytes read.

    By file: `writer` (the one with most bytes; -1: an input), number of `writers` and `readers`.
    By task: `stage`, the longest distance from the start, and `seconds` of computing.
    """

    tasks: int
    files: int
    reads: Moves
    writes: Moves
    link_from: Ints
    link_to: Ints
    link_file: Ints
    link_bytes: Ints
    writer: Ints
    writers: Ints
    readers: Ints
    stage: Ints
    seconds: Floats


def graph_of(work: Workload) -> Graph:
    """Return the graph of a workload. Raises InputError for cyclic dependencies."""
    task = np.repeat(np.arange(work.tasks), np.diff(work.op_begin))
    reads, writes = (_moves(work, task, kind) for kind in (READ, WRITE))
    writer = np.full(work.files, -1, np.int64)
    last = np.lexsort((-writes.task, writes.bytes, writes.file))
    writer[writes.file[last]] = writes.task[last]
    source = writer[reads.file]
    handed = (source >= 0) & (source != reads.task)
    computing = work.of_kind(COMPUTE)
    return Graph(
        tasks=work.tasks,
        files=work.files,
        reads=reads,
        writes=writes,
        link_from=source[handed],
        link_to=reads.task[handed],
        link_file=reads.file[handed],
        link_bytes=reads.bytes[handed],
        writer=writer,
        writers=np.bincount(writes.file, minlength=work.files),
        readers=np.bincount(reads.file, minlength=work.files),
        stage=_stages(work),
        seconds=np.bincount(task[computing], work.op_seconds[computing], work.tasks).astype(float),
    )


def _moves(work: Workload, task: Ints, kind: int) -> Moves:
    rows = np.flatnonzero(work.of_kind(kind))
    task, file, moved = task[rows], work.op_file[rows].astype(np.int64), work.op_bytes[rows]
    order = order_by(file, task)
    task, file, moved = task[order], file[order], moved[order]
    first = starts_of(file, task)
    if not len(first):
        return Moves(task, file, moved)
    return Moves(task[first], file[first], np.add.reduceat(moved, first))


def _stages(work: Workload) -> Ints:
    """Return the longest distance of each task from a task without dependencies."""
    stage = np.zeros(work.tasks, np.int64)
    missing = np.bincount(work.dep, minlength=work.tasks)
    ready = np.flatnonzero(missing == 0)
    number, done = 0, 0
    while len(ready):
        stage[ready] = number
        done += len(ready)
        begin, end = work.dep_begin[ready], work.dep_begin[ready + 1]
        after = work.dep[_expand_ranges(begin, end)].astype(np.int64)
        waiting, count = np.unique(after, return_counts=True)
        missing[waiting] -= count
        ready = waiting[missing[waiting] == 0]
        number += 1
    if done < work.tasks:
        raise InputError(
            f"{work.tasks - done} of {work.tasks} tasks wait for each other",
            "A run must be a graph without cycles: check the declared inputs and outputs.",
        )
    return stage


def _expand_ranges(begin: Ints, end: Ints) -> Ints:
    """Return the concatenated integers of all half-open ranges [begin, end)."""
    length = end - begin
    starts = np.cumsum(length) - length
    return np.repeat(begin - starts, length) + np.arange(int(length.sum()))


def find_gatherers(graph: Graph) -> Ints:
    """Return the task that gathers each file, its only reader, fed by several; -1: not gathered."""
    single = (graph.readers == 1) & (graph.writers > 0)
    rows = np.flatnonzero(single[graph.link_file])
    file, reader, writer = graph.link_file[rows], graph.link_to[rows], graph.link_from[rows]
    pairs = np.unique(np.stack([reader, writer]), axis=1)
    feeding = np.bincount(pairs[0], minlength=graph.tasks)
    found = np.full(graph.files, -1, np.int64)
    some = feeding[reader] >= 2
    found[file[some]] = reader[some]
    return found
