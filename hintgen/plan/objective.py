"""Objective of a plan: simulated runs with common seeds, estimates, choice of a strategy."""

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

BYTES_EXPONENT = 0.1  # exponent of the byte ratio in the objective
BYTE_FLOOR = 0.02  # share of the default's bytes added to both sides; few bytes count as none
NEAR_BEST = 0.06  # share of the best time within which estimates are compared by bytes
MAX_LOSS = 0.02  # share of the best time or bytes without task binding that a plan may lose
TIME_PENALTY = 4.0  # exponent of the time above `max_time`
BYTES_PENALTY = 0.5  # exponent of the bytes above `max_bytes`


@dataclass(frozen=True)
class Objective:
    """Objective function, relative to the `bytes` moved by the store's default, with a strong
    penalty for seconds above `max_time` and a weak one for bytes above `max_bytes`."""

    bytes: float
    max_time: float = math.inf
    max_bytes: float = math.inf

    def value(self, seconds: float, moved: float) -> float:
        """Return the objective value of a run in equivalent seconds; lower is better."""
        if self.bytes <= 0:
            return seconds
        seconds *= max(1.0, seconds / self.max_time) ** TIME_PENALTY
        least = BYTE_FLOOR * self.bytes
        share = (moved + least) / (self.bytes + least)
        above = max(1.0, (moved + least) / (self.max_bytes + least))
        return seconds * float(share**BYTES_EXPONENT * above**BYTES_PENALTY)

    def value_of_run(self, outcome: SimulatedRun) -> float:
        """Return the objective value of a simulated run."""
        return self.value(outcome.seconds, outcome.network_bytes)


@dataclass
class Bench:
    """Simulates drafts of one problem and counts the runs in `spent`."""

    problem: Problem
    spent: int = field(default=0)
    _machines: dict[tuple[int, str | None, str | None, bool, bool], Machine] = field(
        default_factory=dict
    )

    def run(self, drafts: Sequence[Draft], runs: Iterable[int]) -> list[list[SimulatedRun]]:
        """Return, by draft, the outcome of each numbered run; equal numbers have equal seeds."""
        numbers = list(runs)
        wanted = [self._scenario(draft, run) for draft in drafts for run in numbers]
        found = simulate(self.problem.work, wanted) if wanted else []
        self.spent += len(wanted)
        step = len(numbers)
        return [found[i * step : (i + 1) * step] for i in range(len(drafts))]

    def trace_tasks(self, draft: Draft, run: int) -> Floats:
        """Return a row per task for one numbered run, in the format of `SimulatedRun.tasks`."""
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
        """Return the cluster as drawn at random for one numbered run."""
        seed = self.problem.seed
        whole = (self.problem.own if unplaced else None) or self.problem.cluster
        started = whole.started_as(self.problem.work.dispatch)
        cluster = draw_cluster(started, run and seed * 100_003 + run)
        return build(cluster, seed * 1009 + run, scheduler, steal, scratch=scratch)


SIMPLE_GAIN = 0.01  # minimum share of the default's time that a simple strategy must save
# Measured (docs/reference/gain.md): for 80 % of the pairs of columns, the predicted ratio of times
# is wrong by at most 10 % (MooseFS) and 16 % (CephFS), about 0.7 of the error of a single time;
# the ratio of bytes is wrong by at most 14 %.
ERROR_SHARE = 0.7  # share of the model's error that does not cancel between two strategies
MAX_UNCERTAINTY = 0.2  # limit of the uncertainty, as a share of the time, for unmeasured stores
FEWER_BYTES = 0.86  # at equal times, hints pay if they reduce the bytes to this share


def estimate(
    strategy: Strategy, draft: Draft, runs: Sequence[SimulatedRun], error: float
) -> Estimate:
    """Summarise the simulated runs of a draft; `seconds` is their (lower) median."""
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
    """Return the estimates, with reasons for the refused ones, and the name of the chosen one.

    The first estimate is the store's default. A simple strategy must beat it; all others must beat
    the best simple one: by more than the uncertainty of the difference, or with clearly fewer bytes
    in no more time if that is safe: the scheduler is the same, or the time is below the default's
    by more than the uncertainty. Over several sites, the chosen one sends the fewest bytes between
    sites among those with indistinguishable times.
    """
    default = estimates[0]
    judged = [default]
    judged += [
        _judge(e, default, SIMPLE_GAIN, safe=e.scheduler == default.scheduler)
        for e in estimates[1:]
        if e.simple
    ]
    base = min((e for e in judged if not e.refused), key=_rank)
    least = min_difference(error) * default.seconds
    judged += [
        _judge(
            e,
            base,
            min_difference(error),
            safe=e.scheduler == base.scheduler or difference(default, e)[0] > least,
        )
        for e in estimates
        if not e.simple
    ]
    good = [e for e in judged if not e.refused]
    by_name = {e.name: e for e in judged}
    return [by_name[e.name] for e in estimates], _best(good, estimates, error).name


