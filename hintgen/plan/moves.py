"""Small changes of a draft that may pay: by type of task, and by kind of file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, Shorts
from tracehint.analyzer.predict.model import law
from tracehint.hintgen.plan.model import FREE, Draft, Problem
from tracehint.hintgen.plan.partition import costs
from tracehint.hintgen.plan.parts import with_placement

MAX_KINDS = 16  # types of tasks, and kinds of files, that are tried: the heaviest
COPIES = (1, 2, 4)


@dataclass(frozen=True)
class Move:
    """A change: what it does in words, and the changed draft."""

    text: str
    draft: Draft


def moves(problem: Problem, draft: Draft, cut: Ints | Shorts | None) -> Iterator[Move]:
    """All changes of a draft; `cut`: the part that a task would be bound to."""
    yield from _of_tasks(problem, draft, cut)
    yield from _of_files(problem, draft)
    yield from _of_copies(problem, draft)
    if draft.part is not None and (draft.part != FREE).any():
        steal = "any" if draft.placement.steal == "unplanned" else "unplanned"
        words = {"any": "idle nodes take bound tasks", "unplanned": "bound tasks stay"}
        yield Move(words[steal], with_placement(draft, steal=steal))


def _of_tasks(problem: Problem, draft: Draft, cut: Ints | Shorts | None) -> Iterator[Move]:
    """A type of tasks is bound to its parts, or released from them."""
    if cut is None:
        return
    work = problem.work
    part = draft.part if draft.part is not None else np.full(work.tasks, FREE, np.int32)
    weight = np.bincount(work.type, costs(problem.graph, problem.cluster))
    for kind in np.argsort(-weight, kind="stable")[:MAX_KINDS].tolist():
        tasks = work.type == kind
        for goal, text in ((np.full(work.tasks, FREE), "released"), (cut, "bound")):
            if (part[tasks] != goal[tasks]).any():
                changed = np.where(tasks, goal, part).astype(np.int32)
                found = _with_parts(problem, draft, changed, tasks)
                yield Move(f"{work.type_names[kind]} {text}", found)


def _with_parts(problem: Problem, draft: Draft, part: Shorts, tasks: Bools) -> Draft:
    """Other parts of some tasks; what they write lies with them."""
    old, made = draft.placement, problem.graph.writer
    assert old.law is not None
    target = np.full(problem.work.files, -1, np.int32) if old.target is None else old.target.copy()
    kinds = old.law.copy()
    own = np.flatnonzero((made >= 0) & tasks[made])
    own = own[(kinds[own] == law("node")) | (kinds[own] == law("local"))]
    home = part[made[own]]
    kinds[own] = np.where(home == FREE, law("local"), law("node"))
    target[own] = home
    changed = with_placement(
        draft, law=kinds, target=target, plan=part, scheduler="plan", steal=old.steal or "any"
    )
    return replace(changed, part=part, parts=problem.cluster.count)


def _of_files(problem: Problem, draft: Draft) -> Iterator[Move]:
    """The files of one type of task, with one reader or several, are told something else."""
    old, graph = draft.placement, problem.graph
    if old.law is None or draft.values is not None:
        return
    for text, files in _kinds(problem):
        now = old.law[files]
        for words, kind in (("on their writer's node", "local"), ("as the store does", None)):
            value = -1 if kind is None else law(kind)
            if (now != value).any():
                yield Move(f"{text} {words}", _told(draft, files, value, -1))
        if draft.part is not None:
            home = draft.part[graph.writer[files]]
            if (home != FREE).all() and (now != law("node")).any():
                yield Move(f"{text} in their part", _told(draft, files, law("node"), home))


def _of_copies(problem: Problem, draft: Draft) -> Iterator[Move]:
    """Files that several tasks read, of one type or inputs, get copies, or none."""
    graph, old = problem.graph, draft.placement
    if draft.values is not None:
        return
    now = np.zeros(problem.work.files, np.int32) if old.copies is None else old.copies
    kinds = _kinds(problem)
    if problem.staged:
        kinds.append(("inputs", np.flatnonzero(graph.writer < 0)))
    for text, files in kinds:
        wide = files[graph.readers[files] > 1]
        for count in [n for n in COPIES if n <= problem.cluster.count]:
            if (np.maximum(now[wide], 1) != count).any():
                copies = now.copy()
                copies[wide] = count
                words = f"{text} in {count} cop{'y' if count == 1 else 'ies'}"
                yield Move(words, with_placement(draft, copies=copies))


def _told(draft: Draft, files: Ints, kind: int, target: Shorts | int) -> Draft:
    old = draft.placement
    assert old.law is not None
    kinds = old.law.copy()
    to = np.full(len(kinds), -1, np.int32) if old.target is None else old.target.copy()
    kinds[files], to[files] = kind, target
    return with_placement(draft, law=kinds, target=to)


def _kinds(problem: Problem) -> list[tuple[str, Ints]]:
    """The heaviest kinds of files that a task writes: its type, one reader or several."""
    graph, work = problem.graph, problem.work
    made = np.flatnonzero(graph.writer >= 0)
    key = work.type[graph.writer[made]].astype(np.int64) * 2 + (graph.readers[made] > 1)
    weight = np.bincount(key, work.size[made])
    found = []
    for kind in np.argsort(-weight, kind="stable")[:MAX_KINDS].tolist():
        files = made[key == kind]
        if len(files):
            shared = "shared files" if kind % 2 else "files"
            found.append((f"{shared} of {work.type_names[kind // 2]}", files))
    return found
