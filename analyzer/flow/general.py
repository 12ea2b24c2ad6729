"""The long way: files that several tasks changed and read in turn, and engines' copies."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, starts_of
from tracehint.analyzer.flow.access import is_mutation
from tracehint.analyzer.flow.carried import Carried, carried, levels, substitute
from tracehint.analyzer.flow.coarse import coarsen
from tracehint.analyzer.flow.copies import Copies
from tracehint.analyzer.flow.events import Events, events_of
from tracehint.analyzer.flow.model import (
    MAX_TOUCHES,
    READ,
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
from tracehint.analyzer.flow.owners import Touches, touches
from tracehint.analyzer.flow.ranges import expand
from tracehint.analyzer.flow.versions import foreign_reads, read_version, version_of

_DEEPEST = 1 << 10  # inexact writes over each other that are looked through


def solve(
    access: Access,
    objects: Objects,
    engine: Bools,
    copies: Copies,
    max_versions: int,
    notes: list[str],
) -> tuple[Found, Bools]:
    """What these accesses yield, and the objects with more versions than `max_versions`.

    `engine` is per task. Copies are followed from originals to copies, level by level.
    """
    level = levels(copies, len(objects))
    many = np.zeros(len(objects), bool)
    parts: list[Found] = []
    pieces = Carried.empty()
    for depth in np.unique(level[access.obj]).tolist():
        events = events_of(access.take(level[access.obj] == depth), objects, notes)
        if depth:
            events = substitute(events, copies, pieces)
        coarsen(events, notes)
        touched = touches(events, objects)
        more, copied = carried(copies, events, touched)
        pieces = Carried.joined([pieces, more])
        pieces = pieces.take(np.lexsort((pieces.start, pieces.copy)))
        foreign, latest = foreign_reads(events, touched, engine)
        version = version_of(events, foreign, latest, max_versions)
        over = np.zeros(len(objects), bool)
        over[events.obj[version >= max_versions]] = True
        version[over[events.obj]] = 0
        many |= over
        parts.append(_found(events, touched, objects, version, engine, copied))
    return Found.joined(parts) if parts else _nothing(), many


def _nothing() -> Found:
    return Found(Writes.empty(), Owned.empty(), Reads.empty(), Links.empty(), Versions.empty())


def _found(
    events: Events, touched: Touches, objects: Objects, version: Ints, engine: Bools, copied: Bools
) -> Found:
    seen = read_version(events, touched, version)
    return Found(
        _writes(events, touched, version, engine, copied),
        _owned(events, touched, version),
        _reads(events, touched, seen),
        _links(events, touched, seen),
        _versions(events, objects, version),
    )


def _writes(
    events: Events, touched: Touches, version: Ints, engine: Bools, copied: Bools
) -> Writes:
    """Written ranges, and what became of them."""
    stays, seen = np.zeros(len(events), bool), np.zeros(len(events), bool)
    change = is_mutation(events.op[touched.event])
    final = change & (touched.next == UNKNOWN) & (touched.epoch_end == UNKNOWN)
    stays[touched.event[final]] = True
    reading, source = sources(events, touched)
    reader = events.actor[touched.event[reading]]
    counts = ~engine[reader] | copied[touched.event[reading]]
    seen[touched.event[source[counts]]] = True
    at = np.flatnonzero(events.op == WRITE)
    e = events.take(at)
    return Writes(
        e.obj,
        version[at],
        e.owner,
        e.start,
        e.end,
        e.bytes,
        e.how,
        e.first,
        e.last,
        e.exact,
        seen[at],
        stays[at],
    )


def _owned(events: Events, touched: Touches, version: Ints) -> Owned:
    """Who owns which ranges at the end of each version."""
    at = np.flatnonzero(is_mutation(events.op[touched.event]) & ~events.hole[touched.event])
    event = touched.event[at]
    first = starts_of(events.obj)
    last_event = np.append(first[1:], len(events))[: len(first)] - 1
    of_object = np.searchsorted(first, event, side="right") - 1
    begin = version[event]
    # lives until the version before the one in which it is replaced
    until = version[last_event][of_object] if len(event) else begin
    ended = touched.epoch_end[at]
    until = np.where(ended != UNKNOWN, version[np.maximum(ended, 0)] - 1, until)
    replaced = touched.next[at]
    until = np.where(
        replaced != UNKNOWN, version[touched.event[np.maximum(replaced, 0)]] - 1, until
    )
    i, ver = expand(begin, until + 1)
    event, row = event[i], at[i]
    return Owned(
        events.obj[event],
        ver,
        events.owner[event],
        touched.start[row],
        touched.end[row],
        events.how[event],
    )


def _reads(events: Events, touched: Touches, seen: Ints) -> Reads:
    """What tasks read that they had not written themselves; `seen`: version per segment."""
    foreign = touched.owner != events.actor[touched.event]
    at = np.flatnonzero((events.op[touched.event] == READ) & foreign)
    event = touched.event[at]
    start, end = touched.start[at], touched.end[at]
    whole = np.maximum(events.end[event] - events.start[event], 1)
    moved = np.rint(events.bytes[event] * ((end - start) / whole)).astype(np.int64)
    return Reads(
        events.obj[event],
        seen[at],
        events.actor[event],
        start,
        end,
        moved,
        events.how[event],
        events.first[event],
        events.last[event],
        events.exact[event],
    )


def _links(events: Events, touched: Touches, seen: Ints) -> Links:
    """Which written bytes were read by another task, and whether the order is certain."""
    reading, source = sources(events, touched)
    event, wrote = touched.event[reading], touched.event[source]
    keep = (events.owner[wrote] >= 0) & (events.owner[wrote] != events.actor[event])
    reading, event, wrote = reading[keep], event[keep], wrote[keep]
    return Links(
        events.obj[event],
        seen[reading],
        events.owner[wrote],
        events.actor[event],
        touched.start[reading],
        touched.end[reading],
        events.last[wrote] > events.first[event],
        events.copied[wrote],
    )


def sources(events: Events, touched: Touches) -> tuple[Ints, Ints]:
    """Pairs of rows (a read, a write that its bytes may come from), the reader's own left out.

    That is the last write before the read. One whose range is an upper bound may have left bytes
    of those before it: then these count as well.
    """
    event = touched.event
    hit = (events.op[event] == READ) & (touched.last != UNKNOWN) & ~touched.hole
    row = np.flatnonzero(hit & (touched.owner != events.actor[event]))
    source = touched.last[row]
    rows, found = [row], [source]
    for _ in range(_DEEPEST):
        deeper = touched.last[source]
        more = events.loose[event[source]] & (deeper != UNKNOWN)
        more[more] = ~events.hole[event[deeper[more]]]
        if not more.any() or sum(map(len, rows)) > MAX_TOUCHES:
            break
        row, source = row[more], deeper[more]
        rows.append(row)
        found.append(source)
    return np.concatenate(rows), np.concatenate(found)


def _versions(events: Events, objects: Objects, version: Ints) -> Versions:
    """The versions with their sizes: unknown for old content that nobody changed yet, unless
    the size was seen at an open."""
    first = starts_of(events.obj, version)
    last = np.append(first[1:], len(events))[: len(first)] - 1
    changes = np.cumsum(events.op != READ)
    obj = events.obj[last]
    begin = np.searchsorted(events.obj, obj)  # first event of the object
    changed = changes[last] > (changes - (events.op != READ))[begin]
    old = np.where(objects.existed != 0, objects.opened_size, UNKNOWN)[obj]
    return Versions(obj, version[last], np.where(changed, events.size[last], old))
