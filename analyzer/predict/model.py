"""Records that the steps of a prediction exchange, in bytes and seconds; ranges are half open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.arrays import Bools, Ints, Shorts
from tracehint.analyzer.predict.cluster import Cluster, Dispatch

Floats = npt.NDArray[np.float64]

READ, WRITE, COMPUTE = range(3)  # enum op_kind of engine/sim.h
# Kinds of time of a task: enum spent of engine/sim.h
SPENT = ("compute", "network", "disk", "metadata", "requests", "queue")
NODE, CAUSE, READY, START, END = range(5)  # columns of SimulatedRun.tasks; SPENT follows


@dataclass
class Workload:
    """Input of the engine: tasks in the order of their start, each with its operations.

    `op_begin` and `dep_begin` are offsets, with one item more than tasks; `dep`: the dependents of
    each task. Operations: kind, file (-1 for computing), range of the file, bytes moved, seconds
    (computing: duration; read: time in which computing can overlap it). `busy`: per task the share
    of its computing time that it spends on its processors. `produced`: 1 if a task of the run
    writes the file. `held`: per file the node that holds all of it before the run, -1 if unknown.
    `task_id`, `file_id`: keys of the analysis. `notes`: assumptions; `guessed`: share of the tasks
    or files whose time or size is an assumption. `dispatch`: start delays of the recorded run.
    """

    task_id: Ints
    names: list[str]
    type: Shorts
    type_names: list[str]
    cores: Shorts
    op_begin: Ints
    op_kind: Shorts
    op_file: Shorts
    op_start: Ints
    op_length: Ints
    op_bytes: Ints
    op_seconds: Floats
    busy: Floats
    dep_begin: Ints
    dep: Shorts
    size: Ints
    produced: Shorts
    file_id: Ints
    notes: list[str] = field(default_factory=list)
    guessed: float = 0.0
    dispatch: Dispatch = field(default_factory=Dispatch)
    held: Shorts | None = None

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.cores)

    @property
    def files(self) -> int:
        """Number of files (versions)."""
        return len(self.size)

    def of_kind(self, kind: int) -> Bools:
        """Return the mask of the operations of this kind."""
        return np.asarray(self.op_kind == kind)


@dataclass
class Placement:
    """Placement of the files and tasks of a workload; None instead of an array is the default.

    Per file: `law` (enum law of engine/sim.h, -1: the store's), `copies` (0: the store's), `target`
    (host or group), `chunk` (0: the store's). Per task: `plan`, a node, -1 (the node with most of
    its input) or ANYWHERE (any idle node). `scheduler`: a name of cluster.SCHEDULERS, `steal`: one
    of STEAL; None: the cluster's. `scratch`: nodes without a server of the store hold files in
    node-local storage.
    """

    name: str
    law: Shorts | None = None
    copies: Shorts | None = None
    target: Shorts | None = None
    chunk: Ints | None = None
    plan: Shorts | None = None
    groups: int = 0
    scheduler: str | None = None
    steal: str | None = None
    scratch: bool = False
    notes: list[str] = field(default_factory=list)


ANYWHERE = -2  # engine/sim.h
STEAL = ("nothing", "any", "unplanned")  # enum steal of engine/sim.h

# enum law of engine/sim.h
LAWS = ("rotate", "random", "local", "one", "stripe", "node", "group")


def law(name: str) -> int:
    """Return the engine's number of a placement law."""
    return LAWS.index(name)


@dataclass
class SimulatedRun:
    """One simulated run. `site_bytes`: the network bytes that cross between sites. `hosts`: rows of
    (bytes out, bytes in, disk bytes, core seconds of computing, seconds of link use, seconds of
    store use). `types`: rows of (first start, last end, tasks, seconds of each of SPENT). `tasks`:
    rows of (node, cause, ready, start, end, seconds of each of SPENT), or None.
    """

    seconds: float
    network_bytes: float
    site_bytes: float
    metadata_operations: float
    hosts: Floats
    types: Floats
    tasks: Floats | None = None


def critical_path(rows: Floats) -> list[int]:
    """Return the critical path backwards: the task that ends last, the task it waited for, and so
    on to the first one."""
    path = [int(np.argmax(rows[:, END]))]
    while (cause := int(rows[path[-1], CAUSE])) >= 0:
        path.append(cause)
    return path


Strategy = Callable[[Workload, Cluster], Placement]


def default(work: Workload, cluster: Cluster) -> Placement:
    """Return the default placement of the store and the scheduler."""
    return place_inputs_apart(Placement("default"), work, cluster)


def keep_held(placement: Placement, work: Workload) -> Placement:
    """Keep inputs on the node that holds them, unless the placement specifies another law."""
    if work.held is None:
        return placement
    nowhere = np.full(work.files, -1, np.int32)
    kinds = nowhere if placement.law is None else placement.law
    target = nowhere if placement.target is None else placement.target
    stay = (work.held >= 0) & (work.produced == 0) & (kinds < 0)
    return replace(
        placement,
        law=np.where(stay, law("node"), kinds).astype(np.int32),
        target=np.where(stay, work.held, target).astype(np.int32),
    )


def local(work: Workload, cluster: Cluster) -> Placement:
    """Place every file on the node that writes it, and every task where most of its input is."""
    kinds = np.where(work.produced > 0, law("local"), -1).astype(np.int32)
    found = Placement("local", law=kinds, scheduler="most-input-bytes")
    return place_inputs_apart(found, work, cluster)


def place_inputs_apart(found: Placement, work: Workload, cluster: Cluster) -> Placement:
    """Place the inputs on the separate machine if the store consists of node-local disks."""
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
