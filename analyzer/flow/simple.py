"""Files whose writing was over before anybody else began to read: nearly all files of a run.

Each has one version, and the last writer of a byte is the only task that wrote it. Everything
else (see `is_simple`) goes the long way of `owners` and `versions`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.flow.access import is_mutation, pieces
from tracehint.analyzer.flow.model import (
    HOLE,
    READ,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Found,
    Links,
    Objects,
    Owned,
    Reads,
    Versions,
    Writes,
)
from tracehint.analyzer.flow.ranges import group_ids, overlaps, union

_NEVER = np.iinfo(np.int64).max


@dataclass
class ObjectFacts:
    """Facts per object about who changed and who read it, and when."""

    low: Ints  # smallest and largest task that changed it; low > high: nobody
    high: Ints
    changed_last: Ints
    written_first: Ints
    truncated_last: Ints
    other_read_first: Ints  # by a task other than `low`
    own_read: Bools  # by `low`
    hole: Bools
    cut_low: Ints  # smallest and largest size that it was truncated to
    cut_high: Ints


def look(access: Access, count: int) -> ObjectFacts:
    """The facts of `ObjectFacts`, in one pass over the accesses."""
    change = access.take(is_mutation(access.op))
    reads = np.flatnonzero(access.op == READ)  # not all columns: they may be most of the memory
    read_obj, read_task = access.obj[reads], access.task[reads]
    low, high = np.full(count, _NEVER), np.full(count, UNKNOWN, np.int64)
    np.minimum.at(low, change.obj, change.task)
    np.maximum.at(high, change.obj, change.task)
    changed, truncated = np.full(count, -_NEVER), np.full(count, -_NEVER)
    np.maximum.at(changed, change.obj, change.last)
    cut = change.op == TRUNCATE
    np.maximum.at(truncated, change.obj[cut], change.last[cut])
    written, others = np.full(count, _NEVER), np.full(count, _NEVER)
    np.minimum.at(written, change.obj[~cut], change.first[~cut])
    foreign = read_task != low[read_obj]
    np.minimum.at(others, read_obj[foreign], access.first[reads[foreign]])
    own, hole = np.zeros(count, bool), np.zeros(count, bool)
    own[read_obj[~foreign]] = True
    hole[change.obj[change.op == HOLE]] = True
    cut_low, cut_high = np.full(count, _NEVER), np.full(count, UNKNOWN, np.int64)
    np.minimum.at(cut_low, change.obj[cut], change.start[cut])
    np.maximum.at(cut_high, change.obj[cut], change.start[cut])
    return ObjectFacts(low, high, changed, written, truncated, others, own, hole, cut_low, cut_high)


def is_simple(access: Access, objects: Objects, seen: ObjectFacts) -> Bools:
    """Per object: changed by nobody, or every change came before every other task's read.

    One task may truncate, to one size, before it writes. It may read its own bytes back if
    the file was made in the run. Several tasks may write if none of them reads.
    """
    untouched = seen.low > seen.high
    single = seen.low == seen.high
    no_cut = seen.truncated_last == -_NEVER
    ordered = (seen.other_read_first >= seen.changed_last) & ~seen.hole
    early = (seen.truncated_last <= seen.written_first) & (seen.cut_low == seen.cut_high)
    ordered &= no_cut | (single & early)
    reads_back = seen.own_read & ((objects.existed != 0) | ~single)
    several = ~single & ~untouched
    some = access.take(several[access.obj])
    both = np.zeros(len(objects), bool)
    if len(some):
        order = order_by(some.obj, some.task)
        first = starts_of(some.obj[order], some.task[order])
        reads = np.maximum.reduceat((some.op == READ)[order], first)
        writes = np.maximum.reduceat((some.op != READ)[order], first)
        both[some.obj[order][first][reads & writes]] = True
    return np.asarray(untouched | (ordered & ~reads_back & ~both))


@dataclass
class TaskSpans:
    """Disjoint ranges per (object, task), sorted by object, then start."""

    obj: Ints
    task: Ints
    start: Ints
    end: Ints


def written_spans(writes: Access) -> TaskSpans:
    """The union of each task's written ranges."""
    order = order_by(writes.obj, writes.task, writes.start)
    obj, task = writes.obj[order], writes.task[order]
    first = starts_of(obj, task)
    group, start, end = union(group_ids(first, len(obj)), writes.start[order], writes.end[order])
    obj, task = obj[first][group], task[first][group]
    order = order_by(obj, start)
    return TaskSpans(obj[order], task[order], start[order], end[order])


