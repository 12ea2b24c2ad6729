"""File versions: order of events, last writer of each byte, first event of each version."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, composite, distinct, ints, order_by, starts_of
from tracehint.analyzer.dataflow.accesses import is_mutation, pieces
from tracehint.analyzer.dataflow.model import (
    EXTEND,
    HOLE,
    READ,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Objects,
    Rows,
)
from tracehint.analyzer.dataflow.ranges import expand, group_ids, running_max

END = 1 << 61  # the end of a truncation's range: beyond every byte


@dataclass
class Events(Rows):
    """Accesses of single ranges, sorted by object, then in order of time.

    `actor` is the task that made the access, `owner` the task that owns the bytes from then on;
    they differ only for an engine's complete copy. `hole`: the bytes are gone or zero afterwards.
    `size`: of the file afterwards. `loose`: a write that may not have replaced its whole range.
    """

    obj: Ints
    op: Ints
    actor: Ints
    owner: Ints
    start: Ints
    end: Ints
    bytes: Ints
    how: Ints
    first: Ints
    last: Ints
    exact: Bools
    loose: Bools
    hole: Bools
    size: Ints
    copied: Bools
    proc: Ints


def events_of(access: Access, objects: Objects, notes: list[str]) -> Events:
    """Return the accesses as ordered events; truncations that remove nothing touch no byte."""
    position, tie = _positions(access)
    order = order_by(access.obj, position, tie, access.seq)
    access, position = access.take(order), position[order]
    rank = np.arange(len(access))
    size, shrinks = sizes(access, objects)
    cut = Access(**{**access.__dict__, "proc": rank})  # row number, kept while runs are expanded
    cut = pieces(cut, notes)
    cut = cut.take(np.argsort(cut.proc, kind="stable"))
    row = cut.proc
    cut.op[(cut.op == TRUNCATE) & ~shrinks[row]] = EXTEND
    truncated = cut.op == TRUNCATE
    return Events(
        obj=cut.obj,
        op=cut.op,
        actor=cut.task,
        owner=cut.task,
        start=cut.start,
        end=np.where(truncated, END, cut.end),
        bytes=cut.bytes,
        how=cut.how,
        first=cut.first,
        last=cut.last,
        exact=cut.exact,
        loose=~cut.exact & (cut.op == WRITE),
        hole=truncated | (cut.op == HOLE),
        size=size[row],
        copied=np.zeros(len(cut), bool),
        proc=access.proc[row],
    )


def epochs(events: Events) -> Ints:
    """Return an increasing number per object and period between its truncations to size 0."""
    new = (events.op == TRUNCATE) & (events.start == 0)
    new[starts_of(events.obj)] = True
    return np.asarray(np.cumsum(new) - 1, np.int64)


def _positions(access: Access) -> tuple[Ints, Ints]:
    """Return the time and tie-breaker that order each access: changes count from their start,
    reads at their end, but before the same task's next change if they overlap it."""
    position = np.where(access.op == READ, access.last, access.first)
    tie = np.where(access.op == READ, 2, 1)
    order = order_by(access.obj, access.task, access.first, access.seq)
    obj, task = access.obj[order], access.task[order]
    change = is_mutation(access.op[order])
    n = len(order)
    following = np.where(change, np.arange(n), n)
    following = np.minimum.accumulate(following[::-1])[::-1]  # next change at or after
    inside = np.minimum(following, max(n - 1, 0))
    own = (following < n) & ~change & (obj[inside] == obj) & (task[inside] == task)
    begins = access.first[order][inside]
    early = own & (begins <= access.last[order])
    position[order[early]] = begins[early]
    tie[order[early]] = 0
    return position, tie


def sizes(access: Access, objects: Objects) -> tuple[Ints, Bools]:
    """Return the file size after each access, and whether a truncation removes bytes.

    Rows are sorted by object and position. A pre-existing file has at least the size at its first
    open and contains the bytes that were read from it.
    """
    n = len(access)
    if not n:
        return access.start, np.zeros(0, bool)
    first = starts_of(access.obj)
    group = group_ids(first, n)
    top = access.end + (access.count - 1) * np.maximum(access.stride, 0)
    cut = access.op == TRUNCATE
    silent = (access.op == HOLE) | ((access.op == READ) & ~access.exact)
    value = np.where(cut, access.start, np.where(silent, 0, top))
    opened = np.where(objects.existed == 0, 0, np.maximum(objects.opened_size, 0))
    value[first] = np.where(
        cut[first], value[first], np.maximum(value[first], opened[access.obj[first]])
    )
    begins = cut.copy()
    begins[first] = True
    size = running_max(np.cumsum(begins) - 1, value)
    before = np.empty(n, np.int64)
    before[1:] = size[:-1]
    before[first] = opened[access.obj[first]]
    # content of unknown size may be larger than any new size
    unknown = (objects.existed == 1) & (objects.opened_size == UNKNOWN)
    cuts = np.cumsum(cut) - cut
    untouched = (cuts == cuts[first][group]) & unknown[access.obj]
    return size, cut & (untouched | (before > access.start))


