"""Prediction of a run's metadata operations under each strategy, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict

import numpy as np
from msgspec import Meta

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.metadata.model import (
    COMPUTING,
    STRATEGIES,
    MetaOutcome,
    MetaRun,
    MetaWork,
    Sites,
    sites_of,
)
from tracehint.analyzer.predict.metadata.registries import pins_of, simulate
from tracehint.analyzer.predict.prediction import interval
from tracehint.schemas.fields import Amount, Count

MAX_DIRECTORIES = 100  # maximum number of reported directories, largest saving first
StrategyName = Annotated[str, Meta(extra_json_schema={"enum": [*STRATEGIES]})]


class Resettled(TypedDict):
    """A directory that had better live at this site."""

    path: str
    site: str
    operations: Count
    from_site: Count
    saved_seconds: Amount


class SiteLoad(TypedDict):
    """What the registry of a site does."""

    site: str
    operations: Count
    busy_seconds: Amount
    wide_area_round_trips: Count


class Staleness(TypedDict):
    """Seconds until an entry is known at another site."""

    mean: Amount
    most: Amount


class RegistryStrategy(TypedDict):
    """A strategy, simulated. `centre`: best site of the central registry, or of the agent that
    copies between registries; `progress_seconds`: when each tenth of the operations was done."""

    name: StrategyName
    seconds: Amount
    seconds_low: Amount
    seconds_high: Amount
    centre: str | None
    operations: Count
    wide_area_round_trips: Count
    staleness_seconds: Annotated[Staleness | None, Meta(description="null: at once.")]
    progress_seconds: list[Amount]
    sites: list[SiteLoad]


class RegistryChoice(TypedDict):
    """The best strategy. `margin`: how much longer the next one takes, as a share; null: only one
    was asked for. `alike`: others that the error of the model does not part from the best."""

    best: StrategyName
    margin: float | None
    alike: list[StrategyName]


class MetadataPrediction(RegistryChoice):
    """`seconds_without`: the same with a metadata service that takes no time."""

    operations: Count
    seconds_without: Amount
    strategies: list[RegistryStrategy]
    directories: list[Resettled]
    assumptions: list[str]
    left_out: str


def directories(work: MetaWork, sites: Sites, centre: int) -> list[Resettled]:
    """Return directories whose operations would spend less time between sites if they were located
    at another site than `centre`; empty if the sites of tasks are unknown.

    `saved_seconds`: saved round-trip time, summed over the operations; not a makespan.
    """
    number = {name: at for at, name in enumerate(sites.names)}
    site = np.array([number.get(name, -1) for name in work.site], np.int64)
    task = np.repeat(np.arange(work.tasks), np.diff(work.op_begin))
    keep = (work.op_kind != COMPUTING) & (site[task] >= 0)
    if not keep.any():
        return []
    folders, folder_of = np.unique(
        np.array([path.rpartition(b"/")[0] for path in work.paths], object), return_inverse=True
    )
    count = np.zeros((len(folders), len(sites.names)), np.int64)
    np.add.at(count, (folder_of[work.op_entry[keep]], site[task[keep]]), 1)
    cost = count @ sites.round_trip  # seconds, by directory and its possible location
    best = cost.argmin(axis=1)
    saved = cost[:, centre] - cost[np.arange(len(folders)), best]
    order = np.argsort(-saved, kind="stable")[:MAX_DIRECTORIES]
    return [
        {
            "path": folders[i].decode("utf-8", "surrogateescape"),
            "site": sites.names[best[i]],
            "operations": int(count[i].sum()),
            "from_site": int(count[i, best[i]]),
            "saved_seconds": float(saved[i]),
        }
        for i in order
        if saved[i] > 0
    ]


SEEDS = 3
# Strategies with a central site; all sites are simulated to find the best one.
_CENTRED = ("centralised", "replicated")
LEFT_OUT = "the time of data over the network, other users, failures, registries with threads"


@dataclass(frozen=True)
class SiteChoice:
    """A strategy with its best central site (None: it has none) and the runs over all seeds."""

    name: str
    centre: int | None
    outcomes: list[MetaOutcome]

    @property
    def middle(self) -> MetaOutcome:
        """Run with the median time; of two, the faster one."""
        return sorted(self.outcomes, key=lambda o: o.seconds)[(len(self.outcomes) - 1) // 2]


def predict_metadata(
    work: MetaWork, cluster: Cluster, names: Sequence[str] = STRATEGIES, *, seed: int = 1
) -> MetadataPrediction:
    """Return the object `metadata` of `predict --format json`: all strategies, and the best one."""
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
        "assumptions": [*work.notes, _describe_placement(work, sites, near)],
        "left_out": LEFT_OUT,
    }


def _strategy(name: str, work: MetaWork, sites: Sites, near: bool, seed: int) -> SiteChoice:
    number = STRATEGIES.index(name)
    seeds = 1 if _is_pinned(work, sites) else SEEDS  # seeds affect the sites of tasks only
    centres = [at for at, count in enumerate(sites.nodes) if count] if name in _CENTRED else [0]
    runs = [MetaRun(number, at, near, seed + i) for at in centres for i in range(seeds)]
    found = simulate(work, sites, runs)
    groups = [found[i * seeds : (i + 1) * seeds] for i in range(len(centres))]
    best = min(range(len(centres)), key=lambda i: float(np.median([o.seconds for o in groups[i]])))
    return SiteChoice(name, centres[best] if name in _CENTRED else None, groups[best])


def _row(found: SiteChoice, sites: Sites, error: float) -> RegistryStrategy:
    middle = found.middle
    low, high = interval([o.seconds for o in found.outcomes], error)
    stale: Staleness = {"mean": middle.stale_mean, "most": middle.stale_most}
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


def _choice(rows: Sequence[RegistryStrategy], error: float) -> RegistryChoice:
    """Return the best strategy: the first (simplest) within the model's error of the fastest."""
    least = min(row["seconds"] for row in rows)
    same = [row for row in rows if row["seconds"] <= least * (1 + error)]
    best = same[0]
    others = [row["seconds"] for row in rows if row is not best]
    margin = min(others) / best["seconds"] - 1 if others and best["seconds"] else None
    return {"best": best["name"], "margin": margin, "alike": [row["name"] for row in same[1:]]}


def _is_pinned(work: MetaWork, sites: Sites) -> bool:
    """Whether all tasks run at their recorded sites."""
    return -1 not in pins_of(work, sites)


def _describe_placement(work: MetaWork, sites: Sites, near: bool) -> str:
    if _is_pinned(work, sites):
        return f"every task runs at {work.where}"
    if near:
        return "tasks start at the site that made what they read last, where a core is free"
    return "tasks start at the site with most free cores"
