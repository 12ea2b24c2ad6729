"""Moves of the local search: task types, kinds of files, replicas, and single tasks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, Shorts
from tracehint.analyzer.predict.model import (
    END,
    NODE,
    READY,
    SPENT,
    START,
    Floats,
    critical_path,
    law,
)
from tracehint.hintgen.plan.drafts import with_inputs, with_placement
from tracehint.hintgen.plan.graph import Moves
from tracehint.hintgen.plan.model import FREE, Draft, Problem
from tracehint.hintgen.plan.partition import cores_of, costs
from tracehint.schemas.wording import agree

MAX_KINDS = 16  # heaviest task types, and heaviest kinds of files, that are tried
COPIES = (1, 2, 4)


@dataclass(frozen=True)
class Move:
    """A change of a draft, its text, and `subjects`; moves that share one exclude each other.

    `tasks`: indices of the tasks moved to other parts; such a move has no text.
    """

    text: str
    change: Callable[[Draft], Draft]
    subjects: tuple[Hashable, ...]
    tasks: tuple[int, ...] = ()


def moves_of_kinds(problem: Problem, draft: Draft, cut: Ints | Shorts | None) -> Iterator[Move]:
    """Yield moves of task types and kinds of files; `cut`: the part to bind each task to."""
    yield from _moves_of_types(problem, draft, cut)
    yield from _moves_of_files(problem, draft)
    yield from _moves_of_copies(problem, draft)
    if draft.part is not None and (draft.part != FREE).any():
        steal = "any" if draft.placement.steal == "unplanned" else "unplanned"
        words = {"any": "idle nodes take bound tasks", "unplanned": "bound tasks stay"}
        yield Move(words[steal], partial(with_placement, steal=steal), ("steal",))


def _moves_of_types(problem: Problem, draft: Draft, cut: Ints | Shorts | None) -> Iterator[Move]:
    """Yield moves that bind all tasks of one type to their parts or release them."""
    if cut is None:
        return
    work = problem.work
    part = _parts(problem, draft)
    weight = np.bincount(work.type, costs(problem.graph, problem.cluster))
    for kind in np.argsort(-weight, kind="stable")[:MAX_KINDS].tolist():
        tasks = work.type == kind
        for goal, text in ((np.full(work.tasks, FREE), "released"), (cut, "bound")):
            if (part[tasks] != goal[tasks]).any():
                change = partial(_with_parts, problem, tasks, goal)
                yield Move(f"{work.type_names[kind]} {text}", change, (f"type {kind}",))


def _parts(problem: Problem, draft: Draft) -> Shorts:
    return draft.part if draft.part is not None else np.full(problem.work.tasks, FREE, np.int32)


def _with_parts(problem: Problem, tasks: Bools, goal: Ints | Shorts, draft: Draft) -> Draft:
    """Move some tasks to the parts `goal`; the local and node files that they write follow."""
    old, made = draft.placement, problem.graph.writer
    assert old.law is not None
    part = np.where(tasks, goal, _parts(problem, draft)).astype(np.int32)
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


def _moves_of_files(problem: Problem, draft: Draft) -> Iterator[Move]:
    """Yield moves that change the placement of one kind of files."""
    old, graph = draft.placement, problem.graph
    if old.law is None or draft.values is not None:
        return
    for text, files in _kinds(problem):
        now = old.law[files]
        for words, kind in (("on their writer's node", "local"), ("as the store does", None)):
            value = -1 if kind is None else law(kind)
            if (now != value).any():
                change = partial(_with_law, files, value)
                yield Move(f"{text} {words}", change, (f"files {text}",))
        if draft.part is not None:
            home = draft.part[graph.writer[files]]
            if (home != FREE).all() and (now != law("node")).any():
                change = partial(_in_their_part, problem, files)
                yield Move(f"{text} in their part", change, (f"files {text}",))


def _in_their_part(problem: Problem, files: Ints, draft: Draft) -> Draft:
    home = _parts(problem, draft)[problem.graph.writer[files]]
    return _with_law(files[home != FREE], law("node"), draft, home[home != FREE])


def _with_law(files: Ints, kind: int, draft: Draft, target: Shorts | int = -1) -> Draft:
    old = draft.placement
    assert old.law is not None
    kinds = old.law.copy()
    to = np.full(len(kinds), -1, np.int32) if old.target is None else old.target.copy()
    kinds[files], to[files] = kind, target
    return with_placement(draft, law=kinds, target=to)


def _moves_of_copies(problem: Problem, draft: Draft) -> Iterator[Move]:
    """Yield moves that set the number of copies of shared inputs or shared files of one type."""
    if draft.values is not None:
        return
    graph, now = problem.graph, _copies(problem, draft)
    kinds = _kinds(problem)
    if problem.staged:
        kinds.append(("inputs", np.flatnonzero(graph.writer < 0)))
    for text, files in kinds:
        wide = files[graph.readers[files] > 1]
        for count in [n for n in COPIES if n <= problem.cluster.count]:
            if (np.maximum(now[wide], 1) != count).any():
                words = agree(count, f"{text} in {{n}} [copy|copies]")
                yield Move(words, partial(_with_copies, problem, wide, count), (f"copies {text}",))


def _copies(problem: Problem, draft: Draft) -> Shorts:
    found = draft.placement.copies
    return np.zeros(problem.work.files, np.int32) if found is None else found


def _with_copies(problem: Problem, files: Ints, count: int, draft: Draft) -> Draft:
    copies = _copies(problem, draft).copy()
    copies[files] = count
    return with_placement(draft, copies=copies)


def _kinds(problem: Problem) -> list[tuple[str, Ints]]:
    """Return the heaviest kinds of written files: by writer's type, and one reader or several."""
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


