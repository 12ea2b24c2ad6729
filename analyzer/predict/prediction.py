"""Prediction of a workload on configurations, from several simulated runs of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from tracehint.analyzer.arrays import Shorts, codes, floats
from tracehint.analyzer.predict.cluster import MBIT, Cluster, ClusterSection, Range
from tracehint.analyzer.predict.model import (
    SPENT,
    Placement,
    SimulatedRun,
    Strategy,
    Workload,
    default,
)
from tracehint.analyzer.predict.simulator import Scenario, build, simulate
from tracehint.errors import InputError, UsageError
from tracehint.schemas.fields import Amount

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


# 95 % quantiles of Student's t by degrees of freedom, from 1; 1.645 beyond the table.
T95 = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812,
    1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
)  # fmt: skip  # a table


GUESS_ERROR = 0.4  # assumed error of a prediction in which everything is guessed; not measured


def draw_cluster(cluster: Cluster, seed: int) -> Cluster:
    """Return the cluster with each number drawn from its range; seed 0: the numbers themselves.

    Equal seeds draw the same positions in the ranges, so that configurations remain comparable.
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
    """Return the error of the model for a workload of which the share `guessed` is assumed."""
    return math.hypot(cluster.model["error"], GUESS_ERROR * guessed)


def interval(seconds: list[float], error: float) -> tuple[float, float]:
    """Return the 90 % interval of one further run, from the spread of the simulated runs and the
    error of the model itself (half of its own interval, as a share of the time)."""
    middle, n = float(np.median(seconds)), len(seconds)
    t = 0.0 if n < 2 else T95[n - 2] if n - 2 < len(T95) else 1.645
    spread = t * float(np.std(seconds, ddof=1)) if n > 1 else 0.0
    half = math.hypot(spread, error * middle)
    return max(0.0, min([middle - half, *seconds])), max([middle + half, *seconds])


RUNS, FEW_RUNS, SMALL_SWEEP = 5, 3, 50  # FEW_RUNS each for more than SMALL_SWEEP configurations
MANY_RUNS, QUICK = 15, 200_000  # MANY_RUNS each for up to QUICK operations in all configurations
MAX_RUNS, MAX_CONFIGURATIONS = 1000, 10_000


@dataclass(frozen=True)
class Configuration:
    """One point of a sweep: a cluster, and the name and strategy of a placement."""

    name: str
    cluster: Cluster
    placement: str
    strategy: Strategy


