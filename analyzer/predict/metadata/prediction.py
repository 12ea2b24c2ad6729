"""Predict a run's metadata under each strategy, and say which one to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.metadata.directories import directories
from tracehint.analyzer.predict.metadata.model import (
    STRATEGIES,
    MetaOutcome,
    MetaRun,
    MetaWork,
    Sites,
)
from tracehint.analyzer.predict.metadata.request import pinned, simulate
from tracehint.analyzer.predict.metadata.sites import sites_of
from tracehint.analyzer.predict.sampling import interval

SEEDS = 3
# strategies with one special site: which of them is best is found by trying all
_CENTRED = ("centralised", "replicated")
LEFT_OUT = "the time of data over the network, other users, failures, registries with threads"


@dataclass(frozen=True)
class SiteChoice:
    """A strategy: its runs over the seeds with the best special site (None: it has none)."""

    name: str
    centre: int | None
    outcomes: list[MetaOutcome]

    @property
    def middle(self) -> MetaOutcome:
        """The run with the median time."""
        return sorted(self.outcomes, key=lambda o: o.seconds)[(len(self.outcomes) - 1) // 2]


def predict_metadata(
    work: MetaWork, cluster: Cluster, names: Sequence[str] = STRATEGIES, *, seed: int = 1
) -> dict[str, Any]:
    """The object `metadata` of `predict --format json`: every strategy asked for, the best one."""
    sites = sites_of(cluster)
    near = cluster.scheduler.words["kind"] != "idle-random"
    found = [_strategy(name, work, sites, near, seed) for name in names]
    rows = [_row(f, sites, cluster.model["error"]) for f in found]
    free = replace(sites, round_trip=np.zeros_like(sites.round_trip), lookup=0.0, update=0.0)
    bare = simulate(work, free, [MetaRun(0, 0, near, seed)])[0].seconds
    return {
        "operations": work.operations,
        "seconds_without": bare,
        "strategies": rows,
        **_choice(rows, cluster.model["error"]),
        "directories": directories(work, sites, found[0].centre or 0),
        "assumptions": [*work.notes, _where(work, sites, near)],
        "left_out": LEFT_OUT,
    }


def _strategy(name: str, work: MetaWork, sites: Sites, near: bool, seed: int) -> SiteChoice:
    number = STRATEGIES.index(name)
    centres = [at for at, count in enumerate(sites.nodes) if count] if name in _CENTRED else [0]
    runs = [MetaRun(number, at, near, seed + i) for at in centres for i in range(SEEDS)]
    found = simulate(work, sites, runs)
    groups = [found[i * SEEDS : (i + 1) * SEEDS] for i in range(len(centres))]
    best = min(range(len(centres)), key=lambda i: float(np.median([o.seconds for o in groups[i]])))
    return SiteChoice(name, centres[best] if name in _CENTRED else None, groups[best])


def _row(found: SiteChoice, sites: Sites, error: float) -> dict[str, Any]:
    middle = found.middle
    low, high = interval([o.seconds for o in found.outcomes], error)
    stale = {"mean": middle.stale_mean, "most": middle.stale_most}
    return {
        "name": found.name,
        "seconds": middle.seconds,
        "seconds_low": low,
        "seconds_high": high,
        "centre": None if found.centre is None else sites.names[found.centre],
        "operations": int(middle.sites[:, 0].sum()),
        "wide_area_round_trips": int(middle.sites[:, 2].sum()),
        "staleness_seconds": stale if found.name == "replicated" else None,
        "progress_seconds": [float(value) for value in middle.tenths],
        "sites": [
            {
                "site": name,
                "operations": int(served),
                "busy_seconds": float(busy),
                "wide_area_round_trips": int(abroad),
            }
            for name, (served, busy, abroad) in zip(sites.names, middle.sites, strict=True)
        ],
    }


def _choice(rows: Sequence[dict[str, Any]], error: float) -> dict[str, Any]:
    """The best strategy: the simplest (first) of those that the model's error does not part."""
    least = min(row["seconds"] for row in rows)
    same = [row for row in rows if row["seconds"] <= least * (1 + error)]
    best = same[0]
    others = [row["seconds"] for row in rows if row is not best]
    margin = min(others) / best["seconds"] - 1 if others and best["seconds"] else None
    return {"best": best["name"], "margin": margin, "alike": [row["name"] for row in same[1:]]}


def _where(work: MetaWork, sites: Sites, near: bool) -> str:
    if pinned(work, sites):
        return f"every task runs at {work.where}"
    if near:
        return "tasks start at the site that made what they read last, where a core is free"
    return "tasks start at the site with most free cores"
