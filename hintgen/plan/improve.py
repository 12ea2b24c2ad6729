"""Make the best draft better by moves that the simulation says pay, within a budget of runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.hintgen.plan.climb import TRIALS, Climb
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.model import Draft
from tracehint.hintgen.plan.moves import Move
from tracehint.hintgen.plan.refine import refine, settle
from tracehint.hintgen.plan.worth import Worth

NAME = "improved"
ROUNDS = 8
KICKS = 12  # without anything better, after which another draft has its turn
TOGETHER = 4  # moves of a round that are tried one on top of the other


def improve(
    bench: Bench, draft: Draft, cut: Ints | Shorts | None, budget: int, worth: Worth
) -> Climb:
    """The draft with the moves that pay, and their texts; at most `budget` runs are spent.

    First types of tasks and kinds of files are changed, then single tasks.
    """
    climb = Climb(bench, draft, cut, bench.spent + budget, worth)
    climb.value = np.full(len(TRIALS), np.inf)
    if climb.room(2 * len(TRIALS)):
        climb.value = climb.values([Move("", draft)], TRIALS)[0]
        _climb(climb)
        refine(climb)
    return climb


def deepen(climb: Climb, budget: int) -> Climb:
    """Go on with so many runs; where tasks are free, also with each of them bound to where it ran,
    and with the best of these all of it once more."""
    climb.until = climb.bench.spent + budget
    refine(climb)
    found = [climb]
    for steal in ("unplanned", "any"):
        bound = settle(climb, steal)
        if bound is not None:
            refine(bound)
            found.append(bound)
    climb = min(found, key=lambda one: one.mean)
    if climb.done:
        _climb(climb)
        refine(climb)
    return climb


def polish(climbs: Sequence[Climb], until: int) -> None:
    """Spend what is left until then on the best of them, and on the next where that ends early."""
    for climb in sorted(climbs, key=lambda one: one.mean):
        climb.until = until
        refine(climb, KICKS)


def _climb(climb: Climb) -> None:
    """Change types of tasks and kinds of files until nothing pays or no runs are left."""
    for _ in range(ROUNDS):
        paying = climb.tried(climb.moves())
        if not paying:
            break
        climb.take(*paying[0][1:])
        for _, _, move in paying[1:TOGETHER]:
            again = climb.tried([m for m in climb.moves() if m.text == move.text])
            if again:
                climb.take(*again[0][1:])