def min_difference(error: float) -> float:
    """Return the share of the time by which two strategies must differ to be distinguishable."""
    return min(ERROR_SHARE * error, MAX_UNCERTAINTY)


def _best(good: Sequence[Estimate], every: Sequence[Estimate], error: float) -> Estimate:
    """Return, over several sites, the estimate with the fewest bytes between sites among those with
    indistinguishable times; otherwise the leanest."""
    if any(e.site_bytes for e in good):
        alike = select_near(good, min_difference(error))
        return min(alike, key=lambda e: (e.site_bytes, *_rank(e)))
    return leanest(good, every)


def select_near(estimates: Sequence[Estimate], share: float) -> list[Estimate]:
    """Select the estimates whose `mean_plus_std` time is within a share of the smallest one."""
    most = (1 + share) * min(e.mean_plus_std for e in estimates)
    return [e for e in estimates if e.mean_plus_std <= most]


def leanest(among: Sequence[Estimate], every: Sequence[Estimate]) -> Estimate:
    """Return the estimate of lowest objective value near the quickest, preferring those within the
    time limit of `make_objective`. `every`: all estimates, the store's default first."""
    alike, objective = select_near(among, NEAR_BEST), make_objective(every)
    quick = [e for e in alike if e.mean_plus_std <= objective.max_time] or select_near(among, 0.0)
    return min(quick, key=lambda e: objective.value(e.mean_plus_std, e.network_bytes))


def make_objective(every: Sequence[Estimate]) -> Objective:
    """Return the objective with limits from the strategies that bind no task: a plan must not lose
    time against the quickest of them nor bytes against those near it."""
    loose = [e for e in every if e.draft.part is None]
    return Objective(
        every[0].network_bytes,
        max_time=(1 + MAX_LOSS) * min(e.mean_plus_std for e in loose),
        max_bytes=(1 + MAX_LOSS) * min(e.network_bytes for e in select_near(loose, NEAR_BEST)),
    )


def _rank(e: Estimate) -> tuple[float, float]:
    return e.seconds, e.network_bytes


def _judge(e: Estimate, base: Estimate, share: float, *, safe: bool) -> Estimate:
    """Return the estimate, refused unless it beats `base` by more than the uncertainty; if `safe`,
    fewer bytes in no more time suffice."""
    gain, half_width = difference(base, e)
    needed = max(half_width, share * base.seconds)
    if e.seconds < base.seconds and gain > needed:
        return e
    alike = not e.simple and e.scheduler == base.scheduler
    leaner = e.network_bytes <= (1 - LEAST_TRAFFIC if alike else FEWER_BYTES) * base.network_bytes
    if (
        (safe and leaner)
        and e.seconds <= base.seconds
        and gain >= max(0.0, half_width - SIMPLE_GAIN * base.seconds)
    ):
        return e
    if gain <= 0 or e.seconds >= base.seconds:
        return replace(e, refused=f"not better than {base.name}")
    return replace(
        e,
        refused=f"gain over {base.name} ({gain:.3g} s) is below model uncertainty ({needed:.3g} s)",
    )


def difference(base: Estimate, e: Estimate) -> tuple[float, float]:
    """Return the mean seconds that `e` saves, paired by run, and half of its 90 % interval."""
    n = min(len(base.runs), len(e.runs))
    saved = np.subtract(base.runs[:n], e.runs[:n])
    if n < 2:
        return float(saved.mean()), 0.1 * base.seconds
    t = T95[n - 2] if n - 2 < len(T95) else 1.645
    return float(saved.mean()), float(t * np.std(saved, ddof=1) / math.sqrt(n))


def without_scheduler(estimates: Sequence[Estimate]) -> Estimate | None:
    """Return the best estimate without task placement; None: none beats the default."""
    default = estimates[0]
    own = [e for e in estimates[1:] if e.scheduler is None]
    good = [
        e
        for e in own
        if not _judge(replace(e, simple=True), default, SIMPLE_GAIN, safe=True).refused
    ]
    return min(good, key=_rank, default=None)


def bound_ahead(estimates: Sequence[Estimate], error: float) -> Estimate | None:
    """Return the best estimate that assigns tasks to nodes before the run, for schedulers that let
    a task wait for a full node; None: none beats the default by more than the uncertainty."""
    default = estimates[0]
    good = [
        e
        for e in estimates[1:]
        if e.scheduler == "plan"
        and not _judge(replace(e, refused=None), default, min_difference(error), safe=False).refused
    ]
    return min(good, key=_rank, default=None)
