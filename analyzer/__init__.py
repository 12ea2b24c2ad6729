"""From a trace bundle to tasks, file versions, the graph and its patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.analyzer.execution.model import Execution
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.store import Bundle

__all__ = ["NOT_NEEDED", "analyze"]

# Columns of the bundle that no step looks at, for `read_bundle`: a sixth of its memory.
NOT_NEEDED = {"extents": ("host", "ops", "rank"), "opens": ("host", "fd", "seq_ops", "small_ops")}


def analyze(
    bundle: Bundle,
    options: Options | None = None,
    extents: Execution | None = None,
    resources: Resources | None = None,
) -> Analysis:
    """Cut the tasks, follow the bytes, label the patterns.

    `extents` is who has that table and computes on it (default: it is in the bundle, and this
    process does), `resources` what this process may use.

    Works on damaged and partial bundles: what is missing is stated in
    `run["completeness"]` and lowers the confidence of the labels.
    """
    import dataclasses
    from functools import partial

    from tracehint.analyzer.execution.local import LocalExtents
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.execution.threads import beside
    from tracehint.analyzer.flow import build_flow
    from tracehint.analyzer.flow.identity import find_objects
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.analyzer.patterns import label
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.run import lost_events, run_object
    from tracehint.analyzer.sites import assign, bytes_between
    from tracehint.analyzer.tasks import cut_tasks

    options = options or Options()
    bundle = dataclasses.replace(
        bundle, manifest=assign(bundle.manifest, options.sites), tables=dict(bundle.tables)
    )
    resources = resources or Resources()
    extents = extents or LocalExtents(bundle.tables["extents"], resources)
    bundle.tables.pop("extents", None)  # it is with `extents` now
    resources.tell("finding the tasks", 0, 0, "")
    found = beside(partial(find_objects, bundle), resources)
    cut = cut_tasks(bundle, options)
    roots = data_roots(bundle, options.data_roots, cut)
    resources.tell("finding the files", 0, 0, "")
    lost = lost_events(bundle, cut.proc_task, extents)  # before columns go that it needs
    flow = build_flow(bundle, cut, roots, options, extents, owned=True, found=found)
    run = run_object(bundle, cut.tasks, roots, options, extents, [*flow.notes, *cut.notes])
    tasks = cut.tasks
    resources.tell("labels", 0, 0, "")
    if "hosts_by_site" in run:
        run["between_sites_bytes"] = bytes_between(tasks, flow.edges)
    del bundle, cut, extents, found  # most of the memory, where the caller does not keep it
    tables = {
        "tasks": tasks, "files": flow.files, "producers": flow.producers,
        "consumers": flow.consumers, "edges": flow.edges,
    }  # fmt: skip  # a table
    for name, table in tables.items():
        resources.ready(name, table)
    patterns, groups = label(flow, tasks, options, run, lost, resources)
    return Analysis(run=run, **tables, patterns=patterns, groups=groups, options=options)
