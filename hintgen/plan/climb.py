"""A draft on its way to a better one: its worth in trial runs, and the moves that pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.analyzer.predict.model import Floats
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.model import Draft
from tracehint.hintgen.plan.moves import Move, moves
from tracehint.hintgen.plan.worth import Worth

TRIALS = range(101, 104)  # runs that moves are tried with; the estimates have others
LEAST = 0.003  # of the worth: what a move must save on average


@dataclass
class Climb:
    """A draft on its way: its worth in the trial runs, and what was changed so far.

    `cut`: the part that a task would be bound to; `until`: runs that the bench may have spent.
    """

    bench: Bench
    draft: Draft
    cut: Ints | Shorts | None
    until: int
    worth: Worth
    value: Floats = field(default_factory=lambda: np.zeros(0))
    done: list[str] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """The worth that counts: the mean of the trial runs."""
        return float(np.mean(self.value))

    def moves(self) -> list[Move]:
        """What can be changed now."""
        return list(moves(self.bench.problem, self.draft, self.cut))

    def room(self, runs: int) -> bool:
        """Whether so many more runs may be spent."""
        return self.until - self.bench.spent >= runs

    def tried(
        self, found: Sequence[Move], least: float = LEAST
    ) -> list[tuple[float, Floats, Move]]:
        """The moves that save at least that share, best first, as far as runs are left. Those that
        already lose in the first of the trial runs get no other."""
        first = self.values(found, TRIALS[:1])
        kept = [n for n, value in enumerate(first) if value[0] < self.value[0]]
        more = self.values([found[n] for n in kept], TRIALS[1:])
        rows = []
        for n, rest in zip(kept, more, strict=False):
            value = np.concatenate([first[n], rest])
            gain = float(np.mean(self.value - value))
            if gain > least * self.mean:
                rows.append((gain, value, found[n]))
        return sorted(rows, key=lambda row: -row[0])

    def values(self, found: Sequence[Move], runs: range) -> list[Floats]:
        """The worth of each move in these runs, of as many moves as runs are left for."""
        room = max(0, self.until - self.bench.spent) // len(runs)
        outcomes = self.bench.run([move.draft for move in found[:room]], runs)
        return [np.array([self.worth.run(run) for run in part]) for part in outcomes]

    def take(self, value: Floats, move: Move) -> None:
        """Go on from the changed draft."""
        self.draft, self.value = move.draft, value
        self.done.append(move.text)
