"""From simulated runs to estimates, and from estimates to a choice that does not lose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tracehint.analyzer.predict.model import SimulatedRun
from tracehint.analyzer.predict.sampling import T95, interval
from tracehint.hintgen.plan.model import Draft, Estimate, Strategy
from tracehint.hintgen.plan.worth import GIVEN, NEAR, Worth

SIMPLE_GAIN = 0.01  # of the time: what a simple strategy must save against the store's default
# Measured (docs/reference/gain.md): for 80 % of the pairs of columns the ratio of their times is
# wrong by at most 10 % (MooseFS) and 16 % (CephFS), about 0.7 of the error of one time, the ratio
# of their bytes by at most 14 %.
ERROR_SHARE = 0.7  # of the model's error: what does not cancel between two strategies
MOST_UNSURE = 0.2  # of the time: enough also on a store that nobody measured
FEWER_BYTES = 0.86  # at equal times, so many of the bytes are worth a hint
# Of two columns that start tasks by the same rule and differ in the hints alone, it was always told
# right which moves less, where more than this was predicted.
ALIKE_BYTES = 0.95


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
    time with clearly fewer bytes. Over several sites, of those whose times nobody can tell apart
    the one is taken that sends least between them.
    """
    default = estimates[0]
    judged = [default]
    judged += [_against(e, default, SIMPLE_GAIN) for e in estimates[1:] if e.simple]
    base = min((e for e in judged if not e.refused), key=_rank)
    others = [e for e in estimates if not e.simple]
    judged += [_against(e, base, _unsure(error)) for e in others]
    good = [e for e in judged if not e.refused]
    by_name = {e.name: e for e in judged}
    return [by_name[e.name] for e in estimates], _best(good, estimates, error).name


def _unsure(error: float) -> float:
    """Of the time, what two strategies must differ by to be told apart."""
    return min(ERROR_SHARE * error, MOST_UNSURE)


def _best(good: Sequence[Estimate], every: Sequence[Estimate], error: float) -> Estimate:
    """Over several sites the one that sends least between them, else the leanest, of those whose
    times nobody can tell apart."""
    if any(e.site_bytes for e in good):
        alike = near(good, _unsure(error))
        return min(alike, key=lambda e: (e.site_bytes, *_rank(e)))
    return leanest(good, every)


def near(estimates: Sequence[Estimate], share: float) -> list[Estimate]:
    """Those within a share of the quickest's time."""
    most = (1 + share) * min(e.sure for e in estimates)
    return [e for e in estimates if e.sure <= most]


def leanest(among: Sequence[Estimate], every: Sequence[Estimate]) -> Estimate:
    """Of those near the quickest the one of most worth; none that gives much of the time of what
    binds no task. `every`: all estimates, the store's default first."""
    alike, worth = near(among, NEAR), worth_among(every)
    quick = [e for e in alike if e.sure <= worth.most] or near(among, 0.0)
    return min(quick, key=lambda e: worth.of(e.sure, e.network_bytes))


def worth_among(every: Sequence[Estimate]) -> Worth:
    """What runs are worth beside the strategies that bind no task: a plan shall lose neither
    against the quickest of them nor, in bytes, against those that are near it."""
    loose = [e for e in every if e.draft.part is None]
    return Worth(
        every[0].network_bytes,
        most=(1 + GIVEN) * min(e.sure for e in loose),
        room=(1 + GIVEN) * min(e.network_bytes for e in near(loose, NEAR)),
    )


def _rank(e: Estimate) -> tuple[float, float]:
    return e.seconds, e.network_bytes


def _against(e: Estimate, base: Estimate, share: float) -> Estimate:
    """The estimate, refused where it is not better than `base` by more than the uncertainty."""
    gain, unsure = difference(base, e)
    needed = max(unsure, share * base.seconds)
    if e.seconds < base.seconds and gain > needed:
        return e
    alike = not e.simple and e.scheduler == base.scheduler
    frees = e.network_bytes <= (ALIKE_BYTES if alike else FEWER_BYTES) * base.network_bytes
    if (
        frees
        and e.seconds <= base.seconds
        and gain >= max(0.0, unsure - SIMPLE_GAIN * base.seconds)
    ):
        return e
    if gain <= 0 or e.seconds >= base.seconds:
        return replace(e, refused=f"not better than {base.name}")
    return replace(
        e, refused=f"saves {gain:.3g} s against {base.name}, less than is certain ({needed:.3g} s)"
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
    good = [e for e in own if not _against(replace(e, simple=True), default, SIMPLE_GAIN).refused]
    return min(good, key=_rank, default=None)
