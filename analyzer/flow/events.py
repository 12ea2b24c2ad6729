"""The order of what happened to each file that several tasks changed and read.

A change counts from its first operation, a read until its last one, so that of two overlapping
runs the write comes first (and the edge is marked uncertain). A task that reads and rewrites a
file in place is the exception: its read comes before its own later write.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.flow.access import is_mutation, pieces
from tracehint.analyzer.flow.model import (
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
from tracehint.analyzer.flow.ranges import group_ids, running_max

END = 1 << 61  # the end of a truncation's range: beyond every byte


@dataclass
class Events(Rows):
    """Accesses of single ranges, sorted by object and order of happening.

    actor: the task that did it; owner: the task whose bytes these are from now on, which
    differs only for an engine's complete copy. `hole`: the bytes are gone or zero afterwards.
    `size`: of the file afterwards. `loose`: a write that may have left bytes of its range.
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
    """The accesses in order; truncations that remove nothing touch no byte."""
    position, tie = _positions(access)
    order = order_by(access.obj, position, tie, access.seq)
    access, position = access.take(order), position[order]
    rank = np.arange(len(access))
    size, shrinks = sizes(access, objects)
    cut = Access(**{**access.__dict__, "proc": rank})  # the row, carried through the cutting
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
    """A number per object and segment of its life between truncations to nothing, upwards."""
    new = (events.op == TRUNCATE) & (events.start == 0)
    new[starts_of(events.obj)] = True
    return np.asarray(np.cumsum(new) - 1, np.int64)


def _positions(access: Access) -> tuple[Ints, Ints]:
    """When each access counts, and what goes first at one instant (see the module's text)."""
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
    """File size after each access, and whether a truncation removes bytes.

    Rows are sorted by object and position. A file that was there before has at least the size
    at its first open and the bytes that were read of it.
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
    """Who owns the bytes of each object before the first event: (task or UNKNOWN, hole).

    A file made in the run begins as a hole of its maker; older content has no known owner.
    """
    maker = objects.maker[objs].copy()
    change = np.flatnonzero(events.op != READ)
    first = change[starts_of(events.obj[change])]
    by_obj = np.full(len(objects), UNKNOWN, np.int64)
    by_obj[events.obj[first]] = events.actor[first]
    maker = np.where(maker == UNKNOWN, by_obj[objs], maker)
    made = objects.existed[objs] == 0
    return np.where(made, maker, UNKNOWN), made
