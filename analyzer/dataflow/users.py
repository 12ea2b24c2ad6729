"""Producers, consumers and edges of each entry, grouped from the accesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, ints, order_by, starts_of
from tracehint.analyzer.dataflow.entries import Entries, one_per_series
from tracehint.analyzer.dataflow.model import HOW_BIT, HOWS, UNKNOWN, Found, Owned, Rows, Writes
from tracehint.analyzer.dataflow.ranges import among, group_ids, union

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Grouped:
    """Rows sorted by keys, then start, in groups of equal keys with the union of their ranges.

    `order` sorts the original rows, `first` is the first sorted row of each group, `offsets`
    are the bounds of each group's ranges in `start` and `end`.
    """

    order: Ints
    first: Ints
    offsets: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.first)

    def key(self, values: Ints) -> Ints:
        """Return the value in each group's first row."""
        return values[self.order[self.first]]

    def sum(self, values: Ints) -> Ints:
        """Return the sum of each group."""
        return np.add.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def low(self, values: Ints) -> Ints:
        """Return the minimum of each group."""
        return np.minimum.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def high(self, values: Ints) -> Ints:
        """Return the maximum of each group."""
        return np.maximum.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def any(self, flags: Bools) -> Bools:
        """Return whether any flag of each group is set."""
        return np.logical_or.reduceat(flags[self.order], self.first) if len(self) else flags[:0]

    def bits(self, values: Ints) -> Ints:
        """Return the bitwise OR of each group."""
        return np.bitwise_or.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def unique_bytes(self) -> Ints:
        """Return the length of the union of each group's ranges."""
        below = np.concatenate([[0], np.cumsum(self.end - self.start)])
        return np.asarray(below[self.offsets[1:]] - below[self.offsets[:-1]], np.int64)


def group(start: Ints, end: Ints, *keys: Ints) -> Grouped:
    """Group rows by the keys and join their ranges."""
    n = len(start)
    order = order_by(*keys)
    ordered = [k[order] for k in keys]
    first = starts_of(*ordered)
    if len(first) == n:  # every row is its own group
        return Grouped(order, first, np.arange(n + 1), start[order], end[order])
    number = group_ids(first, n)
    several = np.flatnonzero(np.bincount(number)[number] > 1)
    inner = order[several]
    order[several] = inner[order_by(number[several], start[inner])]
    of, low, high = union(number, start[order], end[order])
    offsets = np.searchsorted(of, np.arange(len(first) + 1))
    return Grouped(order, first, offsets, low, high)


def range_lists(offsets: Ints, start: Ints, end: Ints) -> pa.Array:
    """Return lists of [start, end) pairs, in the type of analyzer.model."""
    import pyarrow as pa

    flat = np.empty(2 * len(start), np.int64)
    flat[0::2], flat[1::2] = start, end
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(flat), 2)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs)


def even_lists(values: pa.Array, count: int, each: int) -> pa.Array:
    """Return `count` lists of `each` consecutive values."""
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * each, pa.int32()), values)


def how_lists(bits: Ints) -> pa.Array:
    """Return lists of the names of the ways of access."""
    import pyarrow as pa

    known, code = np.unique(bits, return_inverse=True)
    names = [[h for i, h in enumerate(HOWS) if b >> i & 1] for b in known.tolist()]
    return pa.array(names, pa.list_(pa.string())).take(pa.array(code.reshape(-1)))


@dataclass
class Tasks:
    """Columns per task, ordered by identifier: whether it is an engine, its series of attempts."""

    ids: Ints
    engine: Bools
    series: Ints
    preference: Ints
    started_ns: int  # zero of all times in seconds


@dataclass
class UseRows(Rows):
    """One row per (entry, task) that wrote or read it; the ranges are stored separately."""

    entry: Ints
    task: Ints
    bytes: Ints
    unique: Ints
    owned: Ints
    how: Ints
    first: Ints  # nanoseconds, UNKNOWN if not known
    last: Ints
    superseded: Bools
    exact: Ints  # exactly known bytes


@dataclass
class Edges(Rows):
    """One row per (producer, entry, consumer)."""

    producer: Ints
    entry: Ints
    consumer: Ints
    bytes: Ints
    uncertain: Bools
    via: Ints  # index into VIA


VIA = ("data", "engine_copy", "declared")


