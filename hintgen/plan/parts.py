"""Drafts out of parts: tasks run in their part, files lie where their part is."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.analyzer.predict.model import Placement, law
from tracehint.analyzer.predict.placement import staged
from tracehint.hintgen.plan.model import FREE, Draft, Problem

MAX_COPIES = 64


def blank(problem: Problem, name: str, scheduler: str | None = None) -> Placement:
    """A placement that tells no file anything."""
    count = problem.work.files
    return Placement(
        name,
        law=np.full(count, -1, np.int32),
        copies=np.zeros(count, np.int32),
        target=np.full(count, -1, np.int32),
        scheduler=scheduler,
    )


def finished(problem: Problem, placement: Placement) -> Placement:
    """What the cluster adds: with node-local disks the inputs come from the machine apart."""
    return staged(placement, problem.work, problem.cluster)


def pinned(problem: Problem, name: str, part: Ints, parts: int, steal: str) -> Draft:
    """Each task in its part, each file that is no input where its writer's part is.

    A FREE task starts where most of its input lies, its files stay where it writes them.
    `steal`: what an idle node takes of other parts' tasks (analyzer/predict/model.py).
    """
    found = blank(problem, name, "plan")
    assert found.law is not None and found.target is not None
    made = problem.graph.writer >= 0
    home = np.where(made, part[problem.graph.writer], FREE)
    found.law[made] = law("local")
    found.law[home >= 0] = law("node")
    found.target[home >= 0] = home[home >= 0]
    found.plan = part.astype(np.int32)
    found.steal = steal
    return Draft(name, finished(problem, found), parts, part.astype(np.int32))


def moved(draft: Draft, files: Ints, target: Ints | Shorts) -> Draft:
    """The same with some files in other parts."""
    old = draft.placement
    assert old.law is not None and old.target is not None
    kinds, to = old.law.copy(), old.target.copy()
    kinds[files], to[files] = law("node"), target
    return with_placement(draft, law=kinds, target=to)


def with_placement(draft: Draft, **arrays: object) -> Draft:
    """The same with other arrays of the placement."""
    from dataclasses import replace

    return replace(draft, placement=replace(draft.placement, **arrays))  # type: ignore[arg-type]


def with_inputs(problem: Problem, draft: Draft) -> Draft:
    """Inputs that are brought for this run lie in the part that reads most of them."""
    if not problem.staged or draft.part is None:
        return draft
    reads = problem.graph.reads.take(problem.graph.writer[problem.graph.reads.file] < 0)
    reads = reads.take(draft.part[reads.task] != FREE)
    key = reads.file * draft.parts + draft.part[reads.task]
    keys, at = np.unique(key, return_inverse=True)
    weight = np.bincount(at, reads.bytes, len(keys))
    order = np.lexsort((weight, keys // draft.parts))
    home = np.full(problem.work.files, -1, np.int64)
    home[keys[order] // draft.parts] = keys[order] % draft.parts
    files = np.flatnonzero(home >= 0)
    return moved(draft, files, home[files])
