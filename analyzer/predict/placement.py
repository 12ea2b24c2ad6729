"""Placements by name: what a store does by itself, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Placement, Workload, law

Strategy = Callable[[Workload, Cluster], Placement]


def default(work: Workload, cluster: Cluster) -> Placement:
    """What the store does by itself, tasks where the scheduler puts them."""
    return staged(Placement("default"), work, cluster)


def local(work: Workload, cluster: Cluster) -> Placement:
    """Every file on the node that writes it, every task where most of its input lies."""
    kinds = np.where(work.produced > 0, law("local"), -1).astype(np.int32)
    found = Placement("local", law=kinds, scheduler="most-input-bytes")
    return staged(found, work, cluster)


def staged(found: Placement, work: Workload, cluster: Cluster) -> Placement:
    """With node-local disks the inputs come from the machine apart."""
    if cluster.store.words["servers"] != "local":
        return found
    inputs = work.produced == 0
    kinds = np.full(work.files, -1, np.int32) if found.law is None else found.law
    target = np.full(work.files, -1, np.int32) if found.target is None else found.target
    found.law = np.where(inputs, law("node"), kinds).astype(np.int32)
    found.target = np.where(inputs, cluster.count, target).astype(np.int32)
    return found


# name of a placement -> strategy
STRATEGIES: dict[str, Strategy] = {"default": default, "local": local}
