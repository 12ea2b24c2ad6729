"""Tasks in parts that hand each other few bytes; with what is made of them further on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import MAX_COPIES, moved, pinned, with_inputs, with_placement
from tracehint.hintgen.plan.reduces import gathered


def cuts(problem: Problem) -> list[Draft]:
    """Drafts of several cuts; each file where its writer's part is."""
    return [
        bound(problem, "partition", cut, steal)
        for cut in problem.cuts
        for steal in ("any", "unplanned")
    ]


def bound(problem: Problem, name: str, cut: Ints, steal: str) -> Draft:
    """Each task in its part, each file where its writer's part is, inputs where they are read."""
    return with_inputs(problem, pinned(problem, name, cut, problem.cluster.count, steal))


def early(problem: Problem) -> list[Draft]:
    """Files that only one gathering task reads are written to its part at once."""
    found = []
    reader = gathered(problem.graph)
    if not (reader >= 0).any():
        return []
    for draft in cuts(problem):
        assert draft.part is not None
        files = np.flatnonzero(reader >= 0)
        found.append(
            replace(moved(draft, files, draft.part[reader[files]]), name="partition-early")
        )
    return found


def copied(problem: Problem) -> list[Draft]:
    """Files that most parts read get copies: two, and one per part."""
    found = []
    for draft in cuts(problem)[:4]:
        assert draft.part is not None and draft.placement.copies is not None
        wide = _wide(problem, draft)
        if not wide.any():
            continue
        for count in sorted({2, min(draft.parts, MAX_COPIES)}):
            copies = np.where(wide, count, draft.placement.copies).astype(np.int32)
            found.append(replace(with_placement(draft, copies=copies), name="partition-copies"))
    return found


def _wide(problem: Problem, draft: Draft) -> np.ndarray:
    """Files that more than half of the parts read, of those that can be told anything."""
    assert draft.part is not None
    reads = problem.graph.reads
    pairs = np.unique(np.stack([reads.file, draft.part[reads.task].astype(np.int64)]), axis=1)
    readers = np.bincount(pairs[0], minlength=problem.work.files)
    told = (problem.graph.writer >= 0) | problem.staged
    return np.asarray(told & (readers > max(1, draft.parts // 2)))
