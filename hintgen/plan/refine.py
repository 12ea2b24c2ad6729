"""Single tasks, and tasks with what hangs on them, go to other parts where the simulation says it
pays: moves by type of task cannot tell one task from the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.predict.model import SPENT, Floats
from tracehint.hintgen.plan.anchors import MOST_ENTRIES, Ties, settled, shifted, ties_of
from tracehint.hintgen.plan.climb import TRIALS, Climb
from tracehint.hintgen.plan.model import FREE, Draft
from tracehint.hintgen.plan.moves import Move

AT_ONCE = 48  # shifts that are tried, before those that pay are made together
LEAST = 0.0003  # of the worth: what a shift must save on average
MOST = 2_000  # tasks with most bytes elsewhere that are looked at
MAX_UNIT = 64  # tasks that go together
HANGS = 0.5  # of a task's bytes: tied to others by so many, it goes with them
ON_PATH = 24  # tasks of the critical path that waited most


@dataclass(frozen=True)
class Shift:
    """Tasks that go to a part together, and the bytes that this saves."""

    tasks: tuple[int, ...]
    part: int
    bytes: float


def refine(climb: Climb) -> None:
    """Shift tasks of a draft until nothing pays or the climb has no runs left."""
    if climb.draft.part is None or len(climb.draft.part) * climb.draft.parts > MOST_ENTRIES:
        return
    count = 0
    while climb.room(len(TRIALS)):
        ties = ties_of(climb.bench.problem, climb.draft)
        shifts = iter([*_of_path(climb, ties), *_of_bytes(climb.draft, ties)])
        while some := list(islice(shifts, AT_ONCE)):
            moves = [_move(climb.draft, ties, [shift]) for shift in some]
            paying = climb.tried(moves, LEAST)
            if paying:
                by_move = dict(zip(map(id, moves), some, strict=True))
                chosen = [by_move[id(move)] for _, _, move in paying]
                count += _together(climb, ties, chosen, paying[0][1:])
                break
        else:
            break
    if count:
        climb.done.append(f"{count} task{'s' if count > 1 else ''} in other parts")


def settle(climb: Climb, steal: str) -> Climb | None:
    """The same climb from a draft whose tasks are bound where they ran; None: it is bound already.

    `steal`: what an idle node takes of other parts' tasks then.
    """
    draft, problem = climb.draft, climb.bench.problem
    loose = draft.part is None or bool((draft.part == FREE).any()) or draft.placement.steal == "any"
    told = draft.placement.law is not None and draft.values is None
    if not (loose and told and climb.room(len(TRIALS) + 1)):
        return None
    ran = climb.bench.traced(draft, TRIALS[0])
    bound = settled(problem, draft, ran[:, 0].astype(np.int64), steal)
    value = climb.values([Move("", bound)], TRIALS)[0]
    return replace(climb, draft=bound, value=value, done=[*climb.done, "tasks bound"])


def _together(climb: Climb, ties: Ties, paying: Sequence[Shift], best: tuple[Floats, Move]) -> int:
    """Take as many of the shifts that pay as pay together; how many tasks that are."""
    apart = list(_disjoint(paying))
    sizes = [len(apart) >> k for k in range(len(apart).bit_length()) if len(apart) >> k > 1]
    moves = [_move(climb.draft, ties, apart[:size]) for size in sizes]
    found = list(zip(climb.values(moves, TRIALS), moves, sizes, strict=False))
    value, move, size = min([*found, (*best, 1)], key=lambda row: float(np.mean(row[0])))
    climb.draft, climb.value = move.draft, value
    return len({task for shift in apart[:size] for task in shift.tasks})


def _disjoint(shifts: Sequence[Shift]) -> Iterator[Shift]:
    """Those that have no task in common with one before."""
    taken: set[int] = set()
    for shift in shifts:
        if taken.isdisjoint(shift.tasks):
            taken.update(shift.tasks)
            yield shift


def _move(draft: Draft, ties: Ties, shifts: Sequence[Shift]) -> Move:
    tasks = np.array([task for shift in shifts for task in shift.tasks], np.int64)
    parts = np.repeat([shift.part for shift in shifts], [len(shift.tasks) for shift in shifts])
    return Move("", shifted(draft, ties.anchor, tasks, parts.astype(np.int64)))


def _of_bytes(draft: Draft, ties: Ties) -> list[Shift]:
    """Tasks with most of their bytes in another part, alone and with what hangs on them."""
    assert draft.part is not None
    part = draft.part.astype(np.int64)
    bound = np.flatnonzero(part != FREE)
    away = ties.pull[bound].sum(axis=1) - ties.pull[bound, part[bound]]
    order = bound[np.argsort(-away, kind="stable")][:MOST]
    found = []
    for task in order[np.sort(-away, kind="stable")[:MOST] < 0].tolist():
        found += _shifts(task, part, ties, least=0.0)
    return sorted(_distinct(found), key=lambda shift: -shift.bytes)


def _of_path(climb: Climb, ties: Ties) -> list[Shift]:
    """Tasks of the critical path that waited for their node or their data, to the parts that they
    have most bytes with, and to the one that is busy least."""
    rows = climb.bench.traced(climb.draft, TRIALS[0])
    assert climb.draft.part is not None
    part = climb.draft.part.astype(np.int64)
    path = [int(np.argmax(rows[:, 4]))]
    while (cause := int(rows[path[-1], 1])) >= 0:
        path.append(cause)
    first = 5 + SPENT.index("network")
    waited = rows[path, first:].sum(axis=1)
    nodes = np.bincount(rows[:, 0].astype(np.int64), rows[:, 4] - rows[:, 3], climb.draft.parts)
    idlest = int(np.argmin(nodes[: climb.draft.parts]))
    found = []
    for at in np.argsort(-waited, kind="stable")[:ON_PATH].tolist():
        task = path[at]
        if waited[at] > 0 and part[task] != FREE:
            found += _shifts(task, part, ties, least=-np.inf)
            if idlest != part[task]:
                found.append(Shift((task,), idlest, 0.0))
    return list(_distinct(found))


def _distinct(shifts: Sequence[Shift]) -> list[Shift]:
    return list({(shift.tasks, shift.part): shift for shift in shifts}.values())


def _shifts(task: int, part: Ints, ties: Ties, least: float) -> list[Shift]:
    """A task alone, and with what hangs on it, to the part that it has most bytes with."""
    found = []
    unit = _unit(task, part, ties)
    for tasks in dict.fromkeys([(task,), unit]):
        pull = ties.pull[list(tasks)].sum(axis=0)
        own = pull[part[task]] - (_inside(tasks, ties) if len(tasks) > 1 else 0.0)
        pull[part[task]] = -1.0
        best = int(np.argmax(pull))
        if pull[best] - own > least and best != part[task]:
            found.append(Shift(tasks, best, float(pull[best] - own)))
    return found


def _inside(tasks: Sequence[int], ties: Ties) -> float:
    """Bytes between these tasks, counted from both ends."""
    members = np.array(tasks)
    return float(
        sum(
            ties.bytes[rows][np.isin(ties.other[rows], members)].sum()
            for rows in (slice(ties.begin[t], ties.begin[t + 1]) for t in tasks)
        )
    )


def _unit(task: int, part: Ints, ties: Ties) -> tuple[int, ...]:
    """A task and those of its part that are tied to it, or to others of them, by most bytes."""
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
            if tied[other] >= HANGS * float(ties.pull[other].sum())
        ][: MAX_UNIT - len(members)]
        members.update(fresh)
    return tuple(sorted(members))
