"""The logs and records that the engines of a run left behind, found by what the run wrote.

Only regular files that an engine process of this very run wrote and that are still there are
looked into, so nothing that a stranger's bundle names is opened unless the user asks for it by
calling this right after recording, on the recording host.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.engines.graph_base import DeclaredGraph
from tracehint.adapters.engines.graphs import combine, read_graph, sniff
from tracehint.adapters.engines.relocate import relocated
from tracehint.errors import TracehintError

if TYPE_CHECKING:
    from tracehint.analyzer.tasks.model import Segmentation
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
            graph = relocated(_of_run(read_graph(path), bundle), bundle, segmented)
        except TracehintError:
            continue  # a log of another run, or one that was cut off: the trace stands alone
        if graph.tasks.num_rows and not (_is_spare(path) and _told(graph, graphs)):
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


def _told(graph: DeclaredGraph, graphs: list[DeclaredGraph]) -> bool:
    """Whether all tasks of a graph stand in another one, by their work directories."""
    known = {where for other in graphs for where in other.tasks.column("workdir").to_pylist()}
    return known.issuperset(graph.tasks.column("workdir").to_pylist())