def bind_where_run(problem: Problem, draft: Draft, node: Ints, steal: str) -> Draft:
    """Bind each task to the node where it ran, co-located groups to their last reader's node, and
    staged inputs to the node that reads them."""
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


# Moves of single tasks, from their bytes with each part and their waiting times.

MAX_ENTRIES = 20_000_000  # limit of tasks times parts; single tasks of larger problems stay
MAX_TRIED_TASKS = 2_000  # tasks tried, those with most bytes in other parts
MAX_UNIT = 64  # tasks moved together
MIN_TIED_SHARE = 0.5  # minimum share of a task's bytes tied to a unit for the task to join it
MAX_WAITING = 24  # tasks of the critical path tried, those that waited longest
MAX_QUEUED = 6  # tasks of the critical path tried, those that queued longest
MAX_BLOCKING = 6  # tasks of a full node tried for each target node
TARGET_NODES = 2  # target nodes, the least busy in the interval
_WAITED, _QUEUE = 5 + SPENT.index("network"), 5 + SPENT.index("queue")


@dataclass(frozen=True)
class Ties:
    """Bytes that tie tasks to other tasks and to parts.

    `anchor`: by file, the task that it is stored with (its writer or a reader; -1: none). `begin`:
    first row of each task in `other` and `bytes`, which hold each link from both ends. `pull`:
    (tasks, parts), bytes of each task with each part.
    """

    anchor: Ints
    begin: Ints
    other: Ints
    bytes: Floats
    pull: Floats


def ties_of(problem: Problem, draft: Draft) -> Ties:
    """Return the ties of a draft whose tasks are bound."""
    assert draft.part is not None
    part, graph = draft.part.astype(np.int64), problem.graph
    anchor, home = _anchors(problem, draft)
    single = _copies(problem, draft) <= 1
    moves = [graph.reads.take(single[graph.reads.file]), graph.writes]
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


def _anchors(problem: Problem, draft: Draft) -> tuple[Ints, Ints]:
    """Return, by file, the task that it is stored with and the part that stores it; -1: none."""
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


def shift_tasks(anchor: Ints, tasks: Sequence[int], parts: Sequence[int], draft: Draft) -> Draft:
    """Return a copy with `tasks` moved to `parts`, and the files stored with them."""
    old = draft.placement
    assert draft.part is not None and old.law is not None and old.target is not None
    part, target = draft.part.copy(), old.target.copy()
    part[list(tasks)] = parts
    along = np.zeros(len(part) + 1, bool)  # the last one stands for no task
    along[list(tasks)] = True
    files = np.flatnonzero(along[anchor] & (old.law == law("node")))
    target[files] = part[anchor[files]]
    return replace(with_placement(draft, target=target, plan=part), part=part)


Shift = tuple[tuple[int, ...], tuple[int, ...]]  # tasks, and the target part of each


def moves_of_tasks(problem: Problem, draft: Draft, rows: Floats) -> Iterator[Move]:
    """Yield moves of bound tasks: by critical path, bytes, queues; `rows`: simulated tasks."""
    assert draft.part is not None
    part, ties = draft.part.astype(np.int64), ties_of(problem, draft)
    slots = cores_of(problem.cluster)
    shifts = [*_shifts_of_critical_path(rows, part, ties, slots), *_shifts_by_bytes(part, ties)]
    for tasks, parts in dict.fromkeys([*shifts, *_shifts_of_queues(rows, part, ties, slots)]):
        yield Move("", partial(shift_tasks, ties.anchor, tasks, parts), tasks, tasks)


def _shifts_by_bytes(part: Ints, ties: Ties) -> list[Shift]:
    """Return shifts of tasks to the part with most of their bytes, largest saving first."""
    bound = np.flatnonzero(part != FREE)
    away = ties.pull[bound].sum(axis=1) - ties.pull[bound, part[bound]]
    order = bound[np.argsort(-away, kind="stable")][:MAX_TRIED_TASKS]
    found: dict[Shift, float] = {}
    for task in order[np.sort(-away, kind="stable")[:MAX_TRIED_TASKS] < 0].tolist():
        found.update(_shifts_to_bytes(task, part, ties, least=0.0))
    return sorted(found, key=lambda shift: -found[shift])


