"""Complete copies by engines: what they read of one file is what they wrote into the other.

A copy is one engine process that read a whole file and wrote another of the same size. The
bytes of the copy then belong to the tasks that wrote the original, so that the chain from a
task through the engine to the next task stays visible. Anything less (a checksum, a look at a
header, a file put together from several) carries nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct, ints, order_by, starts_of
from tracehint.analyzer.flow.events import Events, sizes
from tracehint.analyzer.flow.model import HOW_BIT, READ, UNKNOWN, WRITE, Access, Objects, Rows
from tracehint.analyzer.flow.owners import Touches
from tracehint.analyzer.flow.ranges import expand, group_ids, overlaps, running_max, union

_CHAIN = 16  # copies of copies that are followed at most


@dataclass
class Copies(Rows):
    """Complete copies: object `source` to object `target` by process `proc`."""

    source: Ints
    target: Ints
    proc: Ints


@dataclass
class Carried(Rows):
    """What the copying process read: disjoint ranges by copy (row of `Copies`), with owners."""

    copy: Ints
    start: Ints
    end: Ints
    owner: Ints


def find(access: Access, everything: Access, objects: Objects) -> Copies:
    """The complete copies among the accesses of engines.

    Of several files of the right size the one with the same base name wins, then the one whose
    reading began last before the writing began. `everything` holds all accesses to the files
    that engines read: they say how large the files were.
    """
    mine = access.take(access.count == 1)
    reads, writes = _whole(mine.take(mine.op == READ)), _whole(mine.take(mine.op == WRITE))
    reads = reads.take(reads.end >= _size_at(reads, everything, objects))
    names = _base_names(objects, np.concatenate([writes.obj, reads.obj]))
    name_w, name_r = names[: len(writes)], names[len(writes) :]
    same = _latest((reads.proc, reads.end, name_r), reads.first, (writes.proc, writes.end, name_w),
                   writes.first)  # fmt: skip
    any_ = _latest((reads.proc, reads.end), reads.first, (writes.proc, writes.end), writes.first)
    best = np.where(same == UNKNOWN, any_, same)
    w = np.flatnonzero(best != UNKNOWN)
    found = Copies(reads.obj[best[w]], writes.obj[w], writes.proc[w])
    return found.take(found.source != found.target)


def _latest(keys: tuple[Ints, ...], when: Ints, wanted: tuple[Ints, ...], until: Ints) -> Ints:
    """Row with the wanted keys and the largest `when` that is not after `until`, or UNKNOWN."""
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
    """The size that each read file had when its reading ended."""
    rows = everything.take(order_by(everything.obj, everything.first, everything.seq))
    size, _ = sizes(rows, objects)
    key, when = rows.obj, rows.first
    at = _latest((key,), when, (reads.obj,), reads.last)
    seen = np.where(at == UNKNOWN, 0, size[at] if len(size) else 0)
    later = np.full(len(objects), np.iinfo(np.int64).min)
    change = rows.op != READ
    np.maximum.at(later, rows.obj[change], rows.first[change])
    known = objects.size[reads.obj]
    # nothing changed afterwards: the collector's last look is the best answer
    final = (later[reads.obj] <= reads.last) & (known != UNKNOWN)
    return np.where(final, known, seen)


def _whole(rows: Access) -> Access:
    """(object, process) that covered [0, n) without a gap: one row each, `end` = n."""
    rows = rows.take(order_by(rows.obj, rows.proc, rows.start))
    first = starts_of(rows.obj, rows.proc)
    group, start, end = union(group_ids(first, len(rows)), rows.start, rows.end)
    lone = np.bincount(group, minlength=len(first)) == 1 if len(first) else first
    at = np.flatnonzero(lone[group] & (start == 0)) if len(group) else group
    found = rows.take(first[group[at]])
    found.end = end[at]
    if len(first):
        found.first = np.minimum.reduceat(rows.first, first)[group[at]]
        found.last = np.maximum.reduceat(rows.last, first)[group[at]]
    return found


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


def _base_names(objects: Objects, objs: Ints) -> Ints:
    """A number per distinct base name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = objects.path.take(pa.array(objs)).dictionary_encode()
    last = [path.rsplit(b"/", 1)[-1] for path in paths.dictionary.to_pylist()]
    codes = pc.dictionary_encode(pa.array(last, pa.binary())).indices.to_numpy(zero_copy_only=False)
    return ints(codes)[paths.indices.to_numpy(zero_copy_only=False)] if len(objs) else ints([])


def levels(copies: Copies, count: int) -> Ints:
    """Per object how many copies lead to it; the sources of a level are of lower ones.

    Files that are copied in a circle stay at the last level and carry nothing back.
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
    return found.take(found.end > found.start), reading


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
