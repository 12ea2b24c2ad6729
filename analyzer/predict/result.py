"""A prediction as JSON (schemas/prediction.schema.json): contract of `predict --format json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracehint.analyzer.predict.critical import critical_path
from tracehint.analyzer.predict.links import busiest_link, storage_load
from tracehint.analyzer.predict.model import SPENT, Workload
from tracehint.analyzer.predict.prediction import Prediction

SCHEMA = "tracehint.prediction/1"
LEFT_OUT = (
    "protocol headers beyond link_efficiency, congestion of switches, interference of other users,"
    " failures and retries, writing back after the end, uneven servers, memory that tasks use"
)


def to_json(
    work: Workload, predictions: Sequence[Prediction], *, tasks: bool = False
) -> dict[str, Any]:
    """The object that `predict --format json` prints."""
    return {
        "schema": SCHEMA,
        "configurations": [_configuration(work, p, tasks=tasks) for p in predictions],
        "best": best(predictions),
        "front": front(predictions),
        "assumptions": work.notes,
        "left_out": LEFT_OUT,
    }


def best(predictions: Sequence[Prediction]) -> dict[str, str | None]:
    """The configuration with the shortest time, and the cheapest; None: no prices are known."""
    by_time = min(predictions, key=lambda p: p.seconds)
    priced = [p for p in predictions if p.cost is not None]
    cheap = min(priced, key=lambda p: (p.cost, p.seconds)) if priced else None
    return {
        "seconds": by_time.configuration.name,
        "cost": cheap.configuration.name if cheap else None,
    }


def front(predictions: Sequence[Prediction]) -> list[str]:
    """Configurations that no other one beats in time and in cost, from fast to cheap."""
    priced = sorted((p for p in predictions if p.cost is not None), key=_time_then_cost)
    found: list[Prediction] = []
    for p in priced:
        if not found or (p.cost or 0.0) < (found[-1].cost or 0.0):
            found.append(p)
    return [p.configuration.name for p in found]


def _time_then_cost(p: Prediction) -> tuple[float, float]:
    return p.seconds, p.cost or 0.0


def _configuration(work: Workload, p: Prediction, *, tasks: bool) -> dict[str, Any]:
    cluster, outcome = p.configuration.cluster, p.outcome
    found: dict[str, Any] = {
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
        "critical_path": critical_path(work, outcome) if outcome.tasks is not None else None,
        "notes": p.notes,
    }
    if tasks:
        found["tasks"] = _tasks(work, p)
    return found


def _stages(work: Workload, p: Prediction) -> list[dict[str, Any]]:
    """By type of task, in the order of their start; `seconds` from the first start to the last
    end, `spent` summed over the tasks."""
    rows = p.outcome.types
    order = np.argsort(rows[:, 0], kind="stable")
    return [
        {
            "type": work.type_names[i],
            "seconds": float(rows[i, 1] - rows[i, 0]),
            "start": float(rows[i, 0]),
            "end": float(rows[i, 1]),
            "tasks": int(rows[i, 2]),
            "spent": dict(zip(SPENT, map(float, rows[i, 3:]), strict=True)),
        }
        for i in order
        if rows[i, 2]
    ]


def _tasks(work: Workload, p: Prediction) -> list[dict[str, Any]]:
    """The timeline: one row per task."""
    rows = p.outcome.tasks
    if rows is None:
        return []
    columns = zip(
        work.names, rows[:, 0].tolist(), rows[:, 3].tolist(), rows[:, 4].tolist(), strict=True
    )
    return [
        {"name": name, "node": f"node{int(node) + 1}", "start": start, "end": end}
        for name, node, start, end in columns
    ]
