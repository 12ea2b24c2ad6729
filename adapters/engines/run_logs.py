"""Logs and records written by the engines of a run, found in the run's own trace.

Only existing regular files that an engine process of this run wrote are read. So files named by an
untrusted bundle are opened only if the user requests it, by calling this right after recording, on
the recording host.
"""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.engines.graph_base import DeclaredGraph
from tracehint.adapters.engines.graphs import combine, read_graph, sniff
from tracehint.errors import TracehintError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Segmentation
    from tracehint.schemas.store import Bundle

_MAX_FILES = 256
_MAX_BYTES = 1 << 30
_LOG_RESOLUTION_NS = 1_000_000_000  # resolution of times in logs: one second
_NEXTFLOW_LOG = b".nextflow.log"
_SNAKEMAKE = re.compile(rb"^(.*)/\.snakemake/metadata/", re.DOTALL)


def find_logs(bundle: Bundle, segmented: Segmentation) -> list[Path]:
    """Return files and directories that a reader recognises, written by the run's engines."""
    import pyarrow.compute as pc

    from tracehint.analyzer.path_rules import is_system

    engines = (
        segmented.tasks.filter(segmented.tasks.column("engine")).column("task").combine_chunks()
    )
    mask = pc.is_in(segmented.proc_task.column("task"), value_set=engines)
    procs = segmented.proc_task.filter(mask).column("proc").combine_chunks()
    opens = bundle.tables["opens"]
    wrote = pc.or_(pc.greater(opens.column("write_ops"), 0), opens.column("created"))
    wrote = pc.and_(wrote, pc.is_in(opens.column("proc"), value_set=procs))
    paths = pc.unique(opens.filter(wrote).column("path"))
    found: dict[Path, None] = {}
    for path, system in zip(paths.to_pylist(), is_system(paths).tolist(), strict=True):
        if system or len(found) >= _MAX_FILES:
            continue
        record = _SNAKEMAKE.match(path)
        if record:
            found[Path(os.fsdecode(record[1]) or "/")] = None
        elif b"/." not in path.removesuffix(b"/" + _NEXTFLOW_LOG):
            found[Path(os.fsdecode(path))] = None
    return [p for p in found if _readable(p)]


def _readable(path: Path) -> bool:
    try:
        if path.is_symlink() or (path.is_file() and path.stat().st_size > _MAX_BYTES):
            return False
        return sniff(path) is not None
    except (OSError, ValueError, TracehintError):
        return False


def attach(bundle: Path) -> DeclaredGraph | None:
    """Add the declarations of a recorded run's engines to its bundle: names, rules and attempts of
    tasks, inputs and outputs. Return None if no log was found or the bundle has declarations."""
    from tracehint.analyzer.tasks.segmentation import segment_tasks
    from tracehint.schemas.store import read_bundle, segment_files
    from tracehint.schemas.writer import BundleWriter

    run = read_bundle(bundle, without=("extents", "metadata_ops"))  # not needed to find tasks
    if run.tables["declared_tasks"].num_rows:
        return None
    graph = declared_by_run(run, segment_tasks(run))
    if graph is None:
        return None
    writer = BundleWriter.append_to(bundle)
    for name, table in (("declared_tasks", graph.tasks), ("declared_io", graph.io)):
        writer.write_table(name, table, segment=len(segment_files(bundle, name)))
    return graph


def declared_by_run(bundle: Bundle, segmented: Segmentation) -> DeclaredGraph | None:
    """Return the graph from the logs of a run's engines; None if there is none."""
    graphs: list[DeclaredGraph] = []
    for path in sorted(find_logs(bundle, segmented), key=_is_secondary):
        try:
            graph = relocate_graph(_drop_earlier_tasks(read_graph(path), bundle), bundle, segmented)
        except TracehintError:
            continue  # a log of another run, or a truncated one: the trace is used alone
        if graph.tasks.num_rows and not (_is_secondary(path) and _has_all_tasks(graph, graphs)):
            graphs.append(graph)
    return combine(graphs) if graphs else None


def _drop_earlier_tasks(graph: DeclaredGraph, bundle: Bundle) -> DeclaredGraph:
    """Drop tasks that ended before the run began: engines append to logs of earlier runs."""
    import pyarrow.compute as pc

    graph = graph.plain()
    tasks = graph.tasks
    began = bundle.manifest.started_ns - _LOG_RESOLUTION_NS
    now = pc.fill_null(pc.greater_equal(tasks.column("end_ns"), began), True)
    if graph.placed or pc.all(now).as_py() is not False:
        return graph
    tasks = tasks.filter(now)
    kept = pc.is_in(graph.io.column("task"), value_set=tasks.column("task").combine_chunks())
    return replace(graph, tasks=tasks, io=graph.io.filter(kept))


def _is_secondary(path: Path) -> bool:
    """Whether a log may contain less than another file of the same run."""
    return sniff(path) == "nextflow-log"


def _has_all_tasks(graph: DeclaredGraph, graphs: list[DeclaredGraph]) -> bool:
    """Whether other graphs contain all tasks of a graph, by their work directories."""
    known = {where for other in graphs for where in other.tasks.column("workdir").to_pylist()}
    return known.issuperset(graph.tasks.column("workdir").to_pylist())


# Relocation of declared names: a workflow file need not be in the directory of its run.
#
# Relative names of a graph were resolved against the directory of its file or log. The run may have
# used another one: started in another directory, recorded elsewhere and copied here, or changed
# by `make -C`. The directory in which most of the names are files of the run is chosen.


def relocate_graph(
    graph: DeclaredGraph, run: Bundle, segmented: Segmentation | None = None
) -> DeclaredGraph:
    """Return the graph with names below the directory that fits the run best: that of the run's
    command, one of its data roots, or the graph's own."""
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.tasks.segmentation import segment_tasks

    here = graph.cwd
    if not here or not graph.io.num_rows or not run.tables["opens"].num_rows:
        return _move_paths(graph, os.fsencode(run.manifest.cwd) or here)
    known = _paths(run)
    roots = data_roots(run, (), segmented or segment_tasks(run))
    places = dict.fromkeys([os.fsencode(run.manifest.cwd) or here, here, *roots])
    moved = {place: _move_paths(graph, place) for place in places}
    return max(moved.values(), key=lambda graph: _count_hits(graph.io, known))  # first if equal


def _paths(run: Bundle) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.schemas.compact import plain

    columns = [plain(run.tables[name].column("path")) for name in ("opens", "names")]
    every = [chunk for column in columns for chunk in column.chunks]
    return pc.unique(pa.chunked_array(every, pa.binary()))


def _count_hits(io: pa.Table, known: pa.Array) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(pc.is_in(pc.unique(io.column("path")), value_set=known)).as_py() or 0)


def _move_paths(graph: DeclaredGraph, new: bytes) -> DeclaredGraph:
    """Return the graph with paths below its directory moved below `new`."""
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
