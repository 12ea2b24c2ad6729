"""Complete copies by engines: the bytes read from one file are those written to the other.

A copy is one engine process that read a whole file and wrote another of the same size, or that
wrote several whole files one after the other into one. The bytes of the copy then belong to the
tasks that wrote the originals, so that the chain from a task through the engine to the next task
stays visible. Anything less (a checksum, a header read) is not a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct, ints, order_by, starts_of
from tracehint.analyzer.dataflow.model import HOW_BIT, READ, UNKNOWN, WRITE, Access, Objects, Rows
from tracehint.analyzer.dataflow.ranges import expand, group_ids, overlaps, running_max, union
from tracehint.analyzer.dataflow.versions import Events, Touches, sizes


@dataclass
class Copies(Rows):
    """Complete copies: object `source` to object `target`, from byte `shift` on, by process `proc`.

    Several sources can be concatenated in one target.
    """

    source: Ints
    target: Ints
    proc: Ints
    shift: Ints


def find(access: Access, everything: Access, objects: Objects) -> Copies:
    """Return the complete copies among the accesses of engines.

    Of several source files of the right size, one with the same base name is preferred, then the
    one whose reading began last before the writing began. `everything` holds all accesses to the
    files that engines read, from which their sizes are derived.
    """
    mine = access.take(access.count == 1)
    reads, solid = _gapless(mine.take(mine.op == READ)), _gapless(mine.take(mine.op == WRITE))
    reads = reads.take(reads.start == 0)
    reads = reads.take(reads.end >= _size_at(reads, everything, objects))
    writes = solid.take(solid.start == 0)
    names = _base_names(objects, np.concatenate([writes.obj, reads.obj]))
    name_w, name_r = names[: len(writes)], names[len(writes) :]
    same = _latest(
        (reads.proc, reads.end, name_r),
        reads.first,
        (writes.proc, writes.end, name_w),
        writes.first,
    )
    any_ = _latest((reads.proc, reads.end), reads.first, (writes.proc, writes.end), writes.first)
    best = np.where(same == UNKNOWN, any_, same)
    w = np.flatnonzero(best != UNKNOWN)
    found = Copies(reads.obj[best[w]], writes.obj[w], writes.proc[w], w * 0)
    found = found.take(found.source != found.target)
    lone = ~np.isin(solid.obj, found.target)
    return Copies.concat_parts([found, find_concatenations(reads, solid.take(lone))])


def find_concatenations(reads: Access, writes: Access) -> Copies:
    """Return copies of several files into one, read whole in sequence by the writing process.

    The sources are the last ones whose reading began before the writing ended, and their sizes
    add up. One source is enough if it was appended to something.
    """
    reads = reads.take(reads.end > 0)
    reads = reads.take(order_by(reads.proc, reads.first))
    if not len(reads) or not len(writes):
        return Copies.empty()
    after = np.cumsum(reads.end)
    before = after - reads.end
    last = _latest((reads.proc,), reads.first, (writes.proc,), writes.last)
    w = np.flatnonzero(last != UNKNOWN)
    last = last[w]
    begin = after[last] - (writes.end[w] - writes.start[w])
    first = np.minimum(np.searchsorted(before, begin), len(reads) - 1)
    fits = (before[first] == begin) & (reads.proc[first] == reads.proc[last])
    fits &= (first < last) | ((first == last) & (writes.start[w] > 0))
    overlap = np.cumsum(np.append(False, reads.first[1:] < reads.last[:-1]))
    fits &= overlap[first] == overlap[last]
    w, first, count = w[fits], first[fits], (last - first + 1)[fits]
    target = np.repeat(np.arange(len(w)), count)
    row = first[target] + np.arange(len(target)) - (np.cumsum(count) - count)[target]
    w = w[target]
    shift = writes.start[w] + before[row] - before[first[target]]
    found = Copies(reads.obj[row], writes.obj[w], writes.proc[w], shift)
    itself = np.isin(found.target, found.target[found.source == found.target])
    return found.take(~itself)


def _latest(keys: tuple[Ints, ...], when: Ints, wanted: tuple[Ints, ...], until: Ints) -> Ints:
    """Return the row of the wanted keys with the largest `when` not after `until`, or UNKNOWN."""
    n = len(when)
    kind = np.concatenate([np.zeros(n, np.int64), np.ones(len(until), np.int64)])
    both = [np.concatenate([k, w]) for k, w in zip(keys, wanted, strict=True)]
    order = np.lexsort((kind, np.concatenate([when, until]), *both[::-1]))
    group = group_ids(starts_of(*(b[order] for b in both)), len(order))
    row = np.where(kind[order] == 0, np.arange(len(order)), -1)
    past = running_max(group, row)
    found = np.full(len(order), UNKNOWN, np.int64)
    hit = past >= 0
    found[order[hit]] = order[past[hit]]
    return found[n:]


def _size_at(reads: Access, everything: Access, objects: Objects) -> Ints:
    """Return the size of each read file at the end of its reading."""
    rows = everything.take(order_by(everything.obj, everything.first, everything.seq))
    size, _ = sizes(rows, objects)
    key, when = rows.obj, rows.first
    at = _latest((key,), when, (reads.obj,), reads.last)
    seen = np.where(at == UNKNOWN, 0, size[at] if len(size) else 0)
    later = np.full(len(objects), np.iinfo(np.int64).min)
    change = rows.op != READ
    np.maximum.at(later, rows.obj[change], rows.first[change])
    known = objects.size[reads.obj]
    # without later changes, the size that the collector recorded last is the most reliable
    final = (later[reads.obj] <= reads.last) & (known != UNKNOWN)
    return np.where(final, known, seen)


def _gapless(rows: Access) -> Access:
    """Return one row for each (object, process) that covered one range without a gap."""
    rows = rows.take(order_by(rows.obj, rows.proc, rows.start))
    first = starts_of(rows.obj, rows.proc)
    group, start, end = union(group_ids(first, len(rows)), rows.start, rows.end)
    lone = np.bincount(group, minlength=len(first)) == 1 if len(first) else first
    at = np.flatnonzero(lone[group]) if len(group) else group
    found = rows.take(first[group[at]])
    found.start, found.end = start[at], end[at]
    if len(first):
        found.first = np.minimum.reduceat(rows.first, first)[group[at]]
        found.last = np.maximum.reduceat(rows.last, first)[group[at]]
    return found


def _base_names(objects: Objects, objs: Ints) -> Ints:
    """Return a number per distinct base name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = objects.path.take(pa.array(objs)).dictionary_encode()
    last = [path.rsplit(b"/", 1)[-1] for path in paths.dictionary.to_pylist()]
    codes = pc.dictionary_encode(pa.array(last, pa.binary())).indices.to_numpy(zero_copy_only=False)
    return ints(codes)[paths.indices.to_numpy(zero_copy_only=False)] if len(objs) else ints([])


