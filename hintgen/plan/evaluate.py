"""Simulate drafts, all with the same seeds, so that they differ by what they are alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tracehint.analyzer.predict.engine import Scenario, simulate
from tracehint.analyzer.predict.machine import Machine, build
from tracehint.analyzer.predict.model import Floats, SimulatedRun
from tracehint.analyzer.predict.sampling import drawn
from tracehint.hintgen.plan.model import Draft, Problem


@dataclass
class Bench:
    """Simulates the drafts of one problem, and counts the runs."""

    problem: Problem
    spent: int = field(default=0)
    _machines: dict[tuple[int, str | None, str | None], Machine] = field(default_factory=dict)

    def run(self, drafts: Sequence[Draft], runs: Iterable[int]) -> list[list[SimulatedRun]]:
        """By draft, the outcome of each of the numbered runs; equal numbers, equal chances."""
        numbers = list(runs)
        wanted = [self._scenario(draft, run) for draft in drafts for run in numbers]
        found = simulate(self.problem.work, wanted) if wanted else []
        self.spent += len(wanted)
        step = len(numbers)
        return [found[i * step : (i + 1) * step] for i in range(len(drafts))]

    def traced(self, draft: Draft, run: int) -> Floats:
        """What each task did in a numbered run: rows as `SimulatedRun.tasks` has them."""
        self.spent += 1
        (outcome,) = simulate(self.problem.work, [self._scenario(draft, run, detail=True)])
        assert outcome.tasks is not None
        return outcome.tasks

    def _scenario(self, draft: Draft, run: int, *, detail: bool = False) -> Scenario:
        asked = draft.placement
        chance = run, asked.scheduler, asked.steal
        if chance not in self._machines:
            self._machines[chance] = self._machine(*chance)
        return Scenario(self._machines[chance], asked, detail)

    def _machine(self, run: int, scheduler: str | None, steal: str | None) -> Machine:
        """What the cluster is in a numbered run."""
        seed = self.problem.seed
        cluster = drawn(self.problem.cluster, run and seed * 100_003 + run)
        return build(cluster, seed * 1009 + run, scheduler, steal)
