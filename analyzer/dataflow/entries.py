"""File versions as entries; those through which tasks feed each other both ways are folded.

A cycle of tasks p -> c -> ... -> p needs an edge into a task that had already written before
its producer first wrote. Only tasks between the first writes of the ends of such edges can be on
a cycle: these are few or none, and only they are searched for components.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, codes, column, distinct, order_by, starts_of
from tracehint.analyzer.dataflow.model import (
    HOW_BIT,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Found,
    Objects,
    Versions,
    Writes,
)

if TYPE_CHECKING:
    import pyarrow as pa


def components(producer: Ints, consumer: Ints, first_write: Ints) -> Ints:
    """Return the cycle number of each task, UNKNOWN for tasks on no cycle.

    `first_write` orders the tasks that write; tasks that never write are on no cycle.
    """
    found = np.full(len(first_write), UNKNOWN, np.int64)
    pairs = _possible_cycle_edges(producer, consumer, first_write)
    if not len(pairs[0]):
        return found
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
    cycles = sorted(sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1)
    for number, cycle in enumerate(cycles):
        found[cycle] = number
    return found


def _possible_cycle_edges(producer: Ints, consumer: Ints, first_write: Ints) -> tuple[Ints, Ints]:
    """Return the edges that may be part of a cycle."""
    count = len(first_write)
    both = np.zeros(count, bool)
    both[consumer] = True
    writes = np.zeros(count, bool)
    writes[producer] = True
    both &= writes
    inner = both[producer] & both[consumer] & (producer != consumer)
    producer, consumer = producer[inner], consumer[inner]
    begin, end = first_write[consumer], first_write[producer]
    back = np.flatnonzero(end >= begin)
    if not len(back):
        return producer[:0], consumer[:0]
    # time segments spanned by edges against the write order, merged where they overlap
    back = back[np.argsort(begin[back], kind="stable")]
    low, high = begin[back], np.maximum.accumulate(end[back])
    new = np.ones(len(back), bool)
    new[1:] = low[1:] > high[:-1]
    first = np.flatnonzero(new)
    left, right = low[first], high[np.append(first[1:], len(back)) - 1]

    def segment(tasks: Ints) -> Ints:
        when = first_write[tasks]
        at = np.maximum(np.searchsorted(left, when, side="right") - 1, 0)
        return np.where((left[at] <= when) & (when <= right[at]), at, UNKNOWN)

    from_, to = segment(producer), segment(consumer)
    hit = (from_ == to) & (from_ != UNKNOWN)
    return producer[hit], consumer[hit]


def both_ways(entry: Ints, producer: Ints, consumer: Ints) -> Ints:
    """Return the entries in which one task both gave bytes to another and got bytes from one."""
    count = int(max(producer.max(), consumer.max())) + 1 if len(entry) else 1
    gave, got = distinct(entry * count + producer), distinct(entry * count + consumer)
    return distinct(np.intersect1d(gave, got, assume_unique=True) // count)


@dataclass
class Entries:
    """Versions of paths, sorted by lineage, object, version. `target` is the entry into which each
    one is folded, mostly itself."""

    obj: Ints
    size: Ints
    lineage: Ints
    base: Ints  # first entry of each object
    target: Ints
    shared: Bools  # concurrently shared

    def of(self, obj: Ints, ver: Ints) -> Ints:
        """Return the entries that represent these versions of objects."""
        return np.asarray(self.target[self.base[obj] + ver])

    def is_last(self, obj: Ints, ver: Ints) -> Bools:
        """Whether the version is the last of those folded into its entry."""
        last = np.zeros(len(self.obj), np.int64)
        np.maximum.at(last, self.target, np.arange(len(self.obj)))
        at = self.base[obj] + ver
        return np.asarray(last[self.target[at]] == at)


def make_entries(
    found: Found,
    objects: Objects,
    engine: Bools,
    alone: Bools,
    many: Bools,
    max_versions: int,
    cycle: Ints | None,
) -> Entries:
    """Number the versions and fold those that are concurrently shared.

    `cycle` is the cycle of each task (`components`), if already known.
    """
    versions = found.versions
    lineage = objects.lineage[versions.obj]
    order = order_by(lineage, objects.rank[versions.obj], versions.ver)
    obj, size, lineage = versions.obj[order], versions.size[order], lineage[order]
    base = np.full(len(objects), UNKNOWN, np.int64)
    first = starts_of(obj)
    base[obj[first]] = first
    _raise_final_sizes(objects, obj, size, first)
    entries = Entries(obj, size, lineage, base, np.arange(len(obj)), np.zeros(len(obj), bool))
    _fold_many_versions(entries, many, max_versions)
    _fold_cycles(entries, found, engine, alone, cycle)
    return entries


def _raise_final_sizes(objects: Objects, obj: Ints, size: Ints, first: Ints) -> None:
    """Raise the last size of each object to the recorded one, in place; unsized: UNKNOWN."""
    last = np.append(first[1:], len(obj))[: len(first)] - 1
    size[last] = np.maximum(size[last], objects.size[obj[last]])
    size[objects.unsized[obj]] = UNKNOWN


def _fold_many_versions(entries: Entries, many: Bools, max_versions: int) -> None:
    """Fold all versions of a path that has more than `max_versions` into one entry."""
    first = starts_of(entries.lineage)
    counts = np.diff(np.append(first, len(entries.lineage)))
    long = counts > max_versions
    group = np.repeat(np.arange(len(first)), counts)
    np.logical_or.at(long, group, many[entries.obj])
    entries.shared |= long[group]
    entries.target = np.where(long[group], first[group], entries.target)


def _fold_cycles(
    entries: Entries, found: Found, engine: Bools, alone: Bools, cycle: Ints | None
) -> None:
    """Mark versions on a cycle of tasks as concurrently shared, and fold those of one path.

    A version in which one task both gave bytes to another and got bytes from one is marked too: a
    cycle of one task. That is impossible for the objects `alone`.
    """
    links = found.links
    if cycle is not None:
        on = (cycle[links.producer] != UNKNOWN) & (cycle[links.producer] == cycle[links.consumer])
        entry = entries.of(links.obj[on], links.ver[on])
        _merge(entries, entry, cycle[links.producer[on]])
        entries.shared[entries.target[entry]] = True
    rest = ~alone[links.obj]
    rest[rest] = ~engine[links.producer[rest]] & ~engine[links.consumer[rest]]
    entry = entries.of(links.obj[rest], links.ver[rest])
    entries.shared[both_ways(entry, links.producer[rest], links.consumer[rest])] = True


def _merge(entries: Entries, entry: Ints, cycle: Ints) -> None:
    """Fold entries of one lineage and one cycle into the first of them."""
    order = order_by(entries.lineage[entry], cycle, entry)
    entry, cycle = entry[order], cycle[order]
    first = starts_of(entries.lineage[entry], cycle)
    into = np.repeat(entry[first], np.diff(np.append(first, len(entry))))
    moved = np.arange(len(entries.obj))
    np.minimum.at(moved, entry, into)
    entries.target = moved[entries.target]
    while not np.array_equal(further := moved[entries.target], entries.target):
        entries.target = further


def series_of(tasks: pa.Table) -> tuple[Ints, Ints]:
    """Return per task (in table order) its series of attempts, and its preference in the series.

    A series has one type, name and command and begins with each first attempt; a task that was
    not retried is in none (UNKNOWN). The last successful attempt is preferred, else the last one.
    """
    n = tasks.num_rows
    attempt = np.maximum(column(tasks, "attempt", null=1), 1)
    if not (attempt > 1).any():
        return np.full(n, UNKNOWN, np.int64), np.zeros(n, np.int64)
    texts = [codes(tasks, name) for name in ("type", "name", "command")]
    start = np.nan_to_num(np.asarray(tasks.column("start_s").to_numpy(), float))
    order = np.lexsort((attempt, start, *texts[::-1]))
    keys = [t[order] for t in texts]
    new = attempt[order] == 1
    new[starts_of(*keys)] = True
    series = np.empty(n, np.int64)
    series[order] = np.cumsum(new)
    series[(np.bincount(series) == 1)[series]] = UNKNOWN
    good = (column(tasks, "exit_status", null=-1) == 0).astype(np.int64)
    return series, good * (int(attempt.max()) + 1) + attempt


def one_per_series(entry: Ints, task: Ints, series: Ints, preference: Ints) -> Bools:
    """Return which (entry, task) rows to keep: the preferred attempt of each series per entry.

    A pair may occur in several rows; all rows of the preferred attempt are kept.
    """
    keep = np.ones(len(entry), bool)
    retried = np.flatnonzero(series[task] != UNKNOWN)
    if not len(retried):
        return keep
    e, s, p = entry[retried], series[task[retried]], preference[task[retried]]
    order = order_by(e, s, p)
    first = starts_of(e[order], s[order])
    best = np.append(first[1:], len(order))[: len(first)] - 1
    sizes = np.diff(np.append(first, len(order)))
    chosen = np.repeat(p[order][best], sizes)
    keep[retried[order]] = p[order] == chosen
    return keep


def add_makers_of_empty(found: Found, access: Access, objects: Objects, engine: Bools) -> None:
    """Add the maker of each file without written bytes as its producer (of 0 bytes), in place.

    That is the task that created it, else the first that truncated it; engines are never makers.
    """
    count = len(objects)
    maker = objects.maker.copy()
    cut = access.take(access.op == TRUNCATE)
    first = np.full(count, UNKNOWN, np.int64)
    order = np.argsort(-cut.first, kind="stable")
    first[cut.obj[order]] = cut.task[order]
    maker = np.where(maker == UNKNOWN, first, maker)
    filled = np.zeros(count, bool)
    filled[access.obj[access.op == WRITE]] = True
    at = np.flatnonzero((maker >= 0) & ~filled & ~objects.software)
    at = at[~engine[maker[at]]]
    zero = np.zeros(len(at), np.int64)
    nothing = Writes(
        at,
        zero,
        maker[at],
        zero,
        zero,
        zero,
        zero + HOW_BIT["open"],
        zero + UNKNOWN,
        zero + UNKNOWN,
        zero == 0,
        zero != 0,
        zero == 0,
    )
    found.writes = Writes.concat_parts([found.writes, nothing])
    known = np.zeros(count, bool)
    known[found.versions.obj] = True
    new = at[~known[at]]
    size = np.maximum(objects.size[new], 0)
    found.versions = Versions.concat_parts([found.versions, Versions(new, new * 0, size)])