def _shifts_of_critical_path(rows: Floats, part: Ints, ties: Ties, slots: Ints) -> Iterator[Shift]:
    """Yield shifts of critical-path tasks that waited for their node or data: to the part with most
    of their bytes, and to the least busy node."""
    path = critical_path(rows)
    waited = rows[path, _WAITED:].sum(axis=1)
    busy = np.bincount(rows[:, NODE].astype(np.int64), rows[:, END] - rows[:, START], len(slots))
    idlest = int(np.argmin(busy / slots))
    for at in np.argsort(-waited, kind="stable")[:MAX_WAITING].tolist():
        task = path[at]
        if waited[at] > 0 and part[task] != FREE:
            yield from _shifts_to_bytes(task, part, ties, least=-np.inf)
            if idlest != part[task]:
                yield (task,), (idlest,)


def _shifts_of_queues(rows: Floats, part: Ints, ties: Ties, slots: Ints) -> Iterator[Shift]:
    """Yield shifts of the tasks that blocked a queued critical-path task, fewest lost bytes first:
    to the least busy nodes, alone, one per slot together, or in exchange for another task."""
    path = np.array(critical_path(rows))
    length = rows[:, END] - rows[:, START]
    for task in path[np.argsort(-rows[path, _QUEUE], kind="stable")[:MAX_QUEUED]].tolist():
        node, (begin, end) = int(rows[task, NODE]), rows[task, [READY, START]]
        blocking = (rows[:, NODE] == node) & (rows[:, END] > begin) & (rows[:, START] <= end)
        before = np.flatnonzero(blocking & (part != FREE))
        if rows[task, _QUEUE] <= 0 or not len(before):
            continue
        busy = np.clip(np.minimum(rows[:, END], end) - np.maximum(rows[:, START], begin), 0, None)
        load = np.bincount(rows[:, NODE].astype(np.int64), busy, len(slots)) / slots
        load[node] = np.inf
        for goal in np.argsort(load, kind="stable")[: min(TARGET_NODES, len(slots) - 1)].tolist():
            lost = ties.pull[before, node] - ties.pull[before, goal]
            order = before[np.lexsort((-before, -length[before], lost))]
            for one in order[:MAX_BLOCKING].tolist():
                yield (one,), (goal,)
            together = tuple(order[: int(slots[node])].tolist())
            yield together, (goal,) * len(together)
            yield from _exchanges(order[:MAX_BLOCKING], goal, node, rows, part)


def _exchanges(tasks: Ints, goal: int, node: int, rows: Floats, part: Ints) -> Iterator[Shift]:
    """Yield swaps with the longest shorter task of `goal` that became ready at a similar time."""
    others = np.flatnonzero(part == goal)
    for task in tasks.tolist():
        near = others[
            np.abs(rows[others, READY] - rows[task, READY]) < rows[task, END] - rows[task, READY]
        ]
        shorter = near[rows[near, END] - rows[near, START] < rows[task, END] - rows[task, START]]
        if len(shorter):
            best = int(shorter[np.argmax(rows[shorter, END] - rows[shorter, START])])
            yield (task, best), (goal, node)


def _shifts_to_bytes(task: int, part: Ints, ties: Ties, least: float) -> dict[Shift, float]:
    """Return shifts of a task, alone and with the tasks tied to it, to the part with most of its
    bytes, and the bytes that each saves."""
    found = {}
    unit = _tied_tasks(task, part, ties)
    for tasks in dict.fromkeys([(task,), unit]):
        pull = ties.pull[list(tasks)].sum(axis=0)
        own = pull[part[task]] - (_bytes_between(tasks, ties) if len(tasks) > 1 else 0.0)
        pull[part[task]] = -1.0
        best = int(np.argmax(pull))
        if pull[best] - own > least and best != part[task]:
            found[tasks, (best,) * len(tasks)] = float(pull[best] - own)
    return found


def _bytes_between(tasks: tuple[int, ...], ties: Ties) -> float:
    """Return the bytes between these tasks, each link counted from both ends."""
    inside = np.zeros(len(ties.pull), bool)
    inside[list(tasks)] = True
    return float(
        sum(
            ties.bytes[rows][inside[ties.other[rows]]].sum()
            for rows in (slice(ties.begin[t], ties.begin[t + 1]) for t in tasks)
        )
    )


def _tied_tasks(task: int, part: Ints, ties: Ties) -> tuple[int, ...]:
    """Return a task and the tasks of its part with MIN_TIED_SHARE of their bytes in the unit."""
    members, fresh = {task}, [task]
    tied: dict[int, float] = {}
    while fresh and len(members) < MAX_UNIT:
        near: list[int] = []
        for member in fresh:
            rows = slice(ties.begin[member], ties.begin[member + 1])
            for other, moved in zip(
                ties.other[rows].tolist(), ties.bytes[rows].tolist(), strict=True
            ):
                if other not in members and part[other] == part[task]:
                    tied[other] = tied.get(other, 0.0) + moved
                    near.append(other)
        fresh = [
            other
            for other in dict.fromkeys(near)
            if tied[other] >= MIN_TIED_SHARE * float(ties.pull[other].sum())
        ][: MAX_UNIT - len(members)]
        members.update(fresh)
    return tuple(sorted(members))
