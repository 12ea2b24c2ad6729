"""Where versions begin, and which version a read belongs to.

A version begins with a change by a task after another one than the version's writers has read
bytes of it that it had not written itself, and with a truncation unless the task that truncates
is the only one that changed the version: then nobody else can have seen what it removes. A task
that reads a file and then changes it in place begins a version; its own further reads and
changes belong to that one.
"""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, composite, starts_of
from tracehint.analyzer.flow.access import is_mutation
from tracehint.analyzer.flow.events import Events
from tracehint.analyzer.flow.model import READ, TRUNCATE, UNKNOWN
from tracehint.analyzer.flow.owners import Touches
from tracehint.analyzer.flow.ranges import group_ids

_OLD = UNKNOWN - 1  # a read of bytes that are older than every change seen


def foreign_reads(events: Events, touched: Touches, engine: Bools) -> tuple[Bools, Ints]:
    """Per event: whether it is a read, not by an engine, of a byte that its task did not write;
    and the latest change (event) that such a byte comes from, `_OLD` if from none."""
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
    """The version that each event reads or makes, counted per object from 0.

    Stops counting in an object soon after `limit` versions.
    """
    begins = np.zeros(len(events), bool)
    begins[_begins(events, foreign, latest, limit)] = True
    first = starts_of(events.obj)
    count = np.cumsum(begins)
    group = group_ids(first, len(events))
    # nothing is counted before the first event of an object
    return np.asarray(count - (count - begins)[first][group], np.int64)


def _begins(events: Events, foreign: Bools, latest: Ints, limit: int) -> list[int]:
    """The changes that begin versions; repeats of one task's reads or changes are skipped.

    The one loop of the flow over what happened: each version's start depends on the last one.
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
            # a writer of this version that looks at older bytes reads an earlier version
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
    """Per touched segment the version that its event concerns.

    Where a task reads a version that it changes itself, bytes that came from an earlier one
    are read from that one.
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
