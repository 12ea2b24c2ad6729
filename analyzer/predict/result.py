"""Prediction as JSON: `predict --format json` (docs/reference/prediction.schema.json)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import numpy as np
from msgspec import Meta

from tracehint.analyzer.predict.metadata.prediction import MetadataPrediction
from tracehint.analyzer.predict.model import (
    END,
    NODE,
    READY,
    SPENT,
    START,
    Floats,
    SimulatedRun,
    Workload,
    critical_path,
)
from tracehint.analyzer.predict.prediction import Prediction, Validation
from tracehint.analyzer.predict.simulator import Machine, build
from tracehint.schemas.fields import Amount, Count, Positive

MAX_SHOWN = 50  # tasks of the critical path


class Spent(TypedDict):
    """Seconds by kind of waiting."""

    compute: Amount
    network: Amount
    disk: Amount
    metadata: Amount
    requests: Amount
    queue: Amount


class PathTask(TypedDict):
    """A task on the critical path."""

    name: str
    type: str
    ready: Amount
    start: Amount
    end: Amount
    spent: Spent


class CriticalPath(TypedDict):
    """The longest of its tasks, from first to last; `length`: of all."""

    seconds: Spent
    length: Positive
    tasks: list[PathTask]


class BusiestLink(TypedDict):
    """`share`: of the time that its bytes take at its full rate."""

    host: str
    direction: Literal["out", "in"]
    bytes: Count
    share: Amount


class StorageLoad(TypedDict):
    """Of the machines that serve; `busy`: shares of the time that they work."""

    servers: Positive
    disk_bytes: Count
    busy_mean: Amount
    busy_most: Amount
    metadata_operations: Count


class StageRow(TypedDict):
    """Tasks of one type; `seconds`: from the first start to the last end."""

    type: str
    seconds: Amount
    start: Amount
    end: Amount
    tasks: Count
    spent: Spent


class TimelineRow(TypedDict):
    """A row of the timeline."""

    name: str
    node: str
    start: Amount
    end: Amount


class ConfigurationRow(TypedDict):
    """One configuration, simulated."""

    name: str
    cluster: str
    placement: str
    nodes: Positive
    seconds: Amount
    seconds_low: Amount
    seconds_high: Amount
    runs: Positive
    network_bytes: Count
    site_bytes: Annotated[Count | None, Meta(description="Of them between sites; null: no sites.")]
    energy_joules: Annotated[
        Amount | None, Meta(description="null: the cluster file has no powers.")
    ]
    cost: Annotated[Amount | None, Meta(description="null: the cluster file has no prices.")]
    busiest_link: BusiestLink | None
    storage: StorageLoad
    stages: list[StageRow]
    critical_path: Annotated[
        CriticalPath | None, Meta(description="null: in a sweep without --tasks.")
    ]
    notes: list[str]
    tasks: NotRequired[Annotated[list[TimelineRow], Meta(description="With --tasks.")]]


class Best(TypedDict):
    """Names of configurations; `cost` null: no prices are known."""

    seconds: str
    cost: str | None


class PredictionDocument(TypedDict):
    """Output of `tracehint predict RUN --cluster C --format json`. Seconds, bytes, joules. What is
    not known is null. Fields are only ever added."""

    schema: Literal["tracehint.prediction/1"]
    configurations: list[ConfigurationRow]
    best: Best
    front: Annotated[
        list[str], Meta(description="Configurations that no other one beats in time and cost.")
    ]
    assumptions: list[str]
    left_out: str
    validation: NotRequired[Annotated[Validation, Meta(description="With --validate.")]]
    metadata: NotRequired[
        Annotated[
            MetadataPrediction,
            Meta(
                description="With --metadata: a run over several sites under strategies of "
                "metadata registries."
            ),
        ]
    ]


def _spent(seconds: Floats) -> Spent:
    return cast(Spent, dict(zip(SPENT, map(float, seconds), strict=True)))


def _path_row(work: Workload, outcome: SimulatedRun) -> CriticalPath:
    """Return the seconds of each kind along the critical path, and its tasks from first to last
    (at most the MAX_SHOWN longest). `queue` is waiting for a node."""
    rows = outcome.tasks
    assert rows is not None
    path = critical_path(rows)[::-1]
    on_path = rows[path]
    took = on_path[:, END] - on_path[:, READY]
    longest = np.sort(np.argsort(-took, kind="stable")[:MAX_SHOWN])
    return {
        "seconds": _spent(on_path[:, 5:].sum(axis=0)),
        "length": len(path),
        "tasks": [
            {
                "name": work.names[path[i]],
                "type": work.type_names[work.type[path[i]]],
                "ready": float(on_path[i, READY]),
                "start": float(on_path[i, START]),
                "end": float(on_path[i, END]),
                "spent": _spent(on_path[i, 5:]),
            }
            for i in longest
        ],
    }


def host_names(machine: Machine) -> list[str]:
    """Return node1 ... for hosts that run tasks, server1 ... for the store's dedicated servers."""
    nodes = sum(1 for host in machine.hosts if host["cores"])
    rest = len(machine.hosts) - nodes
    return [f"node{i + 1}" for i in range(nodes)] + [f"server{i + 1}" for i in range(rest)]


