"""Several runs of one configuration: other seeds, and other numbers within their ranges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tracehint.analyzer.predict.cluster import Cluster, ClusterSection, Range

# Student's t, 95 %, by degrees of freedom; 1.645 beyond
T95 = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
    1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
)  # fmt: skip  # a table


GUESS = 0.4  # error of a time where all is guessed: nobody measured it


def drawn(cluster: Cluster, seed: int) -> Cluster:
    """The cluster with each number drawn evenly from its range; seed 0: the numbers themselves.

    Equal seeds draw the same places, so that configurations differ by what they are alone.
    """
    if seed == 0 or cluster.exact:
        return cluster
    random = np.random.default_rng(seed)

    def draw(part: ClusterSection) -> ClusterSection:
        numbers = {}
        for key, known in part.numbers.items():
            value = known.value if known.exact else known.at(float(random.random()))
            numbers[key] = Range(value, value, value)
        return replace(part, numbers=numbers)

    return replace(
        cluster,
        nodes=tuple(map(draw, cluster.nodes)),
        servers=draw(cluster.servers),
        store=draw(cluster.store),
        scheduler=draw(cluster.scheduler),
        sites=tuple((name, draw(site)) for name, site in cluster.sites),
        hosts=tuple((name, draw(host)) for name, host in cluster.hosts),
    )


def error_of(cluster: Cluster, guessed: float) -> float:
    """The error of the model for a workload of which that share had to be guessed."""
    return math.hypot(cluster.model["error"], GUESS * guessed)


def interval(seconds: list[float], error: float) -> tuple[float, float]:
    """The 90 % interval of one more run: the spread of the simulated ones, and the error of the
    model itself (half of its own interval, as a share of the time)."""
    middle, n = float(np.median(seconds)), len(seconds)
    t = 0.0 if n < 2 else T95[n - 2] if n - 2 < len(T95) else 1.645
    spread = t * float(np.std(seconds, ddof=1)) if n > 1 else 0.0
    half = math.hypot(spread, error * middle)
    return max(0.0, min([middle - half, *seconds])), max([middle + half, *seconds])
