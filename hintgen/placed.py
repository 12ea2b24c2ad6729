"""Placement for the predictor from a hint file, as applied by a store that honours the hints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.predict.model import Placement, Workload, law, place_inputs_apart
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.vocabulary import group
from tracehint.hintgen.match.match import Matcher

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.analyzer.predict.model import Strategy
    from tracehint.hintgen.hints.model import HintFile, Plan

_COUNT = re.compile(r"[0-9]{1,18}")
MAX_COPIES = 64


def hinted_strategy(hints: HintFile, analysis: Analysis, name: str) -> Strategy:
    """Return the strategy that sets these hints on the files of a run and starts each task in its
    part of the hint file's plan, otherwise where most of its input is; `name`: name in the output.
    """

    def strategy(work: Workload, cluster: Cluster) -> Placement:
        values = hints_by_file(hints, analysis, work, cluster.count)
        plan = hints.plan if hints.plan and _matches_graph(hints.plan, analysis, work) else None
        if plan is not None:
            values = _hints_of_plan(plan, analysis, work)
        found = placement_of(values, work, name)
        if plan is not None:
            _bind(found, plan, values, work, cluster.count)
        hit = sum(1 for value in values if value)
        found.notes.append(f"{hit} of {work.files} files get a hint")
        if (found.copies is not None) and (found.copies[work.produced == 0] > 1).any():
            found.notes.append("copies of inputs are made before the run: not in its time")
        return place_inputs_apart(found, work, cluster)

    return strategy


def _matches_graph(plan: Plan, analysis: Analysis, work: Workload) -> bool:
    """Whether the plan is not empty and the graph has all of its tasks and files."""
    paths = {to_bytes(file.path) for file in plan.files}
    names = {task.name for task in plan.tasks}
    return (
        bool(paths or names) and names <= set(work.names) and paths <= {*_paths(analysis).values()}
    )


def _hints_of_plan(plan: Plan, analysis: Analysis, work: Workload) -> list[dict[str, str]]:
    """Return the hints of the plan by file; files without an entry have none."""
    hints_of = {to_bytes(file.path): file.hints for file in plan.files}
    path_of = _paths(analysis)
    return [hints_of.get(path_of.get(file) or b"", {}) for file in work.file_id.tolist()]


def _bind(
    found: Placement, plan: Plan, values: Sequence[dict[str, str]], work: Workload, nodes: int
) -> None:
    """Convert parts to nodes, of files placed in a part and of tasks; modifies `found`."""
    assert found.law is not None and found.target is not None
    part_of = {group(part): part for part in range(plan.parts)}
    for at, hints in enumerate(values):
        part = part_of.get(hints.get("DP", "").partition("|")[2])
        if part is not None:
            found.law[at], found.target[at] = law("node"), part % nodes
    if plan.tasks:
        number = {task.name: task.part % nodes for task in plan.tasks}
        found.plan = np.array([number.get(name, -1) for name in work.names], np.int32)
        found.scheduler, found.steal = "plan", plan.steal
        bound = int((found.plan >= 0).sum())
        found.notes.append(f"{bound} of {work.tasks} tasks start in their part of the plan")


def hints_by_file(
    hints: HintFile,
    analysis: Analysis,
    work: Workload,
    nodes: int,
    *,
    graph: bool = True,
    facts: pa.Table | None = None,
    matcher: Matcher | None = None,
) -> list[dict[str, str]]:
    """Return the hints (name -> value) of each file of the workload; a path has one set of hints.

    `graph`: match with the declared graph, if there is one; otherwise by names alone.
    `facts`, `matcher`: the result of `facts_of` and the matcher of these hints, if available.
    """
    from tracehint.hintgen.declared import declared_of
    from tracehint.hintgen.hint_columns import has_declared_graph
    from tracehint.hintgen.learn.facts import facts_of

    facts = facts_of(analysis) if facts is None else facts
    paths = facts["path"].to_pylist()
    known = declared_of(facts) if graph and has_declared_graph(analysis) else None
    codes, found = (matcher or Matcher(hints)).outcomes(paths, known, nodes, frozenset(paths))
    values = [{hint.name: hint.value for hint in outcome.hints} for outcome in found]
    by_path = {path: values[code] for path, code in zip(paths, codes.tolist(), strict=True)}
    path_of = _paths(analysis)
    return [by_path.get(path_of.get(file), {}) for file in work.file_id.tolist()]


def _paths(analysis: Analysis) -> dict[int, bytes]:
    files = analysis.files
    columns = (files.column("file").to_pylist(), files.column("path").to_pylist())
    return dict(zip(*columns, strict=True))


def placement_of(values: Sequence[dict[str, str]], work: Workload, name: str) -> Placement:
    """Return the placement of a store that honours the hints; tasks start at their input."""
    count = len(values)
    kinds, target = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    copies, chunk = np.zeros(count, np.int32), np.zeros(count, np.int64)
    groups: dict[str, int] = {}
    for at, hints in enumerate(values):
        word, _, rest = hints.get("DP", "").partition("|")
        copies[at] = min(MAX_COPIES, _count(hints.get("Replication", "")))
        chunk[at] = _count(hints.get("BlockSize", ""))
        if word == "local" and work.produced[at]:
            kinds[at] = law("local")
        elif word == "collocation":
            kinds[at], target[at] = law("group"), groups.setdefault(rest, len(groups))
        elif word in ("scatter", "distribute"):
            kinds[at] = law("rotate")
            chunk[at] *= _count(rest) if word == "scatter" else 1
    return Placement(
        name, kinds, copies, target, chunk, groups=len(groups), scheduler="most-input-bytes"
    )


def _count(text: str) -> int:
    return int(text) if _COUNT.fullmatch(text) else 0
