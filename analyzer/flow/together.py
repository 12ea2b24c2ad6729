"""The tables of analyzer.model, from those of all partitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.flow.model import Flow, Objects
from tracehint.analyzer.flow.tables import Part
from tracehint.analyzer.model import CONSUMERS, EDGES, FILES, PRODUCERS

Relative = Callable[[pa.Array], pa.Array]


def together(
    parts: list[Part], objects: Objects, touched: Bools, relative: Relative, notes: list[str]
) -> tuple[Flow, Ints]:
    """One table of each kind for all partitions, and the object of each file row.

    Files outside the roots come last: those that are `touched` (a mask over the objects).
    """
    counts = [len(p.entries) for p in parts]
    offsets = [sum(counts[:i]) for i in range(len(parts))]
    edge_offsets = np.cumsum([0, *(p.edge_table.num_rows for p in parts)])
    used = np.concatenate([p.entries for p in parts] or [np.empty(0, np.int64)])
    used = np.concatenate([used, np.flatnonzero(touched & objects.software)])
    edges = [
        _shifted(_shifted(p.edge_table, "file", n), "edge", int(m))
        for p, n, m in zip(parts, offsets, edge_offsets, strict=False)
    ]
    producers = [_shifted(p.producer_table, "file", n) for p, n in zip(parts, offsets, strict=True)]
    consumers = [_shifted(p.consumer_table, "file", n) for p, n in zip(parts, offsets, strict=True)]
    files = _files(parts, used, objects, relative)
    return Flow(
        files,
        _joined(producers, PRODUCERS),
        _joined(consumers, CONSUMERS),
        _joined(edges, EDGES),
        list(dict.fromkeys(notes)),
    ), used


def _shifted(table: pa.Table, name: str, by: int) -> pa.Table:
    if not by:
        return table
    at = table.column_names.index(name)
    moved = pc.add(table.column(name), pa.scalar(by, pa.int64()))
    return table.set_column(at, table.schema.field(name), moved)


def _joined(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _files(parts: list[Part], used: Ints, objects: Objects, relative: Relative) -> pa.Table:
    """The rows of the partitions with their names; then the files outside the data roots."""
    known = _joined([p.files for p in parts], pa.schema([]))
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