_MAX_CHAIN = 16  # longest chain of copies of copies that is followed


@dataclass
class Carried(Rows):
    """Ranges read by the copying process, with owners: disjoint ranges of the target per copy (the
    first row of `Copies` with the same target and process)."""

    copy: Ints
    start: Ints
    end: Ints
    owner: Ints


def levels(copies: Copies, count: int) -> Ints:
    """Return per object the number of copies that lead to it; sources have lower levels.

    Files that are copied in a cycle stay at the last level and pass nothing back.
    """
    level = np.zeros(count, np.int64)
    for _ in range(_MAX_CHAIN):
        deeper = level.copy()
        np.maximum.at(deeper, copies.target, level[copies.source] + 1)
        if np.array_equal(deeper, level):
            break
        level = np.minimum(deeper, _MAX_CHAIN)
    return level


def find_carried(copies: Copies, events: Events, touched: Touches) -> tuple[Carried, Bools]:
    """Return what the copies read of the objects of these events, and which events did it."""
    at = np.flatnonzero(events.op[touched.event] == READ)
    event = touched.event[at]
    order = order_by(copies.source, copies.proc)
    source, proc = copies.source[order], copies.proc[order]
    low, high = _find_row_ranges(
        (source, proc), starts_of(source, proc), (events.obj[event], events.proc[event])
    )
    i, copy = expand(low, high)
    rows, copy = at[i], order[copy]
    reading = np.zeros(len(events), bool)
    reading[touched.event[rows]] = True
    owner = np.where(touched.hole[rows], UNKNOWN, touched.owner[rows])
    found = Carried(copy, touched.start[rows], touched.end[rows], owner)
    found = found.take(order_by(found.copy, found.start))
    # a file that the process read twice counts once
    group = group_ids(starts_of(found.copy), len(found))
    before = np.zeros(len(found), np.int64)
    before[1:] = running_max(group, found.end)[:-1]
    before[starts_of(group)] = 0
    found.start = np.maximum(found.start, before)
    found = found.take(found.end > found.start)
    found.start, found.end = (v + copies.shift[found.copy] for v in (found.start, found.end))
    found.copy = _first_rows(copies)[found.copy]
    return found.take(order_by(found.copy, found.start)), reading


def _first_rows(copies: Copies) -> Ints:
    """Return per copy the first one with the same target and process."""
    order = order_by(copies.target, copies.proc)
    first = starts_of(copies.target[order], copies.proc[order])
    answer = np.empty(len(copies), np.int64)
    answer[order] = np.repeat(order[first], np.diff(np.append(first, len(order))))
    return answer


def substitute(events: Events, copies: Copies, pieces: Carried) -> Events:
    """Return the events with the writes of each copy split among the owners of the copied bytes."""
    order = order_by(copies.target, copies.proc)
    target, proc = copies.target[order], copies.proc[order]
    low, _ = _find_row_ranges((target, proc), starts_of(target, proc), (events.obj, events.proc))
    found = (
        _find_row_ranges((target, proc), starts_of(target, proc), (events.obj, events.proc))[1]
        > low
    )
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
    joined = Events.concat_parts([events.take(keep), new])
    return joined.take(np.argsort(rows, kind="stable"))


def _find_row_ranges(
    keys: tuple[Ints, Ints], starts: Ints, wanted: tuple[Ints, Ints]
) -> tuple[Ints, Ints]:
    """Return the row ranges of sorted key pairs that equal each wanted pair; empty if none does."""
    none = np.zeros(len(wanted[0]), np.int64)
    if not len(starts):
        return none, none
    stops = np.append(starts[1:], len(keys[0]))
    known = [distinct(k) for k in keys]
    places = [np.searchsorted(k, v[starts]) for k, v in zip(known, keys, strict=True)]
    table = places[0] * len(known[1]) + places[1]  # sorted because the keys are
    spots = [
        np.minimum(np.searchsorted(k, w), len(k) - 1) for k, w in zip(known, wanted, strict=True)
    ]
    pair = spots[0] * len(known[1]) + spots[1]
    group = np.minimum(np.searchsorted(table, pair), len(table) - 1)
    hit = table[group] == pair
    for k, spot, w in zip(known, spots, wanted, strict=True):
        hit &= k[spot] == w
    return np.where(hit, starts[group], 0), np.where(hit, stops[group], 0)
