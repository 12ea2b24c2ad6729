"""Data flow through file versions: the version of each read, the bytes of each writer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct, order_by, starts_of
from tracehint.analyzer.dataflow.accesses import is_mutation, pieces
from tracehint.analyzer.dataflow.copies import Carried, Copies, find_carried, levels, substitute
from tracehint.analyzer.dataflow.model import (
    HOLE,
    MAX_TOUCHES,
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
from tracehint.analyzer.dataflow.ranges import expand, group_ids, overlaps, union
from tracehint.analyzer.dataflow.versions import (
    END,
    Events,
    Touches,
    epochs,
    events_of,
    foreign_reads,
    read_version,
    touches,
    version_of,
)

# Simple files: nearly all files of a run were written before another task began to read. Each has
# one version, and the last writer of a byte is the only task that wrote it. `solve_general` solves
# all others.

_NEVER = np.iinfo(np.int64).max


@dataclass
class ObjectFacts:
    """Facts per object: which tasks changed and read it, and when."""

    low: Ints  # smallest and largest task that changed it; low > high: none
    high: Ints
    changed_last: Ints
    written_first: Ints
    truncated_last: Ints
    other_read_first: Ints  # by a task other than `low`
    own_read: Bools  # by `low`
    hole: Bools
    cut_low: Ints  # smallest and largest size to which it was truncated
    cut_high: Ints


def collect_facts(access: Access, count: int) -> ObjectFacts:
    """Compute the `ObjectFacts` in one pass over the accesses."""
    change = access.take(is_mutation(access.op))
    reads = np.flatnonzero(access.op == READ)  # no copies: reads may be most of the memory
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
    """Return per object whether it was never changed, or only before any other task read it.

    One task may truncate, to one size, before it writes. It may read back its own bytes if the
    file was created in the run. Several tasks may write if none of them reads.
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
    """Return the union of each task's written ranges."""
    order = order_by(writes.obj, writes.task, writes.start)
    obj, task = writes.obj[order], writes.task[order]
    first = starts_of(obj, task)
    group, start, end = union(group_ids(first, len(obj)), writes.start[order], writes.end[order])
    obj, task = obj[first][group], task[first][group]
    order = order_by(obj, start)
    return TaskSpans(obj[order], task[order], start[order], end[order])


def find_overlaps(spans: TaskSpans, count: int) -> Bools:
    """Return per object whether ranges of different tasks overlap."""
    found = np.zeros(count, bool)
    hit = (spans.obj[1:] == spans.obj[:-1]) & (spans.end[:-1] > spans.start[1:])
    found[spans.obj[1:][hit]] = True
    return found


def solve_simple(
    access: Access, objects: Objects, general: Bools, notes: list[str]
) -> tuple[Found, Bools]:
    """Solve the simple objects; return their flow, and which objects are not simple.

    `general` marks objects that are excluded even if they are simple.
    """
    count = len(objects)
    seen = collect_facts(access, count)
    simple = is_simple(access, objects, seen) & ~general
    writes = pieces(access.take((access.op == WRITE) & simple[access.obj]), notes)
    spans = written_spans(writes)
    clash = find_overlaps(spans, count)
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
        _simple_writes(writes),
        Owned.empty(),
        _simple_reads(reads),
        _simple_links(reads, spans),
        _simple_versions(access, objects, seen, made),
    ), ~simple


def _simple_writes(rows: Access) -> Writes:
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


def _simple_reads(rows: Access) -> Reads:
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


def _simple_links(reads: Access, spans: TaskSpans) -> Links:
    i, j = overlaps(reads.obj, reads.start, reads.end, spans.obj, spans.start, spans.end)
    start = np.maximum(reads.start[i], spans.start[j])
    end = np.minimum(reads.end[i], spans.end[j])
    no = np.zeros(len(i), bool)
    return Links(
        reads.obj[i], np.zeros(len(i), np.int64), spans.task[j], reads.task[i], start, end, no, no
    )


