"""Declared names where the run had them: a workflow file need not lie where its run took place.

Relative names of a graph were resolved against the directory of its file or log. The run may have
been somewhere else: started in another directory, recorded elsewhere and copied here, or sent
down by `make -C`. The directory in which most of the names are files of the run is the right one.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from tracehint.adapters.engines.graph_base import DeclaredGraph

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.tasks.model import Segmentation
    from tracehint.schemas.store import Bundle


def relocated(
    graph: DeclaredGraph, run: Bundle, segmented: Segmentation | None = None
) -> DeclaredGraph:
    """The graph with its names below the directory where the run has them: that of the run's
    command, one of its data roots, or where they are."""
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.tasks.segmentation import segment_tasks

    here = graph.cwd
    if not here or not graph.io.num_rows or not run.tables["opens"].num_rows:
        return _moved(graph, os.fsencode(run.manifest.cwd) or here)
    known = _paths(run)
    roots = data_roots(run, (), segmented or segment_tasks(run))
    places = dict.fromkeys([os.fsencode(run.manifest.cwd) or here, here, *roots])
    moved = {place: _moved(graph, place) for place in places}
    return max(moved.values(), key=lambda graph: _hits(graph.io, known))  # the first of equal ones


def _paths(run: Bundle) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.schemas.compact import plain

    columns = [plain(run.tables[name].column("path")) for name in ("opens", "names")]
    every = [chunk for column in columns for chunk in column.chunks]
    return pc.unique(pa.chunked_array(every, pa.binary()))


def _hits(io: pa.Table, known: pa.Array) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(pc.is_in(pc.unique(io.column("path")), value_set=known)).as_py() or 0)


def _moved(graph: DeclaredGraph, new: bytes) -> DeclaredGraph:
    """Paths below the graph's directory as paths below `new`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if new == graph.cwd:
        return graph
    old, base = graph.cwd.rstrip(b"/") + b"/", new.rstrip(b"/") + b"/"
    path = graph.io.column("path").cast(pa.binary())
    tail = pc.binary_replace_slice(path, 0, len(old), base)
    path = pc.if_else(pc.starts_with(path, old), tail, path)
    at = graph.io.column_names.index("path")
    io = graph.io.set_column(at, graph.io.schema.field("path"), path)
    return dataclasses.replace(graph, io=io, cwd=new)
