"""From a trace bundle to tasks, file versions, the graph and its patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.store import Bundle

__all__ = ["analyze"]


def analyze(bundle: Bundle, options: Options | None = None) -> Analysis:
    """Cut the tasks, follow the bytes, label the patterns.

    Works on damaged and partial bundles: what is missing is stated in
    `run["completeness"]` and lowers the confidence of the labels.
    """
    from tracehint.analyzer.flow import build_flow
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.analyzer.patterns import label
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.run import lost_events, run_object
    from tracehint.analyzer.tasks import cut_tasks

    options = options or Options()
    cut = cut_tasks(bundle)
    roots = data_roots(bundle, options.data_roots, cut)
    flow = build_flow(bundle, cut, roots, options)
    run = run_object(bundle, cut.tasks, roots, options, flow.notes)
    patterns, groups = label(flow, cut.tasks, options, run, lost_events(bundle, cut.proc_task))
    return Analysis(
        run=run, tasks=cut.tasks, files=flow.files, producers=flow.producers,
        consumers=flow.consumers, edges=flow.edges, patterns=patterns, groups=groups,
        options=options,
    )  # fmt: skip
