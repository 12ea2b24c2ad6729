"""Entries: the versions of each path in order, with those folded that cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.flow.fold import both_ways
from tracehint.analyzer.flow.model import UNKNOWN, Found, Objects


@dataclass
class Entries:
    """Versions of paths, sorted by lineage, object, version; `target` is the entry it is
    folded into (itself, mostly), `last_of` the last entry that is folded into a target."""

    obj: Ints
    size: Ints
    lineage: Ints
    base: Ints  # first entry of each object
    target: Ints
    shared: Bools  # concurrently shared

    def of(self, obj: Ints, ver: Ints) -> Ints:
        """The entry that stands for a version of an object."""
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
    """Number the versions and fold what is concurrently shared.

    `cycle` per task is the cycle that it is on (`fold.components`), where already known.
    """
    versions = found.versions
    lineage = objects.lineage[versions.obj]
    order = order_by(lineage, objects.rank[versions.obj], versions.ver)
    obj, size, lineage = versions.obj[order], versions.size[order], lineage[order]
    base = np.full(len(objects), UNKNOWN, np.int64)
    first = starts_of(obj)
    base[obj[first]] = first
    _final_sizes(objects, obj, size, first)
    entries = Entries(obj, size, lineage, base, np.arange(len(obj)), np.zeros(len(obj), bool))
    _fold_long(entries, many, max_versions)
    _fold_cycles(entries, found, engine, alone, cycle)
    return entries


def _final_sizes(objects: Objects, obj: Ints, size: Ints, first: Ints) -> None:
    """The last version of each object ends as large as the collector saw it, at least."""
    last = np.append(first[1:], len(obj))[: len(first)] - 1
    size[last] = np.maximum(size[last], objects.size[obj[last]])
    size[objects.unsized[obj]] = UNKNOWN


def _fold_long(entries: Entries, many: Bools, max_versions: int) -> None:
    """All versions of a path that has more than `max_versions` become one entry."""
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
    """Versions on a cycle of tasks are concurrently shared; those of one path become one.

    So is a version in which one task gave bytes to another and got bytes from one: a cycle of
    one task. That is impossible for the objects `alone`.
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
    """Entries of one lineage and one cycle go into the first of them."""
    order = order_by(entries.lineage[entry], cycle, entry)
    entry, cycle = entry[order], cycle[order]
    first = starts_of(entries.lineage[entry], cycle)
    into = np.repeat(entry[first], np.diff(np.append(first, len(entry))))
    moved = np.arange(len(entries.obj))
    np.minimum.at(moved, entry, into)
    entries.target = moved[entries.target]
    while not np.array_equal(further := moved[entries.target], entries.target):
        entries.target = further
