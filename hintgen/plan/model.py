"""Data types shared by the steps of planning, in bytes and seconds; arrays by task or by file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Placement, Workload
from tracehint.hintgen.placed import hints_by_file
from tracehint.hintgen.plan.graph import Graph, graph_of
from tracehint.hintgen.plan.partition import parts_of, ways_for

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Matcher

FREE = -1  # part of a task that may run on any node


@dataclass(frozen=True)
class Problem:
    """A planning problem: a workload, its cluster, and rules learned from earlier runs.

    `own`: cluster that simulates drafts without task placement. `staged`: inputs are staged to the
    store for this run, so hints can place them too; otherwise they are where the store put them.
    `seed` determines all random choices.
    """

    analysis: Analysis
    work: Workload
    cluster: Cluster
    rules: HintFile | None = None
    staged: bool = False
    seed: int = 1
    own: Cluster | None = None  # as used by an engine that starts all tasks on its node, the first
    facts: pa.Table | None = None  # facts that rules match, if available (hintgen/learn/facts.py)
    matcher: Matcher | None = None  # compiled from the rules, if available

    @cached_property
    def hinted(self) -> list[dict[str, str]]:
        """Hints of the rules by file; callers must not modify them."""
        if self.rules is None or not self.rules.rules:
            return []
        return hints_by_file(
            self.rules,
            self.analysis,
            self.work,
            self.cluster.count,
            facts=self.facts,
            matcher=self.matcher,
        )

    @cached_property
    def graph(self) -> Graph:
        """Graph of tasks and files. Raises InputError for cyclic dependencies."""
        return graph_of(self.work)

    @cached_property
    def cuts(self) -> tuple[Ints, ...]:
        """Part of each task for several ways to cut; empty for one node or fewer than two tasks.

        Raises UnavailableError without METIS.
        """
        if self.cluster.count == 1 or self.work.tasks < 2:
            return ()
        ways = ways_for(self.work.tasks, self.seed)
        found = [parts_of(self.graph, self.cluster, way) for way in ways]
        return tuple({part.tobytes(): part for part in found}.values())


@dataclass(frozen=True)
class Draft:
    """One way to run the workload: the hints of each file and the node of each task.

    `part`: the part of each task, FREE for any node; None: no task is bound. `values`: the hints
    by file, if the placement's arrays do not express all of them.
    """

    name: str
    placement: Placement
    parts: int = 0
    part: Shorts | None = None
    values: list[dict[str, str]] | None = None


@dataclass(frozen=True)
class Strategy:
    """A way to make drafts. `make` returns none if the strategy does not apply and raises
    UnavailableError if it cannot be tried. `simple`: needs neither a graph nor a plan."""

    name: str
    text: str
    make: Callable[[Problem], list[Draft]]
    simple: bool = False


@dataclass(frozen=True)
class Estimate:
    """Predicted result of a strategy's best draft. `refused`: why it cannot be chosen.

    `site_bytes`: the part of the network bytes sent between sites.
    `runs`: seconds of the simulated runs; the same index has the same seed in all strategies.
    """

    name: str
    text: str
    seconds: float
    low: float
    high: float
    network_bytes: float
    site_bytes: float
    runs: tuple[float, ...]
    draft: Draft
    simple: bool
    refused: str | None = None

    @property
    def mean_plus_std(self) -> float:
        """Mean time plus one standard deviation (about five of six runs are faster), which prefers
        plans that depend less on random placement."""
        return float(np.mean(self.runs) + np.std(self.runs))

    @property
    def scheduler(self) -> str | None:
        """Required scheduler; None: any, tasks start where the engine starts them."""
        asked = self.draft.placement.scheduler
        return None if asked == "plan" and self.draft.part is None else asked


@dataclass(frozen=True)
class Planning:
    """Estimates in the order of the strategies, the name of the chosen one, and strategies left
    out (name, reason). `simulated`: runs spent; `budget`: runs allowed for the improvement."""

    problem: Problem
    estimates: tuple[Estimate, ...]
    chosen: str
    left_out: tuple[tuple[str, str], ...] = ()
    simulated: int = 0
    budget: int = 0
    notes: tuple[str, ...] = field(default=())

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of a strategy."""
        return next(e for e in self.estimates if e.name == name)
