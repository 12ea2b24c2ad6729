"""What the steps of planning hand to each other. Bytes, seconds; arrays by task or by file."""

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

FREE = -1  # the part of a task that runs anywhere


@dataclass(frozen=True)
class Problem:
    """What is to be planned: a workload, where it shall run, and rules learned from earlier runs.

    `own`: what no plan places runs there. `staged`: inputs are brought to the store for this run,
    so that hints can place them too; else they lie where the store put them. `seed` decides every
    choice by chance.
    """

    analysis: Analysis
    work: Workload
    cluster: Cluster
    rules: HintFile | None = None
    staged: bool = False
    seed: int = 1
    own: Cluster | None = None  # as an engine uses it that starts all tasks on its node, the first
    facts: pa.Table | None = None  # what rules go by, where it is known (hintgen/learn/facts.py)
    matcher: Matcher | None = None  # of the rules, where it is there

    @cached_property
    def hinted(self) -> list[dict[str, str]]:
        """The hints of the rules by file; not to be written to."""
        if self.rules is None or not self.rules.rules:
            return []
        return hints_by_file(
            self.rules, self.analysis, self.work, self.cluster.count,
            facts=self.facts, matcher=self.matcher,
        )  # fmt: skip  # a table

    @cached_property
    def graph(self) -> Graph:
        """The graph of tasks and files. Raises InputError for tasks that wait for each other."""
        return graph_of(self.work)

    @cached_property
    def cuts(self) -> tuple[Ints, ...]:
        """The part of each task, by several ways to cut; none where there is nothing to cut.

        Raises UnavailableError without METIS.
        """
        if self.cluster.count == 1 or self.work.tasks < 2:
            return ()
        ways = ways_for(self.work.tasks, self.seed)
        found = [parts_of(self.graph, self.cluster, way) for way in ways]
        return tuple({part.tobytes(): part for part in found}.values())


@dataclass(frozen=True)
class Draft:
    """One way to run the workload: the hints of each file, and where the tasks start.

    `part`: the part of each task, FREE for any node; None: no task is bound. `values`: the hints
    by file, where they are more than the placement's arrays say.
    """

    name: str
    placement: Placement
    parts: int = 0
    part: Shorts | None = None
    values: list[dict[str, str]] | None = None


@dataclass(frozen=True)
class Strategy:
    """A way to make drafts. `make` returns none where it has nothing to say, and raises
    UnavailableError where it cannot be tried. `simple`: needs neither a graph nor a plan."""

    name: str
    text: str
    make: Callable[[Problem], list[Draft]]
    simple: bool = False


@dataclass(frozen=True)
class Estimate:
    """What a strategy would bring; of several drafts its best. `refused`: why it is not taken.

    `site_bytes`: of the network's bytes those between sites.
    `runs`: seconds of the simulated runs; equal places stand for equal seeds in all strategies.
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
    def sure(self) -> float:
        """Seconds that five of six runs need at most: of equal times the one counts that does not
        rest on where chance puts files and tasks."""
        return float(np.mean(self.runs) + np.std(self.runs))

    @property
    def scheduler(self) -> str | None:
        """The scheduler that it asks for; None: any, tasks start where the engine starts them."""
        asked = self.draft.placement.scheduler
        return None if asked == "plan" and self.draft.part is None else asked


@dataclass(frozen=True)
class Planning:
    """The estimates in the order of the strategies, the chosen one's name, and what was not
    tried (name and reason). `simulated`: runs that were spent, of at most `budget`."""

    problem: Problem
    estimates: tuple[Estimate, ...]
    chosen: str
    left_out: tuple[tuple[str, str], ...] = ()
    simulated: int = 0
    budget: int = 0
    notes: tuple[str, ...] = field(default=())

    def estimate(self, name: str) -> Estimate:
        """The estimate of a strategy."""
        return next(e for e in self.estimates if e.name == name)
