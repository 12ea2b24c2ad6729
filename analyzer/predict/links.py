"""The busiest link and the load of the store's machines, from a simulated run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracehint.analyzer.predict.machine import Machine, build
from tracehint.analyzer.predict.prediction import Prediction


def host_names(machine: Machine) -> list[str]:
    """node1 ... for those that run tasks, server1 ... for the store's own."""
    nodes = sum(1 for host in machine.hosts if host["cores"])
    rest = len(machine.hosts) - nodes
    return [f"node{i + 1}" for i in range(nodes)] + [f"server{i + 1}" for i in range(rest)]


def busiest_link(p: Prediction) -> dict[str, Any] | None:
    """The link that is used most, its direction, its bytes, and the share of the time that they
    take at its full rate; None where nothing went over a link."""
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


def storage_load(p: Prediction) -> dict[str, Any]:
    """Of the machines that serve: bytes of their disks, share of the time that they work, on
    average and of the busiest; operations of the metadata service."""
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
