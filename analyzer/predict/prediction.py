"""Predict a workload on configurations: several simulated runs each, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.engine import Scenario, simulate
from tracehint.analyzer.predict.machine import build
from tracehint.analyzer.predict.model import SimulatedRun, Workload
from tracehint.analyzer.predict.placement import Strategy
from tracehint.analyzer.predict.sampling import drawn, error_of, interval
from tracehint.errors import UsageError

RUNS, FEW_RUNS, SMALL_SWEEP = 5, 3, 50  # beyond so many configurations fewer runs each
MANY_RUNS, QUICK = 15, 200_000  # simulated operations up to which there are so many runs
MAX_RUNS, MAX_CONFIGURATIONS = 1000, 10_000


@dataclass(frozen=True)
class Configuration:
    """One point of a sweep: a cluster, and a placement by its name and strategy."""

    name: str
    cluster: Cluster
    placement: str
    strategy: Strategy


@dataclass
class Prediction:
    """What is predicted for a configuration: `network_bytes` is the median of all `runs`,
    `outcome` the run with the median time.

    `energy_joules` and `cost` are None where the cluster file has no powers or prices.
    """

    configuration: Configuration
    seconds: float
    low: float
    high: float
    runs: int
    network_bytes: float
    outcome: SimulatedRun
    energy_joules: float | None
    cost: float | None
    notes: list[str] = field(default_factory=list)


def runs_for(configurations: int, operations: int) -> int:
    """Runs of each configuration where nobody says how many."""
    if configurations * operations <= QUICK:
        return MANY_RUNS
    return RUNS if configurations <= SMALL_SWEEP else FEW_RUNS


def predict(
    work: Workload,
    configurations: Sequence[Configuration],
    *,
    runs: int = RUNS,
    seed: int = 1,
    detail: bool = False,
) -> list[Prediction]:
    """The prediction of each configuration, in order; `detail` adds the tasks of the middle run.

    The same arguments give the same answer. Raises InputError and UsageError.
    """
    if not 1 <= runs <= MAX_RUNS or len(configurations) > MAX_CONFIGURATIONS:
        raise UsageError(
            f"{len(configurations)} configurations of {runs} runs",
            f"At most {MAX_CONFIGURATIONS:,} configurations and {MAX_RUNS:,} runs.",
        )
    placements = [c.strategy(work, c.cluster) for c in configurations]

    def scenario(number: int, run: int, *, detail: bool) -> Scenario:
        placement = placements[number]
        cluster = drawn(configurations[number].cluster, run and seed * 100_003 + run)
        machine = build(cluster, seed * 1009 + run, placement.scheduler, placement.steal)
        return Scenario(machine, placement, detail)

    wanted = [(number, run) for number in range(len(configurations)) for run in range(runs)]
    found = simulate(work, [scenario(*pair, detail=False) for pair in wanted])
    groups = [found[i * runs : (i + 1) * runs] for i in range(len(configurations))]
    middle = [_middle([o.seconds for o in group]) for group in groups]
    chosen = [group[at] for group, at in zip(groups, middle, strict=True)]
    if detail:
        chosen = simulate(work, [scenario(i, at, detail=True) for i, at in enumerate(middle)])
    return [
        _prediction(*parts, work.guessed)
        for parts in zip(configurations, groups, chosen, (p.notes for p in placements), strict=True)
    ]


def _middle(seconds: list[float]) -> int:
    """Which run has the median, of two the shorter one."""
    return int(np.argsort(seconds, kind="stable")[(len(seconds) - 1) // 2])


def _prediction(
    configuration: Configuration,
    group: list[SimulatedRun],
    chosen: SimulatedRun,
    notes: list[str],
    guessed: float,
) -> Prediction:
    cluster = configuration.cluster
    low, high = interval([o.seconds for o in group], error_of(cluster, guessed))
    return Prediction(
        configuration=configuration,
        seconds=chosen.seconds,
        low=low,
        high=high,
        runs=len(group),
        network_bytes=float(np.median([o.network_bytes for o in group])),
        outcome=chosen,
        energy_joules=_energy(cluster, chosen),
        cost=_cost(cluster, chosen.seconds),
        notes=notes,
    )


def _machines(cluster: Cluster) -> list[tuple[float, dict[str, float]]]:
    """(how many, their numbers) for nodes and for the store's own machines, as the hosts lie."""
    parts = [(part["count"], {key: part[key] for key in part.numbers}) for part in cluster.nodes]
    where = cluster.store.words["servers"]
    if where != "all":
        own = {key: cluster.servers[key] for key in cluster.servers.numbers}
        parts.append((1 if where == "local" else cluster.servers["count"], {**own, "cores": 1}))
    return parts


def _energy(cluster: Cluster, outcome: SimulatedRun) -> float | None:
    """Joules: idle for all the time; computing, storage and network on top while they work."""
    parts = _machines(cluster)
    if not any(numbers["idle_watts"] for _, numbers in parts):
        return None
    total, at = 0.0, 0
    for count, numbers in parts:
        rows = outcome.hosts[at : at + int(count)]
        at += int(count)
        _, _, _, busy, net, store = rows.sum(axis=0)
        total += (
            numbers["idle_watts"] * count * outcome.seconds
            + numbers["compute_watts"] * busy / numbers["cores"]
            + numbers["network_watts"] * net
            + numbers["storage_watts"] * store
        )
    return float(total)


def _cost(cluster: Cluster, seconds: float) -> float | None:
    """Price of all machines for the time; None where no price is known."""
    rate = sum(count * numbers["price_per_hour"] for count, numbers in _machines(cluster))
    return rate * seconds / 3600 if rate else None