def overlapping(spans: TaskSpans, count: int) -> Bools:
    """Per object: whether ranges of different tasks overlap."""
    found = np.zeros(count, bool)
    hit = (spans.obj[1:] == spans.obj[:-1]) & (spans.end[:-1] > spans.start[1:])
    found[spans.obj[1:][hit]] = True
    return found


def solve(
    access: Access, objects: Objects, general: Bools, notes: list[str]
) -> tuple[Found, Bools]:
    """What the simple objects yield, and which objects are not simple.

    `general` marks objects that are to be left out although they look simple.
    """
    count = len(objects)
    seen = look(access, count)
    simple = is_simple(access, objects, seen) & ~general
    writes = pieces(access.take((access.op == WRITE) & simple[access.obj]), notes)
    spans = written_spans(writes)
    clash = overlapping(spans, count)
    if clash.any():
        simple &= ~clash
        writes = writes.take(simple[writes.obj])
        spans = written_spans(writes)
    readers = (access.op == READ) & simple[access.obj] & (access.task != seen.low[access.obj])
    reads = pieces(access.take(readers), notes)
    touched = np.zeros(count, bool)
    touched[access.obj] = True
    made = touched & simple
    return Found(
        _writes(writes),
        Owned.empty(),
        _reads(reads),
        _links(reads, spans),
        _versions(access, objects, seen, made),
    ), ~simple


def _writes(rows: Access) -> Writes:
    zero = np.zeros(len(rows), np.int64)
    return Writes(
        rows.obj,
        zero,
        rows.task,
        rows.start,
        rows.end,
        rows.bytes,
        rows.how,
        rows.first,
        rows.last,
        rows.exact,
        zero != 0,
        zero == 0,
    )


def _reads(rows: Access) -> Reads:
    return Reads(
        rows.obj,
        np.zeros(len(rows), np.int64),
        rows.task,
        rows.start,
        rows.end,
        rows.bytes,
        rows.how,
        rows.first,
        rows.last,
        rows.exact,
    )


def _links(reads: Access, spans: TaskSpans) -> Links:
    i, j = overlaps(reads.obj, reads.start, reads.end, spans.obj, spans.start, spans.end)
    start = np.maximum(reads.start[i], spans.start[j])
    end = np.minimum(reads.end[i], spans.end[j])
    no = np.zeros(len(i), bool)
    return Links(
        reads.obj[i], np.zeros(len(i), np.int64), spans.task[j], reads.task[i], start, end, no, no
    )


def _versions(access: Access, objects: Objects, seen: ObjectFacts, made: Bools) -> Versions:
    """One version each; its size from the collector, or as far as it was written."""
    size = objects.size.copy()
    still = (seen.truncated_last == -_NEVER) & (objects.existed != 0)
    size[still] = np.maximum(size, objects.opened_size)[still]
    # what was read of a file of unknown size shows how large it is, once it was changed
    shows = (access.op == READ) & access.exact & (seen.low <= seen.high)[access.obj]
    rows = access.take((is_mutation(access.op) | shows) & made[access.obj])
    far = rows.end + (rows.count - 1) * np.maximum(rows.stride, 0)
    np.maximum.at(size, rows.obj, np.where(rows.op == TRUNCATE, rows.start, far))
    at = np.flatnonzero(made)
    return Versions(at, np.zeros(len(at), np.int64), size[at])