def initial_owners(objects: Objects, objs: Ints, events: Events) -> tuple[Ints, Bools]:
    """Return the owner of each object's bytes before its first event: (task or UNKNOWN, hole).

    A file created in the run begins as a hole of its maker; older content has no known owner.
    """
    maker = objects.maker[objs].copy()
    change = np.flatnonzero(events.op != READ)
    first = change[starts_of(events.obj[change])]
    by_obj = np.full(len(objects), UNKNOWN, np.int64)
    by_obj[events.obj[first]] = events.actor[first]
    maker = np.where(maker == UNKNOWN, by_obj[objs], maker)
    made = objects.existed[objs] == 0
    return np.where(made, maker, UNKNOWN), made


@dataclass
class Touches(Rows):
    """One row per event and segment that it touches, sorted by segment, then order.

    `last`: row of the previous change of the segment, `next`: row of the next change that certainly
    replaced the bytes (no loose write); UNKNOWN if there is none.
    `owner`, `hole`: state of the bytes just before this event; UNKNOWN: older content.
    `epoch_end`: event of the truncation to 0 that ended the segment, UNKNOWN if none.
    """

    event: Ints
    start: Ints
    end: Ints
    last: Ints
    next: Ints
    owner: Ints
    hole: Bools
    epoch_end: Ints


def touches(events: Events, objects: Objects) -> Touches:
    """Assign events to the segments that they touch; a truncation to 0 begins new segments."""
    if not len(events):
        return Touches.empty()
    wipe = (events.op == TRUNCATE) & (events.start == 0)
    first = starts_of(events.obj)
    epoch = epochs(events)
    opening = starts_of(epoch)
    change = is_mutation(events.op)
    seg_epoch, seg_start, seg_end = _segments(epoch, events, change)
    base = np.searchsorted(seg_epoch, np.arange(len(opening) + 1))
    low, high = _spans(epoch, events, seg_epoch, seg_start, base)
    high[events.end <= events.start] = 0
    row, segment = expand(low, high)
    order = np.argsort(segment, kind="stable")  # events are in order already
    row, segment = row[order], segment[order]
    sure = change & ~events.loose
    last, following = _neighbours(segment, change[row], sure[row])
    owner, hole = _owner_before_event(events, objects, row, last, opening[seg_epoch][segment], wipe)
    ends = np.full(len(opening), UNKNOWN, np.int64)
    follows = np.flatnonzero(wipe[opening] & ~np.isin(opening, first))
    ends[follows - 1] = opening[follows]
    return Touches(
        event=row,
        start=np.maximum(seg_start[segment], events.start[row]),
        end=np.minimum(seg_end[segment], events.end[row]),
        last=last,
        next=following,
        owner=owner,
        hole=hole,
        epoch_end=ends[seg_epoch][segment],
    )


def _segments(epoch: Ints, events: Events, change: Bools) -> tuple[Ints, Ints, Ints]:
    """Return (epoch, start, end) of all segments; those of one epoch cover [0, END)."""
    marks = distinct(epoch)
    keys = np.concatenate([epoch[change], epoch[change], marks, marks])
    points = np.concatenate(
        [events.start[change], events.end[change], np.zeros_like(marks), np.full_like(marks, END)]
    )
    order = order_by(keys, points)
    keys, points = keys[order], points[order]
    at = starts_of(keys, points)
    keys, points = keys[at], points[at]
    inner = keys[1:] == keys[:-1]
    return keys[:-1][inner], points[:-1][inner], points[1:][inner]


def _spans(
    epoch: Ints, events: Events, seg_epoch: Ints, seg_start: Ints, base: Ints
) -> tuple[Ints, Ints]:
    """Return the first and one past the last segment of each event, by ranks of all offsets."""
    known = distinct(np.concatenate([seg_start, events.start, events.end - 1]))

    def keys(epochs: Ints, points: Ints) -> Ints:
        return ints(epochs * len(known) + np.searchsorted(known, points))

    segments = keys(seg_epoch, seg_start)
    low = np.searchsorted(segments, keys(epoch, events.start), side="right") - 1
    high = np.searchsorted(segments, keys(epoch, events.end - 1), side="right")
    return np.maximum(low, base[epoch]), high


def _neighbours(segment: Ints, change: Bools, sure: Bools) -> tuple[Ints, Ints]:
    """Return the rows of the last change before and next sure one after each row, by segment."""
    n = len(segment)
    index = np.arange(n)
    first = starts_of(segment)
    group = group_ids(first, n)
    past = np.maximum.accumulate(np.where(change, index, -1)) if n else index
    last = np.concatenate([[-1], past[:-1]]) if n else index
    last = np.where(last >= first[group], last, UNKNOWN) if n else index
    ahead = np.minimum.accumulate(np.where(sure, index, n)[::-1])[::-1] if n else index
    following = np.append(ahead[1:], n) if n else index
    after = np.append(first[1:], n)[group] if n else index
    return last, np.where(following < after, following, UNKNOWN)


