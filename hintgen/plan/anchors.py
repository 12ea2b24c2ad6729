"""Which task a file lies with, and how many bytes tie each task to each part."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.predict.model import Floats, law
from tracehint.hintgen.plan.graph import Moves
from tracehint.hintgen.plan.model import FREE, Draft, Problem
from tracehint.hintgen.plan.parts import with_inputs, with_placement

MOST_ENTRIES = 20_000_000  # tasks times parts: beyond it nothing is weighed


@dataclass(frozen=True)
class Ties:
    """What holds the tasks of a draft where they are.

    `anchor`: by file the task that it lies with (its writer, or a reader; -1: none). `links`: rows
    of two tasks and the bytes between them, each from both ends, sorted by the first one;
    `begin`: where a task's rows begin. `pull`: (tasks, parts), bytes of each task with each part.
    """

    anchor: Ints
    begin: Ints
    other: Ints
    bytes: Floats
    pull: Floats


def ties_of(problem: Problem, draft: Draft) -> Ties:
    """The ties of a draft whose tasks are bound."""
    assert draft.part is not None
    part, graph = draft.part.astype(np.int64), problem.graph
    anchor, home = _anchors(problem, draft)
    moves = [graph.reads.take(_single(problem, draft)[graph.reads.file]), graph.writes]
    task, file, moved = (
        np.concatenate([getattr(m, name) for m in moves]) for name in ("task", "file", "bytes")
    )
    apart = task != anchor[file]
    task, file, moved = task[apart], file[apart], moved[apart].astype(float)
    held = anchor[file] >= 0
    own = np.concatenate([anchor[file][held], task[held]])
    other = np.concatenate([task[held], anchor[file][held]])
    both = np.concatenate([moved[held], moved[held]])
    order = np.argsort(own, kind="stable")
    own, other, both = own[order], other[order], both[order]
    loose = ~held & (home[file] >= 0)
    to = np.concatenate([part[other], home[file][loose]])
    who, weight = np.concatenate([own, task[loose]]), np.concatenate([both, moved[loose]])
    known = to != FREE
    key = who[known] * draft.parts + to[known]
    pull = np.bincount(key, weight[known], graph.tasks * draft.parts).astype(float)
    begin = np.searchsorted(own, np.arange(graph.tasks + 1))
    return Ties(anchor, begin, other, both, np.reshape(pull, (graph.tasks, draft.parts)))


def _single(problem: Problem, draft: Draft) -> np.ndarray:
    """Which files have one copy alone."""
    copies = draft.placement.copies
    return np.ones(problem.work.files, bool) if copies is None else copies <= 1


def _anchors(problem: Problem, draft: Draft) -> tuple[Ints, Ints]:
    """By file the task that it lies with, and the part where it lies; -1: none."""
    graph, placement = problem.graph, draft.placement
    assert draft.part is not None and placement.law is not None and placement.target is not None
    part, target = draft.part.astype(np.int64), placement.target.astype(np.int64)
    fixed = (placement.law == law("node")) & (target < draft.parts)
    at_writer = (graph.writer >= 0) & (
        (placement.law == law("local")) | (fixed & (target == part[graph.writer]))
    )
    reads: Moves = graph.reads
    near = reads.take(fixed[reads.file] & (part[reads.task] == target[reads.file]))
    order = np.lexsort((-near.task, near.bytes, near.file))
    anchor = np.full(graph.files, -1, np.int64)
    anchor[near.file[order]] = near.task[order]
    anchor[at_writer] = graph.writer[at_writer]
    return anchor, np.where(at_writer, part[graph.writer], np.where(fixed, target, -1))


def shifted(draft: Draft, anchor: Ints, tasks: Ints, parts: Ints) -> Draft:
    """Some tasks in other parts; files that lie with them go along."""
    old = draft.placement
    assert draft.part is not None and old.law is not None and old.target is not None
    part, target = draft.part.copy(), old.target.copy()
    part[tasks] = parts
    along = np.zeros(len(part) + 1, bool)  # the last one stands for no task
    along[tasks] = True
    files = np.flatnonzero(along[anchor] & (old.law == law("node")))
    target[files] = part[anchor[files]]
    return replace(with_placement(draft, target=target, plan=part), part=part)


def settled(problem: Problem, draft: Draft, node: Ints, steal: str) -> Draft:
    """Each task bound to the node where it ran; what lay together lies with its last reader,
    and inputs that are brought for the run where they are read."""
    graph, old, nodes = problem.graph, draft.placement, problem.cluster.count
    assert old.law is not None
    kinds = old.law.copy()
    target = np.full(graph.files, -1, np.int32) if old.target is None else old.target.copy()
    reader = np.full(graph.files, -1, np.int64)
    np.maximum.at(reader, graph.reads.file, graph.reads.task)
    grouped = (kinds == law("group")) & (reader >= 0)
    kinds[grouped], target[grouped] = law("node"), node[reader[grouped]]
    part = node.astype(np.int32)
    bound = with_placement(
        draft, law=kinds, target=target, plan=part, scheduler="plan", steal=steal
    )
    return with_inputs(problem, replace(bound, part=part, parts=nodes, values=None))
