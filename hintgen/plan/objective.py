"""The objective of a plan: simulated runs with equal seeds, estimates, and the choice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tracehint.analyzer.predict.model import Floats, SimulatedRun
from tracehint.analyzer.predict.prediction import T95, draw_cluster, interval
from tracehint.analyzer.predict.simulator import Machine, Scenario, build, simulate
from tracehint.hintgen.gain import LEAST_TRAFFIC
from tracehint.hintgen.plan.model import Draft, Estimate, Problem, Strategy

BYTES = 0.1  # power of the bytes beside the time
LEAST = 0.02  # of the default's bytes: fewer are as good as none
NEAR = 0.06  # of the time: within that bytes count
GIVEN = 0.02  # of the time or the bytes of what needs no plan: what a plan may give for the other
BEYOND = 4.0  # power of the time beyond that
ABOVE = 0.5  # power of the bytes beyond that


@dataclass(frozen=True)
class Worth:
    """Weighs runs against the store's default, which moves `bytes`. Seconds beyond `most` weigh far
    more than bytes, and bytes beyond `room` more than others."""

    bytes: float
    most: float = math.inf
    room: float = math.inf

    def of(self, seconds: float, moved: float) -> float:
        """Seconds that a run of so many seconds and bytes is as good as; less is better."""
        if self.bytes <= 0:
            return seconds
        seconds *= max(1.0, seconds / self.most) ** BEYOND
        least = LEAST * self.bytes
        share = (moved + least) / (self.bytes + least)
        above = max(1.0, (moved + least) / (self.room + least))
        return seconds * float(share**BYTES * above**ABOVE)

    def run(self, outcome: SimulatedRun) -> float:
        """The same of a simulated run."""
        return self.of(outcome.seconds, outcome.network_bytes)


@dataclass
class Bench:
    """Simulates the drafts of one problem, and counts the runs."""

    problem: Problem
    spent: int = field(default=0)
    _machines: dict[tuple[int, str | None, str | None, bool, bool], Machine] = field(
        default_factory=dict
    )

    def run(self, drafts: Sequence[Draft], runs: Iterable[int]) -> list[list[SimulatedRun]]:
        """By draft, the outcome of each of the numbered runs; equal numbers, equal chances."""
        numbers = list(runs)
        wanted = [self._scenario(draft, run) for draft in drafts for run in numbers]
        found = simulate(self.problem.work, wanted) if wanted else []
        self.spent += len(wanted)
        step = len(numbers)
        return [found[i * step : (i + 1) * step] for i in range(len(drafts))]

    def trace_tasks(self, draft: Draft, run: int) -> Floats:
        """What each task did in a numbered run: rows as `SimulatedRun.tasks` has them."""
        self.spent += 1
        (outcome,) = simulate(self.problem.work, [self._scenario(draft, run, detail=True)])
        assert outcome.tasks is not None
        return outcome.tasks

    def _scenario(self, draft: Draft, run: int, *, detail: bool = False) -> Scenario:
        asked = draft.placement
        unplaced = draft.part is None and asked.plan is not None
        chance = run, asked.scheduler, asked.steal, unplaced, asked.scratch
        if chance not in self._machines:
            self._machines[chance] = self._machine(*chance)
        return Scenario(self._machines[chance], asked, detail)

    def _machine(
        self, run: int, scheduler: str | None, steal: str | None, unplaced: bool, scratch: bool
    ) -> Machine:
        """What the cluster is in a numbered run."""
        seed = self.problem.seed
        whole = (self.problem.own if unplaced else None) or self.problem.cluster
        started = whole.started_as(self.problem.work.dispatch)
        cluster = draw_cluster(started, run and seed * 100_003 + run)
        return build(cluster, seed * 1009 + run, scheduler, steal, scratch=scratch)


SIMPLE_GAIN = 0.01  # of the time: what a simple strategy must save against the store's default
# Measured (docs/reference/gain.md): for 80 % of the pairs of columns the ratio of their times is
# wrong by at most 10 % (MooseFS) and 16 % (CephFS), about 0.7 of the error of one time, the ratio
# of their bytes by at most 14 %.
ERROR_SHARE = 0.7  # of the model's error: what does not cancel between two strategies
MOST_UNSURE = 0.2  # of the time: enough also on a store that nobody measured
FEWER_BYTES = 0.86  # at equal times, so many of the bytes are worth a hint


def estimate(
    strategy: Strategy, draft: Draft, runs: Sequence[SimulatedRun], error: float
) -> Estimate:
    """What the simulated runs of a draft say."""
    seconds = [run.seconds for run in runs]
    low, high = interval(seconds, error)
    middle = int(np.argsort(seconds, kind="stable")[(len(seconds) - 1) // 2])
    return Estimate(
        name=strategy.name,
        text=strategy.text,
        seconds=seconds[middle],
        low=low,
        high=high,
        network_bytes=float(np.median([run.network_bytes for run in runs])),
        site_bytes=float(np.median([run.site_bytes for run in runs])),
        runs=tuple(seconds),
        draft=draft,
        simple=strategy.simple,
    )


def choose(estimates: Sequence[Estimate], error: float) -> tuple[list[Estimate], str]:
    """The estimates with what is refused and why, and the name of the chosen one.

    The first estimate is the store's default. A simple strategy must beat it; all others must
    beat the best simple one: by more than what is uncertain about the difference, or in no more
    time with clearly fewer bytes, where that cannot be a loss: tasks start by the same rule, or the
    time is less than the default's by more than is uncertain. Over several sites, of those whose
    times nobody can tell apart the one is taken that sends least between them.
    """
    default = estimates[0]
    judged = [default]
    judged += [
        _against(e, default, SIMPLE_GAIN, safe=e.scheduler == default.scheduler)
        for e in estimates[1:]
        if e.simple
    ]
    base = min((e for e in judged if not e.refused), key=_rank)
    least = unsure(error) * default.seconds
    judged += [
        _against(
            e, base, unsure(error),
            safe=e.scheduler == base.scheduler or difference(default, e)[0] > least,
        )
        for e in estimates
        if not e.simple
    ]  # fmt: skip  # a table
    good = [e for e in judged if not e.refused]
    by_name = {e.name: e for e in judged}
    return [by_name[e.name] for e in estimates], _best(good, estimates, error).name


def unsure(error: float) -> float:
    """Of the time, what two strategies must differ by to be told apart."""
    return min(ERROR_SHARE * error, MOST_UNSURE)


def _best(good: Sequence[Estimate], every: Sequence[Estimate], error: float) -> Estimate:
    """Over several sites the one that sends least between them, else the leanest, of those whose
    times nobody can tell apart."""
    if any(e.site_bytes for e in good):
        alike = select_near(good, unsure(error))
        return min(alike, key=lambda e: (e.site_bytes, *_rank(e)))
    return leanest(good, every)


def select_near(estimates: Sequence[Estimate], share: float) -> list[Estimate]:
    """Those within a share of the quickest's time."""
    most = (1 + share) * min(e.sure for e in estimates)
    return [e for e in estimates if e.sure <= most]


