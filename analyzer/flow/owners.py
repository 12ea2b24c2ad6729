"""Who wrote each byte last, at every read: the heart of the data flow.

A file is cut at every end of a written range into segments; all bytes of a segment have the
same history. Every event is laid on the segments that it touches, and the last change before
each read is found by one running maximum over (segment, order of events).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct, ints, order_by, starts_of
from tracehint.analyzer.flow.access import is_mutation
from tracehint.analyzer.flow.events import END, Events, epochs, initial_owners
from tracehint.analyzer.flow.model import TRUNCATE, UNKNOWN, Objects
from tracehint.analyzer.flow.ranges import expand, group_ids


@dataclass
class Touches:
    """One row per event and segment that it touches, sorted by segment, then order.

    `last`: row of the last change of the segment before this one, UNKNOWN if there is none.
    `next`: row of the next change that surely replaced the bytes, UNKNOWN if there is none (a
    write whose range is an upper bound may have left them).
    `owner`, `hole`: whose bytes they are, just before this event; UNKNOWN: older content.
    `epoch_end`: event of the truncation to nothing that ended the segment, UNKNOWN if none.
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
    """Lay the events on segments. A truncation to nothing begins a new set of segments."""
    if not len(events):
        return _none()
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
    owner, hole = _before(events, objects, row, last, opening[seg_epoch][segment], wipe)
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


def _none() -> Touches:
    empty = np.empty(0, np.int64)
    return Touches(empty, empty, empty, empty, empty, empty, np.empty(0, bool), empty)


def _segments(epoch: Ints, events: Events, change: Bools) -> tuple[Ints, Ints, Ints]:
    """(epoch, start, end) of all segments; those of one epoch cover [0, END)."""
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
    """First and one past the last segment of each event, by ranks of all offsets."""
    known = distinct(np.concatenate([seg_start, events.start, events.end - 1]))

    def keys(epochs: Ints, points: Ints) -> Ints:
        return ints(epochs * len(known) + np.searchsorted(known, points))

    segments = keys(seg_epoch, seg_start)
    low = np.searchsorted(segments, keys(epoch, events.start), side="right") - 1
    high = np.searchsorted(segments, keys(epoch, events.end - 1), side="right")
    return np.maximum(low, base[epoch]), high


def _neighbours(segment: Ints, change: Bools, sure: Bools) -> tuple[Ints, Ints]:
    """Rows of the last change before and the next sure one after each row, in its segment."""
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


def _before(
    events: Events, objects: Objects, row: Ints, last: Ints, opening: Ints, wipe: Bools
) -> tuple[Ints, Bools]:
    """Owner of each touched segment before its event, and whether it is a hole.

    `opening` is the first event of the segment's epoch: a truncation that left a hole of its
    task, or the first event of the object, before which older content or nothing was there.
    """
    prior = row[np.maximum(last, 0)] if len(row) else row
    start_owner, start_hole = initial_owners(objects, events.obj[opening], events)
    emptied = wipe[opening]
    base = np.where(emptied, events.actor[opening], start_owner)
    some = last != UNKNOWN
    owner = np.where(some, events.owner[prior], base)
    hole = np.where(some, events.hole[prior], emptied | start_hole)
    return owner, hole
