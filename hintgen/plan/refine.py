"""Single tasks, and tasks with what hangs on them, go to other parts where the simulation says it
pays: moves by type of task cannot tell one task from the next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from tracehint.hintgen.plan.anchors import MOST_ENTRIES, Ties, settled, shifted, ties_of
from tracehint.hintgen.plan.climb import TRIALS, Climb
from tracehint.hintgen.plan.model import FREE, Draft
from tracehint.hintgen.plan.moves import Move
from tracehint.hintgen.plan.partition import cores_of
from tracehint.hintgen.plan.queues import Ran, of_queues
from tracehint.hintgen.plan.shifts import Shift, distinct, of_bytes, of_path

AT_ONCE = 24  # shifts that are tried, before those that pay are made together
AT_A_KICK, AMONG = 6, 24  # shifts that are made though they do not pay, of so many
LEAST = 0.0003  # of the worth: what a shift must save on average


def refine(climb: Climb, kicks: int = 0) -> None:
    """Shift tasks of a draft as long as it pays and the climb has runs left.

    Where nothing pays, some shifts that cost least are made together, and it goes on from there:
    until that brought nothing better so many times in a row (`kicks`).
    """
    if climb.draft.part is None or len(climb.draft.part) * climb.draft.parts > MOST_ENTRIES:
        return
    random = np.random.default_rng(climb.bench.problem.seed)
    before, here, around = climb.draft, replace(climb), list[Shift]()
    left = kicks
    while True:
        cheap = _descend(here)
        if here.mean < climb.mean or not around:
            climb.draft, climb.value = here.draft, here.value
            around, left = cheap, kicks
        if not left or not around or not climb.room(AT_ONCE):
            break
        left -= 1
        here.draft, here.value = climb.draft, climb.value
        _kick(here, around, random)
    assert before.part is not None and climb.draft.part is not None
    count = int((before.part != climb.draft.part).sum())
    if count:
        climb.done.append(f"{count} task{'s' if count > 1 else ''} in other parts")


def _descend(climb: Climb) -> list[Shift]:
    """Shift tasks until nothing pays; then the shifts that cost least, cheapest first."""
    while climb.room(len(TRIALS) + 1):
        ties = ties_of(climb.bench.problem, climb.draft)
        shifts, lost = iter(_shifts(climb, ties)), list[tuple[float, Shift]]()
        while some := list(islice(shifts, AT_ONCE)):
            moves = [_move(climb.draft, ties, [shift]) for shift in some]
            first = climb.values(moves, TRIALS[:1])
            ranked = sorted(zip((float(v[0]) for v in first), some, strict=False), key=_value)
            lost += ranked
            if _together(climb, ties, [s for v, s in ranked if v < climb.value[0]]):
                break
        else:
            return [shift for _, shift in sorted(lost, key=_value)]
    return []


def _kick(climb: Climb, cheap: list[Shift], random: np.random.Generator) -> None:
    """Make some of the cheapest shifts, whatever they cost."""
    among = cheap[:AMONG]
    order = random.permutation(len(among)).tolist()
    shifts = list(islice(_disjoint([among[i] for i in order]), AT_A_KICK))
    move = _move(climb.draft, ties_of(climb.bench.problem, climb.draft), shifts)
    climb.draft, climb.value = move.draft, climb.values([move], TRIALS)[0]


def _shifts(climb: Climb, ties: Ties) -> list[Shift]:
    """All that may pay, the most promising first."""
    assert climb.draft.part is not None
    problem, part = climb.bench.problem, climb.draft.part.astype(np.int64)
    slots = cores_of(problem.cluster)
    rows = climb.bench.traced(climb.draft, TRIALS[0])
    ran = Ran(rows, np.minimum(problem.work.cores, slots.max()), slots)
    found = [*of_path(rows, part, ties), *of_bytes(climb.draft, ties)]
    return distinct([*found, *of_queues(ran, part, ties)])


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


def _value(row: tuple[float, Shift]) -> float:
    return row[0]


def _together(climb: Climb, ties: Ties, paying: Sequence[Shift]) -> bool:
    """Take as many of the shifts that pay in one trial run, best first, as pay together in all of
    them; False: not even one does."""
    apart = list(_disjoint(paying))
    sizes = [len(apart) >> k for k in range(len(apart).bit_length())]
    moves = [_move(climb.draft, ties, apart[:size]) for size in sizes]
    values = climb.values(moves, TRIALS)
    at = min(range(len(values)), key=lambda k: float(np.mean(values[k])), default=None)
    if at is None or climb.mean - float(np.mean(values[at])) <= LEAST * climb.mean:
        return False
    climb.draft, climb.value = moves[at].draft, values[at]
    return True


def _disjoint(shifts: Sequence[Shift]) -> Iterator[Shift]:
    """Those that have no task in common with one before."""
    taken: set[int] = set()
    for shift in shifts:
        if taken.isdisjoint(shift.tasks):
            taken.update(shift.tasks)
            yield shift


def _move(draft: Draft, ties: Ties, shifts: Sequence[Shift]) -> Move:
    tasks = np.array([task for shift in shifts for task in shift.tasks], np.int64)
    parts = np.array([part for shift in shifts for part in shift.parts], np.int64)
    return Move("", shifted(draft, ties.anchor, tasks, parts))