def consumers_of(found: Found, entries: Entries, tasks: Tasks) -> tuple[UseRows, Grouped]:
    """Return the readers of each entry, without engines and superseded attempts."""
    reads = found.reads.take(~tasks.engine[found.reads.task])
    entry = entries.of(reads.obj, reads.ver)
    keep = one_per_series(entry, reads.task, tasks.series, tasks.preference)
    if not keep.all():
        reads, entry = reads.take(keep), entry[keep]
    rows = group(reads.start, reads.end, entry, reads.task)
    users = UseRows(
        rows.key(entry),
        rows.key(reads.task),
        rows.sum(reads.bytes),
        rows.unique_bytes(),
        np.zeros(len(rows), np.int64),
        rows.bits(reads.how),
        rows.low(reads.first),
        rows.high(reads.last),
        np.zeros(len(rows), bool),
        rows.sum(reads.bytes * reads.exact),
    )
    return users, rows


def edges_of(found: Found, entries: Entries, tasks: Tasks) -> Edges:
    """Return which task passed bytes to which task through each entry."""
    links = found.links
    keep = ~tasks.engine[links.producer] & ~tasks.engine[links.consumer]
    links = links.take(keep)
    entry = entries.of(links.obj, links.ver)
    keep = one_per_series(entry, links.consumer, tasks.series, tasks.preference)
    if not keep.all():
        links, entry = links.take(keep), entry[keep]
    rows = group(links.start, links.end, entry, links.producer, links.consumer)
    return Edges(
        rows.key(links.producer),
        rows.key(entry),
        rows.key(links.consumer),
        rows.unique_bytes(),
        rows.any(links.uncertain),
        (~rows.any(~links.copied)).astype(np.int64),
    )


def producers_of(
    found: Found, entries: Entries, tasks: Tasks, edges: Edges, replaced: Bools, alone: Bools
) -> tuple[UseRows, Grouped]:
    """Return the tasks that wrote each entry, or an earlier version and still own bytes of it.

    `replaced` per object: a later file took its name, so that bytes without a reader are lost.
    `alone` per object: it has one version in which no task overwrote bytes of another.
    """
    writes = found.writes.take(~tasks.engine[found.writes.task])
    entry = entries.of(writes.obj, writes.ver)
    own = found.owned.take(~tasks.engine[found.owned.task])
    own = own.take(entries.is_last(own.obj, own.ver))
    own_entry = entries.of(own.obj, own.ver)
    new = ~among(own_entry, own.task, entry, writes.task)
    writes = Writes.concat_parts([writes, _carried_writes(own.take(new))])
    entry = np.concatenate([entry, own_entry[new]])
    rows = group(writes.start, writes.end, entry, writes.task)
    lost = ~rows.any(writes.seen | (writes.stays & ~replaced[writes.obj]))
    lost[lost] = ~among(
        rows.key(entry)[lost], rows.key(writes.task)[lost], edges.entry, edges.producer
    )
    unique = rows.unique_bytes()
    users = UseRows(
        rows.key(entry),
        rows.key(writes.task),
        rows.sum(writes.bytes),
        unique,
        np.where(rows.any(alone[writes.obj]), unique, 0),
        rows.bits(writes.how),
        rows.low(writes.first),
        rows.high(writes.last),
        lost,
        rows.sum(writes.bytes * writes.exact),
    )
    owned = group(own.start, own.end, own_entry, own.task)
    at = _find_rows(users.entry, users.task, owned.key(own_entry), owned.key(own.task))
    users.owned[at] = owned.unique_bytes()
    return users, rows


def _carried_writes(own: Owned) -> Writes:
    """Return bytes of earlier versions as writes of 0 moved bytes without times."""
    zero = np.zeros(len(own), np.int64)
    return Writes(
        own.obj,
        own.ver,
        own.task,
        own.start,
        own.end,
        zero,
        zero + HOW_BIT["carried"],
        zero + UNKNOWN,
        zero + UNKNOWN,
        zero == 0,
        zero != 0,
        zero == 0,
    )


def _find_rows(a: Ints, b: Ints, wanted_a: Ints, wanted_b: Ints) -> Ints:
    """Return the row of each wanted pair in rows sorted by (a, b); all must be present."""
    span = int(max(b.max(initial=0), wanted_b.max(initial=0))) + 1
    return ints(np.searchsorted(a * span + b, wanted_a * span + wanted_b))
