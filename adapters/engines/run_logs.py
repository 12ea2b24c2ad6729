"""The logs and records that the engines of a run left behind, found by what the run wrote.

Only regular files that an engine process of this very run wrote and that are still there are
looked into, so nothing that a stranger's bundle names is opened unless the user asks for it by
calling this right after recording, on the recording host.
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
_CLOCKS_NS = 1_000_000_000  # logs have whole seconds
_NEXTFLOW_LOG = b".nextflow.log"
_SNAKEMAKE = re.compile(rb"^(.*)/\.snakemake/metadata/", re.DOTALL)


def find_logs(bundle: Bundle, segmented: Segmentation) -> list[Path]:
    """Files and directories that a reader knows, written by engine processes of the run."""
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
    """Add what the engines of a recorded run declare to its bundle: names, rules and attempts of
    tasks, inputs and outputs. None: no log was found, or something is declared already.
    """
    from tracehint.analyzer.tasks.segmentation import segment_tasks
    from tracehint.schemas.store import read_bundle, segment_files
    from tracehint.schemas.writer import BundleWriter

    run = read_bundle(bundle, without=("extents", "metadata_ops"))  # tasks are cut without them
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
    """What the engines of a run say about it, from their own logs; None: there is nothing."""
    graphs: list[DeclaredGraph] = []
    for path in sorted(find_logs(bundle, segmented), key=_is_spare):
        try:
            graph = relocate_graph(_of_run(read_graph(path), bundle), bundle, segmented)
        except TracehintError:
            continue  # a log of another run, or one that was cut off: the trace stands alone
        if graph.tasks.num_rows and not (_is_spare(path) and _has_all_tasks(graph, graphs)):
            graphs.append(graph)
    return combine(graphs) if graphs else None


def _of_run(graph: DeclaredGraph, bundle: Bundle) -> DeclaredGraph:
    """Without what ended before the run began: engines go on with the logs of their last runs."""
    import pyarrow.compute as pc

    graph = graph.plain()
    tasks = graph.tasks
    began = bundle.manifest.started_ns - _CLOCKS_NS
    now = pc.fill_null(pc.greater_equal(tasks.column("end_ns"), began), True)
    if graph.placed or pc.all(now).as_py() is not False:
        return graph
    tasks = tasks.filter(now)
    kept = pc.is_in(graph.io.column("task"), value_set=tasks.column("task").combine_chunks())
    return replace(graph, tasks=tasks, io=graph.io.filter(kept))


def _is_spare(path: Path) -> bool:
    """A log that tells less than another file of the same run may."""
    return sniff(path) == "nextflow-log"


def _has_all_tasks(graph: DeclaredGraph, graphs: list[DeclaredGraph]) -> bool:
    """Whether all tasks of a graph stand in another one, by their work directories."""
    known = {where for other in graphs for where in other.tasks.column("workdir").to_pylist()}
    return known.issuperset(graph.tasks.column("workdir").to_pylist())


# Declared names where the run had them: a workflow file need not lie where its run took place.
#
# Relative names of a graph were resolved against the directory of its file or log. The run may have
# been somewhere else: started in another directory, recorded elsewhere and copied here, or sent
# down by `make -C`. The directory in which most of the names are files of the run is the right one.


def relocate_graph(
    graph: DeclaredGraph, run: Bundle, segmented: Segmentation | None = None
) -> DeclaredGraph:
    """The graph with its names below the directory where the run has them: that of the run's
    command, one of its data roots, or where they are."""
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.tasks.segmentation import segment_tasks

    here = graph.cwd
    if not here or not graph.io.num_rows or not run.tables["opens"].num_rows:
        return _move_paths(graph, os.fsencode(run.manifest.cwd) or here)
    known = _paths(run)
    roots = data_roots(run, (), segmented or segment_tasks(run))
    places = dict.fromkeys([os.fsencode(run.manifest.cwd) or here, here, *roots])
    moved = {place: _move_paths(graph, place) for place in places}
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


def _move_paths(graph: DeclaredGraph, new: bytes) -> DeclaredGraph:
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