def leanest(among: Sequence[Estimate], every: Sequence[Estimate]) -> Estimate:
    """Of those near the quickest the one of most worth; none that gives much of the time of what
    binds no task. `every`: all estimates, the store's default first."""
    alike, worth = select_near(among, NEAR), worth_among(every)
    quick = [e for e in alike if e.sure <= worth.most] or select_near(among, 0.0)
    return min(quick, key=lambda e: worth.of(e.sure, e.network_bytes))


def worth_among(every: Sequence[Estimate]) -> Worth:
    """What runs are worth beside the strategies that bind no task: a plan shall lose neither
    against the quickest of them nor, in bytes, against those that are near it."""
    loose = [e for e in every if e.draft.part is None]
    return Worth(
        every[0].network_bytes,
        most=(1 + GIVEN) * min(e.sure for e in loose),
        room=(1 + GIVEN) * min(e.network_bytes for e in select_near(loose, NEAR)),
    )


def _rank(e: Estimate) -> tuple[float, float]:
    return e.seconds, e.network_bytes


def _against(e: Estimate, base: Estimate, share: float, *, safe: bool) -> Estimate:
    """The estimate, refused where it is not better than `base` by more than the uncertainty; where
    it is `safe`, fewer bytes in no more time are enough."""
    gain, unsure = difference(base, e)
    needed = max(unsure, share * base.seconds)
    if e.seconds < base.seconds and gain > needed:
        return e
    alike = not e.simple and e.scheduler == base.scheduler
    frees = e.network_bytes <= (1 - LEAST_TRAFFIC if alike else FEWER_BYTES) * base.network_bytes
    if (
        (safe and frees)
        and e.seconds <= base.seconds
        and gain >= max(0.0, unsure - SIMPLE_GAIN * base.seconds)
    ):
        return e
    if gain <= 0 or e.seconds >= base.seconds:
        return replace(e, refused=f"not better than {base.name}")
    return replace(
        e,
        refused=f"gain over {base.name} ({gain:.3g} s) is below model uncertainty ({needed:.3g} s)",
    )


def difference(base: Estimate, e: Estimate) -> tuple[float, float]:
    """(seconds that `e` saves on average, half of the 90 % interval of it), run by run."""
    n = min(len(base.runs), len(e.runs))
    saved = np.subtract(base.runs[:n], e.runs[:n])
    if n < 2:
        return float(saved.mean()), 0.1 * base.seconds
    t = T95[n - 2] if n - 2 < len(T95) else 1.645
    return float(saved.mean()), float(t * np.std(saved, ddof=1) / math.sqrt(n))


def without_scheduler(estimates: Sequence[Estimate]) -> Estimate | None:
    """The best of what needs no task to start anywhere; None: nothing beats the default."""
    default = estimates[0]
    own = [e for e in estimates[1:] if e.scheduler is None]
    good = [
        e
        for e in own
        if not _against(replace(e, simple=True), default, SIMPLE_GAIN, safe=True).refused
    ]
    return min(good, key=_rank, default=None)


def bound_ahead(estimates: Sequence[Estimate], error: float) -> Estimate | None:
    """The best of what gives each task its node before the run, for schedulers that let a task wait
    for a full node; None: nothing beats the default by more than is uncertain."""
    default = estimates[0]
    good = [
        e
        for e in estimates[1:]
        if e.scheduler == "plan"
        and not _against(replace(e, refused=None), default, unsure(error), safe=False).refused
    ]
    return min(good, key=_rank, default=None)
