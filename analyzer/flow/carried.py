"""What copies by engines carry: the bytes of a copy belong to who wrote the original."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct, order_by, starts_of
from tracehint.analyzer.flow.copies import Copies
from tracehint.analyzer.flow.events import Events
from tracehint.analyzer.flow.model import HOW_BIT, READ, UNKNOWN, WRITE, Rows
from tracehint.analyzer.flow.owners import Touches
from tracehint.analyzer.flow.ranges import expand, group_ids, overlaps, running_max

_CHAIN = 16  # copies of copies that are followed at most


@dataclass
class Carried(Rows):
    """What the copying process read: disjoint ranges of the target by copy (the first row of
    `Copies` with the same target and process), with owners."""

    copy: Ints
    start: Ints
    end: Ints
    owner: Ints


def levels(copies: Copies, count: int) -> Ints:
    """Per object how many copies lead to it; the sources of a level are of lower ones.

    Files that are copied in a cycle stay at the last level and carry nothing back.
    """
    level = np.zeros(count, np.int64)
    for _ in range(_CHAIN):
        deeper = level.copy()
        np.maximum.at(deeper, copies.target, level[copies.source] + 1)
        if np.array_equal(deeper, level):
            break
        level = np.minimum(deeper, _CHAIN)
    return level


def carried(copies: Copies, events: Events, touched: Touches) -> tuple[Carried, Bools]:
    """What the copies read of the objects of these events, and which events were those reads."""
    at = np.flatnonzero(events.op[touched.event] == READ)
    event = touched.event[at]
    order = order_by(copies.source, copies.proc)
    source, proc = copies.source[order], copies.proc[order]
    low, high = _matching(
        (source, proc), starts_of(source, proc), (events.obj[event], events.proc[event])
    )
    i, copy = expand(low, high)
    rows, copy = at[i], order[copy]
    reading = np.zeros(len(events), bool)
    reading[touched.event[rows]] = True
    owner = np.where(touched.hole[rows], UNKNOWN, touched.owner[rows])
    found = Carried(copy, touched.start[rows], touched.end[rows], owner)
    found = found.take(order_by(found.copy, found.start))
    # a process that read the file twice counts once
    group = group_ids(starts_of(found.copy), len(found))
    before = np.zeros(len(found), np.int64)
    before[1:] = running_max(group, found.end)[:-1]
    before[starts_of(group)] = 0
    found.start = np.maximum(found.start, before)
    found = found.take(found.end > found.start)
    found.start, found.end = (v + copies.shift[found.copy] for v in (found.start, found.end))
    found.copy = _first_of(copies)[found.copy]
    return found.take(order_by(found.copy, found.start)), reading


def _first_of(copies: Copies) -> Ints:
    """Per copy the first one with the same target and process."""
    order = order_by(copies.target, copies.proc)
    first = starts_of(copies.target[order], copies.proc[order])
    answer = np.empty(len(copies), np.int64)
    answer[order] = np.repeat(order[first], np.diff(np.append(first, len(order))))
    return answer


def substitute(events: Events, copies: Copies, pieces: Carried) -> Events:
    """The events with each copy's writes cut up among the owners of what was copied."""
    order = order_by(copies.target, copies.proc)
    target, proc = copies.target[order], copies.proc[order]
    low, _ = _matching((target, proc), starts_of(target, proc), (events.obj, events.proc))
    found = _matching((target, proc), starts_of(target, proc), (events.obj, events.proc))[1] > low
    at = np.flatnonzero(found & (events.op == WRITE))
    copy = order[low[at]]
    i, j = overlaps(copy, events.start[at], events.end[at], pieces.copy, pieces.start, pieces.end)
    new = events.take(at[i])
    new.start = np.maximum(new.start, pieces.start[j])
    new.end = np.minimum(new.end, pieces.end[j])
    owner = pieces.owner[j]
    new.copied = owner >= 0
    new.owner = np.where(owner >= 0, owner, new.actor)
    new.bytes = np.zeros(len(new), np.int64)
    new.how = np.where(new.copied, HOW_BIT["engine_copy"], new.how)
    keep = np.ones(len(events), bool)
    keep[at[i]] = False
    rows = np.concatenate([np.flatnonzero(keep), at[i]])
    joined = Events.joined([events.take(keep), new])
    return joined.take(np.argsort(rows, kind="stable"))


def _matching(
    keys: tuple[Ints, Ints], starts: Ints, wanted: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """Row ranges of the sorted pairs of keys that equal each wanted pair; empty where none."""
    none = np.zeros(len(wanted[0]), np.int64)
    if not len(starts):
        return none, none
    stops = np.append(starts[1:], len(keys[0]))
    known = [distinct(k) for k in keys]
    places = [np.searchsorted(k, v[starts]) for k, v in zip(known, keys, strict=True)]
    table = places[0] * len(known[1]) + places[1]  # sorted, as the keys are
    spots = [
        np.minimum(np.searchsorted(k, w), len(k) - 1) for k, w in zip(known, wanted, strict=True)
    ]
    pair = spots[0] * len(known[1]) + spots[1]
    group = np.minimum(np.searchsorted(table, pair), len(table) - 1)
    hit = table[group] == pair
    for k, spot, w in zip(known, spots, wanted, strict=True):
        hit &= k[spot] == w
    return np.where(hit, starts[group], 0), np.where(hit, stops[group], 0)