def _owner_before_event(
    events: Events, objects: Objects, row: Ints, last: Ints, opening: Ints, wipe: Bools
) -> tuple[Ints, Bools]:
    """Return the owner of each touched segment before its event, and whether it is a hole.

    `opening` is the first event of the segment's epoch: a truncation that left a hole of its
    task, or the first event of the object, before which there was older content or nothing.
    """
    prior = row[np.maximum(last, 0)] if len(row) else row
    start_owner, start_hole = initial_owners(objects, events.obj[opening], events)
    emptied = wipe[opening]
    base = np.where(emptied, events.actor[opening], start_owner)
    some = last != UNKNOWN
    owner = np.where(some, events.owner[prior], base)
    hole = np.where(some, events.hole[prior], emptied | start_hole)
    return owner, hole


_OLD = UNKNOWN - 1  # source of bytes that are older than all recorded changes


def foreign_reads(events: Events, touched: Touches, engine: Bools) -> tuple[Bools, Ints]:
    """Return per event whether it is a read, not by an engine, of bytes that its task did not
    write; and the latest change (event) from which such bytes come, `_OLD` if there is none."""
    reader = events.actor[touched.event]
    other = (events.op[touched.event] == READ) & (touched.owner != reader) & ~engine[reader]
    latest = np.full(len(events), _OLD)
    source = np.where(
        touched.last[other] == UNKNOWN, _OLD, touched.event[np.maximum(touched.last[other], 0)]
    )
    np.maximum.at(latest, touched.event[other], source)
    found = np.zeros(len(events), bool)
    found[touched.event[other]] = True
    return found, latest


def version_of(events: Events, foreign: Bools, latest: Ints, limit: int) -> Ints:
    """Return the version that each event reads or creates, counted per object from 0.

    Counting stops soon after `limit` versions of an object.
    """
    begins = np.zeros(len(events), bool)
    begins[_find_starts(events, foreign, latest, limit)] = True
    first = starts_of(events.obj)
    count = np.cumsum(begins)
    group = group_ids(first, len(events))
    # the count starts again at the first event of each object
    return np.asarray(count - (count - begins)[first][group], np.int64)


def _find_starts(events: Events, foreign: Bools, latest: Ints, limit: int) -> list[int]:
    """Return the changes that begin versions; repeated reads or changes by one task are skipped.

    The only Python loop over events: the start of each version depends on the previous one.
    """
    at = np.flatnonzero(is_mutation(events.op) | foreign)
    obj, actor, op, source = events.obj[at], events.actor[at], events.op[at], latest[at]
    keep = np.ones(len(at), bool)
    keep[1:] = (
        (obj[1:] != obj[:-1])
        | (actor[1:] != actor[:-1])
        | (op[1:] != op[:-1])
        | (source[1:] != source[:-1])
    )
    found: list[int] = []
    rows = (v[keep].tolist() for v in (at, obj, actor, op, source))
    current, count = -1, 0
    start, writers, readers = 0, set[int](), set[int]()
    for event, o, task, kind, origin in zip(*rows, strict=True):
        if o != current:
            current, count, start = o, 0, event
            writers, readers = set(), set()
        if kind == READ:
            # a writer of this version that reads older bytes reads an earlier version
            if task not in writers or origin >= start:
                readers.add(task)
            continue
        begin = len(readers) > 1 or bool(readers and (task not in readers or task not in writers))
        if kind == TRUNCATE and not begin:
            begin = len(writers) > 1 or bool(writers and task not in writers)
        if begin and count <= limit:
            found.append(event)
            start, count = event, count + 1
            writers, readers = set(), set()
        writers.add(task)
    return found


def read_version(events: Events, touched: Touches, version: Ints) -> Ints:
    """Return the version of each touched segment that its event uses.

    If a task reads a version that it changes itself, bytes of an earlier version are read from
    that one.
    """
    event = touched.event
    found = version[event]
    change = np.flatnonzero(is_mutation(events.op))
    keys = composite(events.obj, version, events.actor)
    if keys is None or not len(change):
        return found
    order = change[np.argsort(keys[change], kind="stable")]
    first = order[starts_of(keys[order])]
    at = np.minimum(np.searchsorted(keys[first], keys[event]), len(first) - 1)
    writer = (keys[first][at] == keys[event]) & (first[at] < event)
    reads = writer & (events.op[event] == READ)
    came = np.where(touched.last == UNKNOWN, 0, version[touched.event[np.maximum(touched.last, 0)]])
    return np.where(reads, np.minimum(came, found), found)