def _simple_versions(access: Access, objects: Objects, seen: ObjectFacts, made: Bools) -> Versions:
    """Return one version per object; its size is the largest one recorded or accessed."""
    size = objects.size.copy()
    still = (seen.truncated_last == -_NEVER) & (objects.existed != 0)
    size[still] = np.maximum(size, objects.opened_size)[still]
    # exact reads are a lower bound of the size of a changed file
    shows = (access.op == READ) & access.exact & (seen.low <= seen.high)[access.obj]
    rows = access.take((is_mutation(access.op) | shows) & made[access.obj])
    far = rows.end + (rows.count - 1) * np.maximum(rows.stride, 0)
    np.maximum.at(size, rows.obj, np.where(rows.op == TRUNCATE, rows.start, far))
    at = np.flatnonzero(made)
    return Versions(at, np.zeros(len(at), np.int64), size[at])


def move_early_reads(access: Access, objects: Objects, notes: list[str]) -> None:
    """Move reads that ended before the first write of a new file behind its writes, in place.

    Only for files created in the run and written by one task: nothing could be read before, so a
    clock is wrong. Adds a note with the number of reads and the largest difference.
    """
    seen = collect_facts(access, len(objects))
    begin = np.full(len(objects), np.iinfo(np.int64).max)
    change = is_mutation(access.op)
    np.minimum.at(begin, access.obj[change], access.first[change])
    new = (objects.existed == 0) & (seen.low == seen.high)
    early = (access.op == READ) & new[access.obj] & (access.last < begin[access.obj])
    early &= access.task != seen.low[access.obj]
    at = np.flatnonzero(early)
    if not len(at):
        return
    worst = float((begin[access.obj[at]] - access.last[at]).max()) / 1e9
    access.first[at] = access.last[at] = seen.changed_last[access.obj[at]]
    notes.append(
        f"{len(at)} [read|reads] came before the only writer's first write by the hosts' clocks "
        f"(up to {worst:.3f} s): counted as after it"
    )


# Limit for files with too many accesses to different ranges to track each byte: time and memory
# grow with the number of (access, segment) pairs. Beyond MAX_TOUCHES the ranges of a file are
# widened to a few thousand common bounds, and are no longer exact.

_LIGHT = 128  # accesses of a file up to which it is never coarsened


