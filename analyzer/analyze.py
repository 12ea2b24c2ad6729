"""The steps of an analysis in order, on one of the backends: this process or Spark."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.dataflow.declarations import Pending
    from tracehint.analyzer.dataflow.model import Flow
    from tracehint.analyzer.dataflow.partitions import Execution
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.model import Analysis, Options, Segmentation
    from tracehint.schemas.store import Bundle

__all__ = ["BACKENDS", "analyze", "analyze_at"]

# backend -> module with `run_at(where, work, master)`
BACKENDS = {
    "local": "tracehint.analyzer.execution.local",
    "spark": "tracehint.analyzer.execution.spark.extents",
}
OLD_NAMES = {"duckdb": "local"}


def analyze_at(
    where: str,
    options: Options,
    backend: str = "local",
    master: str | None = None,
    resources: Resources | None = None,
) -> Analysis:
    """Read the bundle at `where` (a directory or a URL) and analyze it.

    All backends produce the same analysis. `backend` accepts the old name duckdb; `master` is the
    URL of the Spark cluster; `resources` limits this process (backend local only). Raises
    TracehintError: no bundle there, or a backend that is not installed or fails.
    """
    given = {} if resources is None else {"resources": resources}

    def work(bundle: Bundle, extents: Execution | None) -> Analysis:
        return analyze(bundle, options, extents, resources, owned=True)

    found: Analysis = import_module(BACKENDS[OLD_NAMES.get(backend, backend)]).run_at(
        where, work, master, **given
    )
    return found


def analyze(
    bundle: Bundle,
    options: Options | None = None,
    extents: Execution | None = None,
    resources: Resources | None = None,
    *,
    owned: bool = False,
) -> Analysis:
    """Segment the run into tasks, derive the data flow and label its patterns.

    `extents` holds that table and computes on it (default: this process, within `resources`).
    `owned`: the tables are removed from the bundle, so that each is freed after its last use.
    Supports damaged and partial bundles: `run["completeness"]` reports what is missing.
    """
    from tracehint.analyzer import roots
    from tracehint.analyzer.dataflow.build import build_flow
    from tracehint.analyzer.execution.local import LocalExtents
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.model import Options
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.run import find_requests, lost_events, run_object

    options, resources = options or Options(), resources or Resources()
    bundle = _own_bundle(bundle, options, owned=owned)
    extents = extents or LocalExtents(bundle.tables["extents"], resources)
    bundle.tables.pop("extents", None)  # now owned by `extents`
    resources.tell("finding the tasks", 0, 0, "")
    segmented, pending = _segment_run(bundle, options, resources)
    stated = find_requests(bundle, segmented)
    follow = partial(build_flow, owned=True, pending=pending)
    del pending
    resources.tell("finding the files", 0, 0, "")
    data = data_roots(bundle, options.data_roots, segmented)
    lost = lost_events(bundle, segmented.proc_task, extents)  # before its columns are dropped
    flow = follow(bundle, segmented, data, options, roots, extents)
    notes = [*flow.notes, *segmented.notes]
    run = run_object(bundle, segmented.tasks, data, options, extents, notes)
    if stated:
        run["requested"] = stated
    del bundle, extents, follow  # frees most of the memory unless the caller keeps it
    return _label_analysis(run, segmented, flow, lost, options, resources)


def _own_bundle(bundle: Bundle, options: Options, *, owned: bool) -> Bundle:
    """Return a copy with sites, whose tables may be dropped; `owned` empties the original."""
    from tracehint.analyzer.sites import assign

    tables = dict(bundle.tables)
    if owned:
        bundle.tables.clear()
    return replace(bundle, manifest=assign(bundle.manifest, options.sites), tables=tables)


def _segment_run(
    bundle: Bundle, options: Options, resources: Resources
) -> tuple[Segmentation, Pending]:
    """First step: segment the tasks; meanwhile find the files and read the declarations."""
    from tracehint.analyzer.dataflow.declarations import Pending, declared_of
    from tracehint.analyzer.dataflow.identity import find_objects
    from tracehint.analyzer.execution.resources import start_beside
    from tracehint.analyzer.memory import give_back
    from tracehint.analyzer.tasks.activity import with_waiting
    from tracehint.analyzer.tasks.segmentation import segment_tasks
    from tracehint.schemas.compact import in_one

    start = partial(start_beside, resources=resources)
    found = start(partial(find_objects, bundle))
    declared = start(partial(in_one, bundle.tables["declared_io"], ("path", "direction")))
    tasks = with_waiting(bundle, segment_tasks(bundle, options))
    give_back()
    bundle.tables["declared_io"] = declared()
    reading = declared_of(bundle, tasks.declared_task, tasks.tasks, start)
    return tasks, Pending(found, reading, start)


def _label_analysis(
    run: dict[str, Any],
    segmented: Segmentation,
    flow: Flow,
    lost: pa.Table | None,
    options: Options,
    resources: Resources,
) -> Analysis:
    """Last step: label the patterns and assemble the analysis."""
    from tracehint.analyzer.memory import give_back
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.patterns.run_labels import label
    from tracehint.analyzer.sites import bytes_between

    give_back()
    resources.tell("labels", 0, 0, "")
    if segmented.makers:
        run["makers"] = list(segmented.makers)
    if "hosts_by_site" in run:
        run["between_sites_bytes"] = bytes_between(segmented.tasks, flow.edges)
    tables = {
        "tasks": segmented.tasks,
        "files": flow.files,
        "producers": flow.producers,
        "edges": flow.edges,
    }
    for name, table in tables.items():
        resources.ready(name, table)
    labelled = label(flow, segmented.tasks, options, run, lost, resources)
    return Analysis(
        run,
        **tables,
        consumers=labelled.consumers,
        patterns=labelled.patterns,
        groups=labelled.groups,
        options=options,
        proc_task=segmented.proc_task,
        declared_task=segmented.declared_task,
    )
