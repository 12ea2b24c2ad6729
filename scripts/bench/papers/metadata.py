"""The published comparison of four strategies, predicted: the table in docs/explanation/sites.md.

    python -m scripts.bench.papers.metadata

Two facts are known of its test bed: the time of 320,000 operations on 32 nodes under the
centralised strategy (twice the 18.5 minutes that were saved: 144 operations per second, 6.9 ms
each), and that eight nodes per site were too few to saturate the registries of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scripts.bench.page import into_page
from scripts.bench.papers.metadata_work import SITES, montage, near_pipeline, synthetic

from tracehint.analyzer.predict.metadata.model import (
    STRATEGIES,
    MetaOutcome,
    MetaRun,
    MetaWork,
    Sites,
)
from tracehint.analyzer.predict.metadata.registries import simulate

# milliseconds of a round trip: two European and two American centres
TRIPS_MS = ((0.2, 25, 90, 110), (25, 0.2, 100, 120), (90, 100, 0.2, 30), (110, 120, 30, 0.2))
SATURATED, FREE = 0.0069, 0.0023  # seconds per operation: as above; as of the measured registries
SYNC = 0.0005  # seconds of one agent, per entry and site
PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "sites.md"


@dataclass(frozen=True)
class Case:
    """A published run and its result (`said`); `service`: seconds of a registry per operation."""

    name: str
    said: str
    work: Callable[[], MetaWork]
    nodes: int = 32
    service: float = SATURATED


CASES = (
    Case("synthetic, 10,000 operations a node", "decentralised up to 50 % faster",
        lambda: synthetic(10_000)),
    Case("synthetic, 5,000, 8 nodes", "decentralised grows with the nodes",
        lambda: synthetic(5_000, 8), 8),
    Case("the same, 32 nodes", "", lambda: synthetic(5_000)),
    Case("the same, 64 nodes", "replicated falls behind above 32 nodes",
        lambda: synthetic(5_000, 64), 64),
    Case("near-pipeline, 1,000 and 1 s", "decentralised 15 % faster", lambda: near_pipeline(1_000)),
    Case("Montage, 1,000 and 1 s", "decentralised 28 % faster", lambda: montage(1_000)),
    Case("Montage, 200 and 5 s", "replicated does well", lambda: montage(200, 5.0)),
    Case("synthetic, 1,000, quick registries", "with and without replica alike at the end",
        lambda: synthetic(1_000), service=FREE),
    Case("near-pipeline, 1,000, quick registries", "the replica is ahead on the way",
        lambda: near_pipeline(1_000), service=FREE),
    Case("synthetic, 100 operations a node", "centralised is good enough", lambda: synthetic(100)),
)  # fmt: skip  # a table


@cache
def outcomes(case: Case) -> dict[str, MetaOutcome]:
    """Simulate the case under each strategy."""
    each = (case.nodes // len(SITES),) * len(SITES)
    trips = np.array(TRIPS_MS) / 1000
    sites = Sites(SITES, each, each, trips, case.service, case.service, SYNC)
    runs = [MetaRun(number) for number in range(len(STRATEGIES))]
    return dict(zip(STRATEGIES, simulate(case.work(), sites, runs), strict=True))


def table() -> str:
    """Return the table as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield f"| run | {' | '.join(STRATEGIES)} | they found |"
    yield "|---" * (len(STRATEGIES) + 2) + "|"
    for case in CASES:
        cells = " | ".join(f"{found.seconds:,.0f} s" for found in outcomes(case).values())
        yield f"| {case.name} | {cells} | {case.said} |"


if __name__ == "__main__":
    into_page(PAGE, "published", table())
