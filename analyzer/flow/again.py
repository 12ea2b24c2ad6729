"""Cycles of tasks that only show once declared edges are there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import places
from tracehint.analyzer.columns import column
from tracehint.analyzer.flow.fold import components
from tracehint.analyzer.flow.model import UNKNOWN, Flow
from tracehint.analyzer.model import FILES


def with_cycles(flow: Flow, tasks: pa.Table) -> pa.Table:
    """Files on a cycle of tasks, now that there are more edges, are concurrently shared."""
    ids = column(tasks, "task")
    p, c = (places(ids, column(flow.edges, n)) for n in ("producer", "consumer"))
    start = pc.fill_null(tasks.column("start_s"), 0.0).to_numpy()
    rank = np.empty(len(ids), np.int64)
    rank[np.lexsort((np.arange(len(ids)), start))] = np.arange(len(ids))
    cycle = components(p, c, rank)
    on = (cycle[p] != UNKNOWN) & (cycle[p] == cycle[c])
    if not on.any():
        return flow.files
    shared = np.asarray(flow.files.column("concurrent").to_numpy(), bool).copy()
    shared[column(flow.edges, "file")[on]] = True
    at = flow.files.column_names.index("concurrent")
    return flow.files.set_column(at, FILES.field("concurrent"), pa.array(shared))
