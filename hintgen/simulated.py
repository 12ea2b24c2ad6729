"""What hints would save in seconds on a cluster, by group of files: simulated, not counted.

Each group's hints are set alone, and those of all files together; the same seeds in all runs, so
that a difference comes from the hints.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from tracehint.analyzer.predict.placement import default
from tracehint.analyzer.predict.sampling import interval
from tracehint.analyzer.predict.workload import from_analysis
from tracehint.hintgen.placed import hints_by_file, placement_of
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.text.units import seconds

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.analyzer.predict.model import SimulatedRun
    from tracehint.hintgen.hints.model import HintFile

RUNS, FEW_RUNS = 15, 5
MOST_OPERATIONS = 3_000_000  # simulated in all: some seconds; smaller groups are left out
MOST_TASKS, MOST_FILES = 20_000, 50_000  # of a run; for larger ones there is `tracehint plan`
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Simulated(Generic[Key]):
    """Seconds by default and with all hints; `by`: least and most that each group's hints alone
    save, largest first; `left_out`: groups for which there was no time."""

    cluster: str
    nodes: int
    default: float
    hinted: float
    by: dict[Key, tuple[float, float]]
    left_out: int = 0

    @property
    def text(self) -> str:
        """In one sentence, largest first."""
        where = f"simulated on {self.cluster}, {self.nodes} nodes"
        said = f"all hints together {seconds(self.default)} -> {seconds(self.hinted)} ({where})"
        parts = [f"{key} {between(saves)}" for key, saves in self.by.items() if saves[1] > 0]
        return f"{said}; alone save: {', '.join(parts)}" if parts else said


def between(saves: tuple[float, float]) -> str:
    """`1.2 s to 3 s`, or that there is nothing to save."""
    return f"{seconds(saves[0])} to {seconds(saves[1])}" if saves[1] > 0 else "no time"


def simulate_groups(
    analysis: Analysis, cluster: Cluster, rules: HintFile, groups: Mapping[Key, Collection[int]]
) -> Simulated[Key] | None:
    """Simulate the hints of each group (its files), most important groups first.

    None: no file gets a hint, or the run is too large. Raises InputError for a run without tasks,
    MissingDependencyError without engine.
    """
    if analysis.tasks.num_rows > MOST_TASKS or analysis.files.num_rows > MOST_FILES:
        return None
    work = from_analysis(analysis)
    problem = Problem(analysis, work, cluster, rules)
    values = hints_by_file(rules, analysis, work, cluster.count)
    values = [v if made else {} for v, made in zip(values, work.produced, strict=True)]
    if not any(values):
        return None
    each_run = (len(groups) + 2) * max(1, len(work.op_kind))
    runs = RUNS if each_run * RUNS <= MOST_OPERATIONS else FEW_RUNS
    most = max(0, MOST_OPERATIONS // (runs * max(1, len(work.op_kind))) - 2)
    chosen = dict(list(groups.items())[:most])
    drafts = [Draft("default", default(work, cluster))]
    drafts.append(Draft("all", placement_of(values, work, "all")))
    for files in chosen.values():
        inside = np.isin(work.file_id, list(files)).tolist()
        own = [v if here else {} for v, here in zip(values, inside, strict=True)]
        drafts.append(Draft("group", placement_of(own, work, "group")))
    base, together, *each = Bench(problem).run(drafts, range(runs))
    error = cluster.model["error"]
    saved = {key: _saved(base, found, error) for key, found in zip(chosen, each, strict=True)}
    return Simulated(
        cluster.name,
        cluster.count,
        _median(base),
        _median(together),
        dict(sorted(saved.items(), key=lambda item: -item[1][1])),
        len(groups) - len(chosen),
    )


def _median(runs: list[SimulatedRun]) -> float:
    return float(np.median([run.seconds for run in runs]))


def _saved(
    base: list[SimulatedRun], found: list[SimulatedRun], error: float
) -> tuple[float, float]:
    """The 90 % interval of the difference, from nothing to all of the time."""
    less = [a.seconds - b.seconds for a, b in zip(base, found, strict=True)]
    if np.median(less) <= 0:
        return 0.0, 0.0
    low, high = interval(less, error)
    return round(low, 6), round(min(high, _median(base)), 6)