@dataclass
class Prediction:
    """Prediction for one configuration. `network_bytes`: median over all `runs`; `outcome`: the run
    with the median time.

    `energy_joules` and `cost` are None if the cluster file has no powers or prices.
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
    """Return the default number of runs per configuration."""
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
    """Predict each configuration, in order; `detail` adds the tasks of the median run.

    Deterministic for equal arguments. Raises InputError and UsageError.
    """
    if not 1 <= runs <= MAX_RUNS or len(configurations) > MAX_CONFIGURATIONS:
        raise UsageError(
            f"{len(configurations)} configurations of {runs} runs",
            f"At most {MAX_CONFIGURATIONS:,} configurations and {MAX_RUNS:,} runs.",
        )
    placements = [c.strategy(work, c.cluster) for c in configurations]
    clusters = [c.cluster.started_as(work.dispatch) for c in configurations]

    def scenario(number: int, run: int, *, detail: bool) -> Scenario:
        placement = placements[number]
        cluster = draw_cluster(clusters[number], run and seed * 100_003 + run)
        machine = build(cluster, seed * 1009 + run, placement.scheduler, placement.steal)
        return Scenario(machine, placement, detail)

    wanted = [(number, run) for number in range(len(configurations)) for run in range(runs)]
    found = simulate(work, [scenario(*pair, detail=False) for pair in wanted])
    groups = [found[i * runs : (i + 1) * runs] for i in range(len(configurations))]
    middle = [_find_median([o.seconds for o in group]) for group in groups]
    chosen = [group[at] for group, at in zip(groups, middle, strict=True)]
    if detail:
        chosen = simulate(work, [scenario(i, at, detail=True) for i, at in enumerate(middle)])
    return [
        _prediction(*parts, work.guessed)
        for parts in zip(configurations, groups, chosen, (p.notes for p in placements), strict=True)
    ]


def _find_median(seconds: list[float]) -> int:
    """Return the index of the run with the median time; of two, the faster one."""
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


LEAST_LINK = 10 * MBIT
LINK_STEPS = 10  # bisections on a logarithmic scale: precise to 0.5 % of a 1,000 Mbit/s link


def link_of_waiting(work: Workload, cluster: Cluster, waited_s: float, plan: Shorts) -> float:
    """Return the link rate in bytes/s at which tasks wait for files as long as in a run without
    hints (`waited_s` in total), each on its node in `plan`; at most the cluster's own rate."""
    own = cluster.nodes[0]["link_mbit"]
    waits = [3 + SPENT.index(kind) for kind in ("network", "disk", "metadata", "requests")]

    def as_it_ran(work: Workload, cluster: Cluster) -> Placement:
        return replace(default(work, cluster), plan=plan, scheduler="plan")

    def waiting(link: float) -> float:
        point = Configuration("", cluster.with_link(link), "as it ran", as_it_ran)
        (found,) = predict(work, [point], runs=1)
        return float(found.outcome.types[:, waits].sum())

    low, high = min(LEAST_LINK, own), own
    if waiting(high) >= waited_s:
        return own
    for _ in range(LINK_STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if waiting(middle) > waited_s else (low, middle)
    return high


def _machines(cluster: Cluster) -> list[tuple[float, dict[str, float]]]:
    """Return (count, numbers) of nodes and of the store's dedicated machines, in host order."""
    parts = [(part["count"], {key: part[key] for key in part.numbers}) for part in cluster.nodes]
    where = cluster.store.words["servers"]
    if where != "all":
        own = {key: cluster.servers[key] for key in cluster.servers.numbers}
        parts.append((1 if where == "local" else cluster.servers["count"], {**own, "cores": 1}))
    return parts


def _energy(cluster: Cluster, outcome: SimulatedRun) -> float | None:
    """Return joules: idle power for the whole run; compute, storage and network while in use."""
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
    """Return the price of all machines for the run; None if no price is known."""
    rate = sum(count * numbers["price_per_hour"] for count, numbers in _machines(cluster))
    return rate * seconds / 3600 if rate else None


class MeasuredType(TypedDict):
    """`error`: (predicted - measured) / measured; null: nothing was measured."""

    type: str
    measured_seconds: Amount
    predicted_seconds: Amount
    error: float | None


class Validation(TypedDict):
    """A prediction beside a measured run. `types`: those of both; `only`: those of one."""

    name: str
    measured_seconds: Amount
    predicted_seconds: Amount
    error: float | None
    inside: bool
    types: list[MeasuredType]
    only: list[str]


def validate(work: Workload, prediction: Prediction, measured: Analysis) -> Validation:
    """Compare predicted and measured seconds, of the run and per type (first start to last end).

    Raises InputError if the measured run has no task times.
    """
    spans, total = _spans(measured)
    rows = prediction.outcome.types
    own = {work.type_names[i]: float(rows[i, 1] - rows[i, 0]) for i in range(len(rows))}
    both = [name for name in own if name in spans]
    return {
        "name": prediction.configuration.name,
        "measured_seconds": total,
        "predicted_seconds": prediction.seconds,
        "error": _error(prediction.seconds, total),
        "inside": prediction.low <= total <= prediction.high,
        "types": [
            {
                "type": name,
                "measured_seconds": spans[name],
                "predicted_seconds": own[name],
                "error": _error(own[name], spans[name]),
            }
            for name in both
        ],
        "only": sorted({*own, *spans} - set(both)),
    }


def _spans(run: Analysis) -> tuple[dict[str, float], float]:
    """Return (seconds by type, of all) from the first start to the last end of timed tasks."""
    import pyarrow.compute as pc

    work = run.tasks.filter(pc.invert(pc.fill_null(run.tasks.column("engine"), False)))
    start, end = floats(work, "start_s"), floats(work, "end_s")
    timed = ~(np.isnan(start) | np.isnan(end))
    if not timed.any():
        raise InputError("the measured run has no task times", "Give --validate a recorded run.")
    kind = codes(work, "type")[timed]
    names = work.column("type").combine_chunks().dictionary_encode().dictionary.to_pylist()
    start, end = start[timed], end[timed]
    spans = {
        names[code]: float(end[kind == code].max() - start[kind == code].min())
        for code in np.unique(kind[kind >= 0])
    }
    return spans, float(end.max() - start.min())


def _error(predicted: float, measured: float) -> float | None:
    return predicted / measured - 1 if measured > 0 else None
