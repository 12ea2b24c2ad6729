"""Share of correct labels by confidence, on runs that lost records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.support.bundles import RunBuilder
from tests.support.losses import LOSSES, labels, lossy, workflows
from tracehint.schemas.store import Bundle

SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5)  # of the records that are lost
BINS = 10


@dataclass(frozen=True)
class Given:
    """A label on a run that lost records; right: the complete run has it too."""

    kind: str
    share: float
    label: str
    confidence: float
    right: bool


@dataclass(frozen=True)
class Bin:
    """Labels of one tenth of the confidence scale."""

    count: int
    confidence: float  # mean
    right: float  # share


def collect(seeds: Iterable[int], units: int, shares: Sequence[float] = SHARES) -> list[Given]:
    """Return all labels of runs of `units` small workflows, per kind and share of losses."""
    found = []
    for seed in seeds:
        run = workflows(seed, units)
        whole = labels(run)
        for kind in LOSSES:
            for share in shares:
                after = labels(lossy(run, kind, share, seed))
                found += [Given(kind, share, k[1], c, k in whole) for k, c in after.items()]
    return found


def of_bundle(bundle: Bundle, shares: Sequence[float], seed: int = 1) -> list[Given]:
    """Return the same for a recorded run."""
    run = RunBuilder()
    run.manifest = bundle.manifest
    run.rows = {name: table.to_pylist() for name, table in bundle.tables.items()}
    whole = labels(run)
    return [
        Given(kind, share, key[1], confidence, key in whole)
        for kind in LOSSES
        for share in shares
        for key, confidence in labels(lossy(run, kind, share, seed)).items()
    ]


def bins(given: Iterable[Given]) -> list[Bin]:
    """Return the tenths of the confidence scale that hold labels, the least confident first."""
    tenths: list[list[Given]] = [[] for _ in range(BINS)]
    for g in given:
        tenths[min(BINS - 1, int(g.confidence * BINS))].append(g)
    return [
        Bin(len(t), sum(g.confidence for g in t) / len(t), sum(g.right for g in t) / len(t))
        for t in tenths
        if t
    ]


def error(given: Sequence[Given]) -> float:
    """Return the expected calibration error: mean distance of confidence and accuracy."""
    return sum(b.count * abs(b.confidence - b.right) for b in bins(given)) / max(1, len(given))
