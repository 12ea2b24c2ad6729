"""Tables of one partition: files with their roles, producers, consumers, edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, Shorts, starts_of
from tracehint.analyzer.dataflow.entries import Entries
from tracehint.analyzer.dataflow.model import UNKNOWN, Flow, Objects
from tracehint.analyzer.dataflow.users import (
    VIA,
    Edges,
    Grouped,
    Tasks,
    UseRows,
    how_lists,
    range_lists,
)
from tracehint.analyzer.model import CONSUMERS, EDGES, FILES, PRODUCERS

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options


INPUT, INTERMEDIATE, OUTPUT, SCRATCH, SOFTWARE = range(5)
ROLES = ("input", "intermediate", "output", "scratch", "software")


@dataclass
class Part:
    """The tables of one partition; files are numbered from 0 in each.

    `ends` repeats the edges as arrays, to search for cycles of tasks.
    """

    entries: Ints  # object (of the whole run) of each file row
    files: pa.Table
    producer_table: pa.Table
    consumer_table: pa.Table
    edge_table: pa.Table
    ends: Ends


@dataclass
class Ends:
    """Tasks (numbers) at both ends of each edge, and the first write of each writer."""

    producer: Shorts
    consumer: Shorts
    writer: Shorts
    first: Ints  # UNKNOWN: time not known


def make_part(
    low: int,
    objects: Objects,
    entries: Entries,
    tasks: Tasks,
    producers: tuple[UseRows, Grouped],
    consumers: tuple[UseRows, Grouped],
    edges: Edges,
    options: Options,
) -> Part:
    """Number the used entries and build their tables; `low` is the first object."""
    used = np.zeros(len(entries.obj), bool)
    for entry in (producers[0].entry, consumers[0].entry, edges.entry):
        used[entry] = True
    at = np.flatnonzero(used)
    number, size = (np.full(len(used), UNKNOWN, np.int64) for _ in range(2))
    number[at] = np.arange(len(at))
    final = _last_folded(entries)
    np.maximum.at(size, entries.target, entries.size)
    role = _roles(objects, entries, final, producers[0], consumers[0], edges)
    share = _exact_share(len(used), producers[0], consumers[0])
    files = pa.table(
        {
            "file": np.arange(len(at)),
            "version": _versions(entries.lineage[at]),
            "role": pa.array(ROLES).take(pa.array(role[at])),
            "size_bytes": pa.array(entries.size[final[at]], mask=entries.size[final[at]] < 0),
            "exact_share": share[at],
            "concurrent": entries.shared[at],
        }
    )
    facts = _EntryColumns(tasks, number, size, objects.unsized[entries.obj], options)
    return Part(
        entries.obj[final[at]] + low,
        files,
        _use_table(facts, *producers, PRODUCERS),
        _use_table(facts, *consumers, CONSUMERS),
        _edges(facts, edges),
        _edge_ends(edges, producers[0]),
    )


@dataclass
class _EntryColumns:
    """Inputs per entry for the rows of its users."""

    tasks: Tasks
    number: Ints
    size: Ints
    unsized: Bools
    options: Options


def _edge_ends(edges: Edges, producers: UseRows) -> Ends:
    return Ends(
        edges.producer.astype(np.int32),
        edges.consumer.astype(np.int32),
        producers.task.astype(np.int32),
        producers.first,
    )


def _versions(lineage: Ints) -> Ints:
    """Return the position of each entry in its lineage, from 0."""
    first = starts_of(lineage)
    count = len(lineage)
    return (np.arange(count) - np.repeat(first, np.diff(np.append(first, count)))).astype(np.int32)


def _last_folded(entries: Entries) -> Ints:
    """Return the last entry folded into each: the fold has its names, size and end."""
    final = np.arange(len(entries.obj))
    np.maximum.at(final, entries.target, np.arange(len(final)))
    return final


def _roles(
    objects: Objects,
    entries: Entries,
    final: Ints,
    producers: UseRows,
    consumers: UseRows,
    edges: Edges,
) -> Ints:
    """Return the role of each entry (docs/reference/flow.md)."""
    n = len(entries.obj)
    written, read = np.zeros(n, bool), np.zeros(n, bool)
    written[producers.entry] = True
    read[consumers.entry] = True
    read[edges.entry] = True
    last = np.zeros(n, bool)
    live = np.flatnonzero(written | read)
    first = starts_of(entries.lineage[live])
    last[live[np.append(first[1:], len(live))[: len(first)] - 1]] = True
    stays = last & ~objects.deleted[entries.obj[final]]
    return np.where(read, np.where(written, INTERMEDIATE, INPUT), np.where(stays, OUTPUT, SCRATCH))


def _exact_share(count: int, *users: UseRows) -> np.ndarray:
    """Return the share of each entry's accessed bytes that is known exactly; 1 if none moved."""
    moved, exact = np.zeros(count), np.zeros(count)
    for rows in users:
        moved += np.bincount(rows.entry, rows.bytes, count)
        exact += np.bincount(rows.entry, rows.exact, count)
    return np.where(moved > 0, exact / np.maximum(moved, 1), 1.0)