def coarsen(events: Events, notes: list[str], limit: int = MAX_TOUCHES) -> None:
    """Widen the ranges of the files that would exceed the limit, in place.

    If many files of a partition are near the limit, each gets a share of it.
    """
    first = starts_of(epochs(events))
    sizes = np.diff(np.append(first, len(events)))
    heavy = [slice(int(first[i]), int(first[i] + sizes[i])) for i in np.flatnonzero(sizes > _LIGHT)]
    work = [_count_touches(events, rows) for rows in heavy]
    share = min(1.0, 2 * limit / max(sum(work), 1))
    for rows, pairs in zip(heavy, work, strict=True):
        accesses = rows.stop - rows.start
        if pairs > limit or (share < 1 and pairs > limit * share * accesses / len(events)):
            bounds = _bounds(events, rows)
            if not len(bounds):
                continue
            few = max(2, int(limit * share) // accesses)
            step = -(-len(bounds) // few)
            _widen(events, rows, np.append(bounds[:-1:step], bounds[-1]))
            notes.append(
                f"a file has {accesses} accesses to {len(bounds)} different ranges: who wrote "
                "which of its bytes is known roughly"
            )


def _count_touches(events: Events, rows: slice) -> int:
    """Return the number of pairs of an access and a segment."""
    bounds, start, end = _bounds(events, rows), events.start[rows], events.end[rows]
    low, high = np.searchsorted(bounds, start, side="right"), np.searchsorted(bounds, end)
    return int((high - low + 1).sum())


def _bounds(events: Events, rows: slice) -> Ints:
    change = is_mutation(events.op[rows])
    bounds = distinct(np.concatenate([events.start[rows][change], events.end[rows][change]]))
    return bounds[bounds < END]


def _widen(events: Events, rows: slice, bounds: Ints) -> None:
    """Move starts down and ends up to the next bound, where there is one."""
    start, end = events.start[rows], events.end[rows]
    touches = end > start
    low = np.maximum(np.searchsorted(bounds, start, side="right") - 1, 0)
    high = np.minimum(np.searchsorted(bounds, end), len(bounds) - 1)
    whole = end == END  # a truncation removes all bytes from its start on, and none before
    down = np.minimum(bounds[low], start)
    up = np.maximum(bounds[high], end)
    events.start[rows] = np.where(touches & ~whole, down, start)
    events.end[rows] = np.where(touches & ~whole, up, end)
    events.exact[rows] = False


_MAX_DEPTH = 1 << 10  # maximum depth of overlapping inexact writes that is searched


def solve_general(
    access: Access,
    objects: Objects,
    engine: Bools,
    copies: Copies,
    max_versions: int,
    notes: list[str],
) -> tuple[Found, Bools]:
    """Solve these accesses; return their flow, and which objects have over `max_versions`.

    `engine` is per task. Copies are solved after their originals, level by level.
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
        more, copied = find_carried(copies, events, touched)
        pieces = Carried.concat_parts([pieces, more])
        pieces = pieces.take(np.lexsort((pieces.start, pieces.copy)))
        foreign, latest = foreign_reads(events, touched, engine)
        version = version_of(events, foreign, latest, max_versions)
        over = np.zeros(len(objects), bool)
        over[events.obj[version >= max_versions]] = True
        version[over[events.obj]] = 0
        many |= over
        parts.append(_collect_flow(events, touched, objects, version, engine, copied))
    return Found.concat_parts(parts), many


def _collect_flow(
    events: Events, touched: Touches, objects: Objects, version: Ints, engine: Bools, copied: Bools
) -> Found:
    seen = read_version(events, touched, version)
    return Found(
        _writes(events, touched, version, engine, copied),
        _owned_ranges(events, touched, version),
        _reads(events, touched, seen),
        _links(events, touched, seen),
        _versions(events, objects, version),
    )


def _writes(
    events: Events, touched: Touches, version: Ints, engine: Bools, copied: Bools
) -> Writes:
    """Return the written ranges, whether others read them, and whether they exist at the end."""
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


def _owned_ranges(events: Events, touched: Touches, version: Ints) -> Owned:
    """Return the owner of each range at the end of each version."""
    at = np.flatnonzero(is_mutation(events.op[touched.event]) & ~events.hole[touched.event])
    event = touched.event[at]
    first = starts_of(events.obj)
    last_event = np.append(first[1:], len(events))[: len(first)] - 1
    of_object = np.searchsorted(first, event, side="right") - 1
    begin = version[event]
    # valid until the version before the one that replaces it
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
    """Return the bytes that tasks read and had not written; `seen`: version per segment."""
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
    """Return which written bytes another task read, and whether their order is uncertain."""
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
    """Return pairs of rows (read, write that its bytes may come from) without the reader's own.

    That is the last write before the read. If its range is an upper bound, bytes of earlier
    writes may remain: then these are included.
    """
    event = touched.event
    hit = (events.op[event] == READ) & (touched.last != UNKNOWN) & ~touched.hole
    row = np.flatnonzero(hit & (touched.owner != events.actor[event]))
    source = touched.last[row]
    rows, found = [row], [source]
    for _ in range(_MAX_DEPTH):
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
    """Return the versions with their sizes: unknown for older content that was not yet changed,
    unless an open recorded the size."""
    first = starts_of(events.obj, version)
    last = np.append(first[1:], len(events))[: len(first)] - 1
    changes = np.cumsum(events.op != READ)
    obj = events.obj[last]
    begin = np.searchsorted(events.obj, obj)  # first event of the object
    changed = changes[last] > (changes - (events.op != READ))[begin]
    old = np.where(objects.existed != 0, objects.opened_size, UNKNOWN)[obj]
    return Versions(obj, version[last], np.where(changed, events.size[last], old))
