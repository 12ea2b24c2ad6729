"""A draft as hints: what each file is told, in the neutral vocabulary, and each task's part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.predict.model import law
from tracehint.hintgen.hints.folders import sayable
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.plan import FilePart, TaskPart, group
from tracehint.hintgen.plan.model import Draft, Problem

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


def tasks_of(draft: Draft, problem: Problem) -> list[TaskPart]:
    """The tasks that are bound to a part, in the order of the workload."""
    if draft.part is None:
        return []
    names = problem.work.names
    return [TaskPart(names[i], int(draft.part[i])) for i in np.flatnonzero(draft.part >= 0)]


def files_of(draft: Draft, problem: Problem) -> tuple[list[FilePart], list[str]]:
    """The files that need something, each path once, and notes on what could not be said."""
    paths = _paths(problem.analysis, problem.work.file_id.tolist())
    values = draft.values if draft.values is not None else _values(draft, problem)
    target, kinds = draft.placement.target, draft.placement.law
    found: dict[bytes, FilePart] = {}
    outside = 0
    for at, hints in enumerate(values):
        if not hints:
            continue
        path = paths[at]
        if not sayable(path):
            outside += 1
            continue
        pinned = draft.part is not None and kinds is not None and kinds[at] == law("node")
        part = int(target[at]) if pinned and target is not None else None
        found.setdefault(path, FilePart(to_text(path), part, hints))
    notes = [f"{outside} files outside the data root get no hint"] if outside else []
    return list(found.values()), notes


def _paths(analysis: Analysis, files: list[int]) -> list[bytes]:
    known = dict(
        zip(
            analysis.files.column("file").to_pylist(),
            analysis.files.column("path").to_pylist(),
            strict=True,
        )
    )
    return [known.get(file) or b"" for file in files]


def _values(draft: Draft, problem: Problem) -> list[dict[str, str]]:
    """Hints by file from the arrays of the placement; of inputs only what can be asked of them."""
    placement, count = draft.placement, problem.work.files
    found: list[dict[str, str]] = [{} for _ in range(count)]
    told = np.ones(count, bool) if problem.staged else problem.work.produced > 0
    if placement.law is not None and placement.target is not None:
        for at in np.flatnonzero(told & (placement.law == law("local"))):
            found[at]["DP"] = "local"
        nodes = problem.cluster.count
        for at in np.flatnonzero(told & (placement.law == law("node"))):
            if placement.target[at] < nodes:  # beyond it is the machine of the inputs
                found[at]["DP"] = f"collocation|{group(int(placement.target[at]))}"
        for at in np.flatnonzero(told & (placement.law == law("group"))):
            found[at]["DP"] = f"collocation|gather-{int(placement.target[at])}"
    elif placement.law is not None:
        for at in np.flatnonzero(told & (placement.law == law("local"))):
            found[at]["DP"] = "local"
    if placement.copies is not None:
        for at in np.flatnonzero(told & (placement.copies > 1)):
            found[at]["Replication"] = str(int(placement.copies[at]))
    return found