def _use_table(facts: _EntryColumns, users: UseRows, rows: Grouped, schema: pa.Schema) -> pa.Table:
    options, size = facts.options, facts.size[users.entry]
    unsized = facts.unsized[users.entry]
    unique = np.where(unsized, 0, users.unique)
    known = (size > 0) & ~unsized
    cover = np.minimum(unique / np.maximum(size, 1), 1.0)
    columns = {
        "file": facts.number[users.entry],
        "task": facts.tasks.ids[users.task],
        "bytes": users.bytes,
        "unique_bytes": unique,
        "owned_bytes": np.where(unsized, 0, users.owned),
        "cover": pa.array(cover, mask=~known),
        "peek": known & (unique < options.peek_share * size) & (unique < options.peek_bytes),
        "ranges": _ranges(rows, unsized),
        "how": how_lists(users.how),
        "first_s": _seconds(users.first, facts.tasks),
        "last_s": _seconds(users.last, facts.tasks),
        "superseded": users.superseded,
    }
    return pa.table([pa.array(columns[name]) for name in schema.names], schema=schema)


def _ranges(rows: Grouped, unsized: Bools) -> pa.Array:
    """Return the ranges of each row; none for empty files and unknown sizes."""
    keep = rows.end > rows.start
    if unsized.any():
        keep &= ~np.repeat(unsized, np.diff(rows.offsets))
    if keep.all():
        return range_lists(rows.offsets, rows.start, rows.end)
    kept = np.concatenate([[0], np.cumsum(keep)])
    return range_lists(kept[rows.offsets], rows.start[keep], rows.end[keep])


def _seconds(when: Ints, tasks: Tasks) -> pa.Array:
    return pa.array((when - tasks.started_ns) / 1e9, mask=when == UNKNOWN)


def _edges(facts: _EntryColumns, edges: Edges) -> pa.Table:
    ids = facts.tasks.ids
    columns = [
        np.arange(len(edges)),
        ids[edges.producer],
        facts.number[edges.entry],
        ids[edges.consumer],
        np.where(facts.unsized[edges.entry], 0, edges.bytes),
        pa.array(VIA).take(pa.array(edges.via)),
        pa.array(("certain", "uncertain")).take(pa.array(edges.uncertain.astype(np.int64))),
    ]
    return pa.table([pa.array(c) for c in columns], schema=EDGES)


Relative = Callable[[pa.Array], pa.Array]


def concat_flows(
    parts: list[Part], objects: Objects, touched: Bools, relative: Relative, notes: list[str]
) -> tuple[Flow, Ints]:
    """Concatenate the tables of all partitions; return them and the object of each file row.

    Files outside the roots come last: those in `touched` (a mask over the objects).
    """
    counts = [len(p.entries) for p in parts]
    offsets = [sum(counts[:i]) for i in range(len(parts))]
    edge_offsets = np.cumsum([0, *(p.edge_table.num_rows for p in parts)])
    used = np.concatenate([p.entries for p in parts] or [np.empty(0, np.int64)])
    used = np.concatenate([used, np.flatnonzero(touched & objects.software)])
    edges = [
        _shift_column(_shift_column(p.edge_table, "file", n), "edge", int(m))
        for p, n, m in zip(parts, offsets, edge_offsets, strict=False)
    ]
    producers = [
        _shift_column(p.producer_table, "file", n) for p, n in zip(parts, offsets, strict=True)
    ]
    consumers = [
        _shift_column(p.consumer_table, "file", n) for p, n in zip(parts, offsets, strict=True)
    ]
    files = _files(parts, used, objects, relative)
    return Flow(
        files,
        _concat_or_empty(producers, PRODUCERS),
        _concat_or_empty(consumers, CONSUMERS),
        _concat_or_empty(edges, EDGES),
        list(dict.fromkeys(notes)),
    ), used


def _shift_column(table: pa.Table, name: str, by: int) -> pa.Table:
    if not by:
        return table
    at = table.column_names.index(name)
    moved = pc.add(table.column(name), pa.scalar(by, pa.int64()))
    return table.set_column(at, table.schema.field(name), moved)


def _concat_or_empty(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _files(parts: list[Part], used: Ints, objects: Objects, relative: Relative) -> pa.Table:
    """Return the rows of the partitions with names, then the files outside the data roots."""
    known = _concat_or_empty([p.files for p in parts], pa.schema([]))
    more = len(used) - known.num_rows
    rows = pa.array(used)
    others = objects.other_paths.take(rows)
    paths = relative(pa.concat_arrays([objects.path.take(rows), others.values]))
    extra = pa.table(
        {
            "file": known.num_rows + np.arange(more),
            "version": np.zeros(more, np.int32),
            "role": pa.array(["software"] * more, pa.string()),
            "size_bytes": pa.array(size := objects.size[used[known.num_rows :]], mask=size < 0),
            "exact_share": np.ones(more),
            "concurrent": np.zeros(more, bool),
        }
    )
    table = pa.concat_tables([known, extra]) if parts else extra
    columns = {name: table.column(name) for name in table.column_names}
    columns["file"] = pa.array(np.arange(len(used)))
    columns["lineage"] = pa.array(objects.lineage[used])
    columns["path"] = paths.slice(0, len(used))
    columns["other_paths"] = pa.ListArray.from_arrays(others.offsets, paths.slice(len(used)))
    columns["deleted"] = pa.array(objects.deleted[used])
    return pa.table([columns[name] for name in FILES.names], schema=FILES)