def busiest_link(p: Prediction) -> BusiestLink | None:
    """Return the most used link: direction, bytes, and the share of the run time that these take
    at its full rate; None if no bytes went over a link."""
    machine = build(p.configuration.cluster, 0)
    rates = np.array([[host["out"], host["in"]] for host in machine.hosts])
    used = np.divide(p.outcome.hosts[:, :2], rates, out=np.zeros(rates.shape), where=rates > 0)
    host, way = np.unravel_index(int(np.argmax(used)), used.shape)
    if not used[host, way] or not p.seconds:
        return None
    return {
        "host": host_names(machine)[int(host)],
        "direction": ("out", "in")[int(way)],
        "bytes": round(float(p.outcome.hosts[host, way])),
        "share": float(used[host, way] / p.seconds),
    }


def storage_load(p: Prediction) -> StorageLoad:
    """Return the load of the store's servers: disk bytes, mean and maximum share of the run time in
    which they are busy; and the operations of the metadata service."""
    machine = build(p.configuration.cluster, 0)
    rows = p.outcome.hosts[machine.servers]
    share = rows[:, 5] / p.seconds if p.seconds else np.zeros(len(rows))
    return {
        "servers": len(rows),
        "disk_bytes": round(float(rows[:, 2].sum())),
        "busy_mean": float(share.mean()),
        "busy_most": float(share.max()),
        "metadata_operations": round(p.outcome.metadata_operations),
    }


LEFT_OUT = (
    "protocol headers beyond link_efficiency, congestion of switches, interference of other users,"
    " failures and retries, writing back after the end, uneven servers, memory that tasks use"
)


def to_json(
    work: Workload, predictions: Sequence[Prediction], *, tasks: bool = False
) -> dict[str, Any]:
    """Return the object that `predict --format json` prints."""
    document: PredictionDocument = {
        "schema": "tracehint.prediction/1",
        "configurations": [_configuration(work, p, tasks=tasks) for p in predictions],
        "best": best(predictions),
        "front": front(predictions),
        "assumptions": work.notes,
        "left_out": LEFT_OUT,
    }
    return cast("dict[str, Any]", document)


def best(predictions: Sequence[Prediction]) -> Best:
    """Return the fastest and the cheapest configuration; None: no prices are known."""
    by_time = min(predictions, key=lambda p: p.seconds)
    priced = [p for p in predictions if p.cost is not None]
    cheap = min(priced, key=lambda p: (p.cost, p.seconds)) if priced else None
    return {
        "seconds": by_time.configuration.name,
        "cost": cheap.configuration.name if cheap else None,
    }


def front(predictions: Sequence[Prediction]) -> list[str]:
    """Return the Pareto front of time and cost, from the fastest to the cheapest configuration."""
    priced = sorted((p for p in predictions if p.cost is not None), key=_time_then_cost)
    found: list[Prediction] = []
    for p in priced:
        if not found or (p.cost or 0.0) < (found[-1].cost or 0.0):
            found.append(p)
    return [p.configuration.name for p in found]


def _time_then_cost(p: Prediction) -> tuple[float, float]:
    return p.seconds, p.cost or 0.0


def _configuration(work: Workload, p: Prediction, *, tasks: bool) -> ConfigurationRow:
    cluster, outcome = p.configuration.cluster, p.outcome
    found: ConfigurationRow = {
        "name": p.configuration.name,
        "cluster": cluster.name,
        "placement": p.configuration.placement,
        "nodes": cluster.count,
        "seconds": p.seconds,
        "seconds_low": p.low,
        "seconds_high": p.high,
        "runs": p.runs,
        "network_bytes": round(p.network_bytes),
        "site_bytes": round(outcome.site_bytes) if cluster.sites else None,
        "energy_joules": p.energy_joules,
        "cost": p.cost,
        "busiest_link": busiest_link(p),
        "storage": storage_load(p),
        "stages": _stages(work, p),
        "critical_path": _path_row(work, outcome) if outcome.tasks is not None else None,
        "notes": p.notes,
    }
    if tasks:
        found["tasks"] = _tasks(work, p)
    return found


def _stages(work: Workload, p: Prediction) -> list[StageRow]:
    """Return one row per type of task, in the order of their start; `seconds` from the first start
    to the last end, `spent` summed over the tasks."""
    rows = p.outcome.types
    order = np.argsort(rows[:, 0], kind="stable")
    return [
        {
            "type": work.type_names[i],
            "seconds": float(rows[i, 1] - rows[i, 0]),
            "start": float(rows[i, 0]),
            "end": float(rows[i, 1]),
            "tasks": int(rows[i, 2]),
            "spent": _spent(rows[i, 3:]),
        }
        for i in order
        if rows[i, 2]
    ]


def _tasks(work: Workload, p: Prediction) -> list[TimelineRow]:
    """Return the timeline: one row per task."""
    rows = p.outcome.tasks
    if rows is None:
        return []
    columns = (rows[:, column].tolist() for column in (NODE, START, END))
    return [
        {"name": name, "node": f"node{int(node) + 1}", "start": start, "end": end}
        for name, node, start, end in zip(work.names, *columns, strict=True)
    ]
