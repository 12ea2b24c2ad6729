"""The tables of analyzer.model: files with their roles, producers, consumers, edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.flow.entries import Entries
from tracehint.analyzer.flow.grouping import Grouped, how_lists, range_lists
from tracehint.analyzer.flow.model import UNKNOWN, Flow, Objects
from tracehint.analyzer.flow.ranges import Bools, Ints, starts_of
from tracehint.analyzer.flow.users import VIA, Edges, Tasks, Users
from tracehint.analyzer.model import CONSUMERS, EDGES, FILES, PRODUCERS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tracehint.analyzer.model import Options

INPUT, INTERMEDIATE, OUTPUT, SCRATCH, SOFTWARE = range(5)
ROLES = ("input", "intermediate", "output", "scratch", "software")


@dataclass
class Parts:
    """All that the tables are made of; users are grouped rows with their ranges."""

    objects: Objects
    entries: Entries
    tasks: Tasks
    producers: tuple[Users, Grouped]
    consumers: tuple[Users, Grouped]
    edges: Edges
    software: Ints  # objects outside the data roots that were used


def make_tables(
    parts: Parts, relative: Callable[[pa.Array], pa.Array], options: Options, notes: list[str]
) -> Flow:
    """Number what is left and write the tables. `relative` shortens paths by their root."""
    entries = parts.entries
    used = np.zeros(len(entries.obj), bool)
    for users, _ in (parts.producers, parts.consumers):
        used[users.entry] = True
    used[parts.edges.entry] = True
    at = np.flatnonzero(used)
    number = np.full(len(used), UNKNOWN, np.int64)
    number[at] = np.arange(len(at))
    return Flow(
        files=_files(parts, at, relative),
        producers=_users(parts, *parts.producers, number, PRODUCERS, options),
        consumers=_users(parts, *parts.consumers, number, CONSUMERS, options),
        edges=_edges(parts, number),
        notes=notes,
    )


def roles(parts: Parts) -> Ints:
    """The role of each entry (docs/reference/flow.md)."""
    entries = parts.entries
    n = len(entries.obj)
    written, read = np.zeros(n, bool), np.zeros(n, bool)
    written[parts.producers[0].entry] = True
    read[parts.consumers[0].entry] = True
    read[parts.edges.entry] = True
    last = np.zeros(n, bool)
    live = np.flatnonzero(written | read)
    first = starts_of(entries.lineage[live])
    last[live[np.append(first[1:], len(live))[: len(first)] - 1]] = True
    # a folded entry stands for the last object of its path
    final = np.arange(n)
    np.maximum.at(final, entries.target, np.arange(n))
    stays = last & ~parts.objects.deleted[entries.obj[final]]
    return np.where(
        read, np.where(written, INTERMEDIATE, INPUT), np.where(stays, OUTPUT, SCRATCH)
    )


def _files(parts: Parts, at: Ints, relative: Callable[[pa.Array], pa.Array]) -> pa.Table:
    import pyarrow as pa

    entries, objects = parts.entries, parts.objects
    first = starts_of(entries.lineage[at])
    version = np.arange(len(at)) - np.repeat(first, np.diff(np.append(first, len(at))))
    # a folded entry has the names and the size of the last object in it
    final = np.arange(len(entries.obj))
    np.maximum.at(final, entries.target, np.arange(len(final)))
    obj = np.concatenate([entries.obj[final[at]], parts.software])
    more = len(parts.software)
    zero = np.zeros(more, np.int64)
    size = np.concatenate([entries.size[final[at]], objects.size[parts.software]])
    role = np.concatenate([roles(parts)[at], zero + SOFTWARE])
    rows = pa.array(obj)
    others = objects.other_paths.take(rows)
    return pa.table(
        [
            pa.array(np.arange(len(obj))),
            pa.array(objects.lineage[obj]),
            pa.array(np.concatenate([version, zero]), pa.int32()),
            relative(objects.path.take(rows)),
            pa.ListArray.from_arrays(others.offsets, relative(others.values))
            if len(others.values) else others,
            pa.array(ROLES).take(pa.array(role)),
            pa.array(size, mask=size == UNKNOWN),
            pa.array(objects.deleted[obj]),
            pa.array(np.concatenate([_exact_share(parts)[at], np.ones(more)])),
            pa.array(np.concatenate([entries.shared[at], zero == 1])),
        ],
        schema=FILES,
    )  # fmt: skip


def _exact_share(parts: Parts) -> np.ndarray:
    """Share of the accessed bytes of each entry that are known exactly; 1 where none moved."""
    moved, exact = np.zeros(len(parts.entries.obj)), np.zeros(len(parts.entries.obj))
    for users, _ in (parts.producers, parts.consumers):
        np.add.at(moved, users.entry, users.bytes)
        np.add.at(exact, users.entry, users.exact)
    return np.where(moved > 0, exact / np.maximum(moved, 1), 1.0)


def _users(
    parts: Parts, users: Users, rows: Grouped, number: Ints, schema: pa.Schema, options: Options
) -> pa.Table:
    import pyarrow as pa

    size = _sizes(parts)[users.entry]
    unsized = parts.objects.unsized[parts.entries.obj[users.entry]]
    unique = np.where(unsized, 0, users.unique)
    known = (size > 0) & ~unsized
    cover = np.minimum(unique / np.maximum(size, 1), 1.0)
    peek = known & (unique < options.peek_share * size) & (unique < options.peek_bytes)
    columns = {
        "file": pa.array(number[users.entry]),
        "task": pa.array(parts.tasks.ids[users.task]),
        "bytes": pa.array(users.bytes),
        "unique_bytes": pa.array(unique),
        "owned_bytes": pa.array(np.where(unsized, 0, users.owned)),
        "cover": pa.array(cover, mask=~known),
        "peek": pa.array(peek),
        "ranges": _ranges(rows, unsized),
        "how": how_lists(users.how),
        "first_s": _seconds(users.first, parts.tasks),
        "last_s": _seconds(users.last, parts.tasks),
        "superseded": pa.array(users.superseded),
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _sizes(parts: Parts) -> Ints:
    """The size of each entry; of a folded one the largest that it had."""
    size = parts.entries.size.copy()
    np.maximum.at(size, parts.entries.target, parts.entries.size)
    return size


def _ranges(rows: Grouped, unsized: Bools) -> pa.Array:
    if not unsized.any():
        return range_lists(rows.offsets, rows.start, rows.end)
    counts = np.diff(rows.offsets)
    keep = ~np.repeat(unsized, counts)
    offsets = np.concatenate([[0], np.cumsum(np.where(unsized, 0, counts))])
    return range_lists(offsets, rows.start[keep], rows.end[keep])


def _seconds(when: Ints, tasks: Tasks) -> pa.Array:
    import pyarrow as pa

    return pa.array((when - tasks.started_ns) / 1e9, mask=when == UNKNOWN)


def _edges(parts: Parts, number: Ints) -> pa.Table:
    import pyarrow as pa

    edges, ids = parts.edges, parts.tasks.ids
    unsized = parts.objects.unsized[parts.entries.obj[edges.entry]]
    return pa.table(
        [
            pa.array(np.arange(len(edges))),
            pa.array(ids[edges.producer]),
            pa.array(number[edges.entry]),
            pa.array(ids[edges.consumer]),
            pa.array(np.where(unsized, 0, edges.bytes)),
            pa.array(VIA).take(pa.array(edges.via)),
            pa.array(("certain", "uncertain")).take(pa.array(edges.uncertain.astype(np.int64))),
        ],
        schema=EDGES,
    )
