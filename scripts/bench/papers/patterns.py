"""The four synthetic benchmarks: network bytes and speed under NFS, a striped store, and hints.

The sizes of their files are published only in a figure. Here they are round numbers that result in
the published bytes of the NFS column, where each byte read or written crosses the network once; the
two other columns are predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.support.predicting import Task, plain, workload

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Placement, Workload, default, law, local
from tracehint.analyzer.predict.prediction import Configuration, Prediction, predict

MIB = 1 << 20
WORKERS = 19
REPLICAS = 8  # of the file that all tasks read: their best number for 19 readers
LINK = "link_mbit = 1000\nlink_efficiency = 0.95\nlocal_mb_s = 1000"
STRIPES = "chunk_mb = 1.048576\nwindow = 8"


def striped(nodes: int = WORKERS) -> Cluster:
    """Return workers that are also the store's nodes, with files in stripes over all of them."""
    return plain(nodes, 1, node=LINK, store=STRIPES)


def nfs(nodes: int = WORKERS) -> Cluster:
    """Return the same workers with one server."""
    return plain(nodes, 1, node=LINK, store='servers = "one"\nlaw = "one"')


def pipeline(nodes: int) -> Workload:
    """Return a chain of three tasks per node."""
    tasks, sizes = [], {}
    for i in range(nodes):
        names = [f"p{i}_{k}" for k in range(4)]
        sizes |= dict(zip(names, (100 * MIB, 200 * MIB, 200 * MIB, MIB), strict=True))
        for k in range(3):
            steps = [("read", names[k]), ("write", names[k + 1])]
            tasks.append(Task(f"{i}.{k}", steps, f"stage{k + 1}"))
    return _staged(tasks, sizes, [f"p{i}_3" for i in range(nodes)])


def broadcast(nodes: int) -> Workload:
    """Return one task that writes a file, and one per node that reads it."""
    steps = [("read", "in"), ("write", "db")]
    tasks = [Task("make", steps, "make")]
    tasks += [Task(f"use{i}", [("read", "db"), ("write", f"out{i}")], "use") for i in range(nodes)]
    sizes = {"in": 100 * MIB, "db": 100 * MIB} | {f"out{i}": MIB // 10 for i in range(nodes)}
    return _staged(tasks, sizes, [f"out{i}" for i in range(nodes)])


def reduce(nodes: int) -> Workload:
    """Return one task per node that writes a file, and one task that reads them all."""
    tasks = [
        Task(f"map{i}", [("read", f"in{i}"), ("write", f"out{i}")], "map") for i in range(nodes)
    ]
    reads = [("read", f"out{i}") for i in range(nodes)]
    tasks.append(Task("reduce", [*reads, ("write", "all")], "reduce"))
    sizes = {f"{way}{i}": 10 * MIB for i in range(nodes) for way in ("in", "out")}
    return _staged(tasks, sizes | {"all": 200 * MIB}, ["all"])


def scatter(nodes: int) -> Workload:
    """Return one task that writes a file, and one per node that reads a region of it."""
    region = 10 * MIB
    tasks = [Task("make", [("read", "in"), ("write", "whole")], "make")]
    for i in range(nodes):
        steps = [("read", ("whole", i * region, region)), ("write", f"out{i}")]
        tasks.append(Task(f"use{i}", steps, "use"))
    sizes = {"in": 100 * MIB, "whole": nodes * region} | {f"out{i}": MIB for i in range(nodes)}
    return _staged(tasks, sizes, [f"out{i}" for i in range(nodes)])


def _staged(tasks: list[Task], sizes: dict[str, int], results: list[str]) -> Workload:
    """Add a task that stages in the inputs, and one per result that stages it out."""
    written = {str(what) for task in tasks for kind, what in task.steps if kind == "write"}
    inputs = [("write", name) for name in sizes if name not in written]
    first = Task("stage_in", inputs, "stage-in")
    last = [Task(f"away_{name}", [("read", name)], "stage-out") for name in results]
    return workload([first, *tasks, *last], sizes)


def _hinted(work: Workload, cluster: Cluster, name: str) -> Placement:
    """Return the placement of the published hints: local files, except those set in _SPECIAL."""
    found = local(work, cluster)
    assert found.law is not None
    first = work.op_file[: work.op_begin[1]]  # staged-in files: one per node, in turn
    found.law[first] = law("node")
    found.target = np.full(work.files, -1, np.int32)
    found.target[first] = np.arange(len(first)) % cluster.count
    _SPECIAL[name](work, found)
    return found


def _many_readers(work: Workload, found: Placement) -> None:
    assert found.law is not None
    shared = _read_by_most(work)
    found.law[shared] = law("rotate")
    found.copies = np.where(np.arange(work.files) == shared, REPLICAS, 1).astype(np.int32)


def _regions(work: Workload, found: Placement) -> None:
    assert found.law is not None
    shared = _read_by_most(work)
    found.law[shared] = law("rotate")
    found.chunk = np.where(np.arange(work.files) == shared, 10 * MIB, 0).astype(np.int64)


def _to_one_node(work: Workload, found: Placement) -> None:
    assert found.law is not None and found.target is not None
    reducer = work.names.index("reduce")
    parts = work.op_file[work.op_begin[reducer] : work.op_begin[reducer + 1] - 1]
    found.law[parts] = law("group")
    found.target[parts] = 0
    found.groups = 1


def _read_by_most(work: Workload) -> int:
    return int(np.bincount(work.op_file[work.op_kind == 0]).argmax())


def _all_local(work: Workload, found: Placement) -> None:
    """Leave all files local."""


_SPECIAL: dict[str, Callable[[Workload, Placement], None]] = {
    "pipeline": _all_local, "broadcast": _many_readers, "reduce": _to_one_node, "scatter": _regions,
}  # fmt: skip  # a table


@dataclass(frozen=True)
class Pattern:
    """A benchmark: published network bytes of NFS, default and hinted, GiB (their Table 4)."""

    name: str
    make: Callable[[int], Workload]
    published: tuple[float, float, float]
    said: str  # of the speed


PATTERNS = (
    Pattern("pipeline", pipeline, (18.60, 17.60, 1.86), "10 and 2"),
    Pattern("broadcast", broadcast, (2.87, 2.03, 1.91), ""),
    Pattern("reduce", reduce, (1.13, 1.07, 0.36), "4.5 and 1.5"),
    Pattern("scatter", scatter, (0.60, 0.57, 0.27), "6 and 1"),
)  # fmt: skip  # a table


def predicted(pattern: Pattern, nodes: int = WORKERS) -> tuple[Workload, list[Prediction]]:
    """Return the workload, and its prediction under NFS, under the striped store, with hints."""
    work = pattern.make(nodes)

    def hinted(work: Workload, cluster: Cluster) -> Placement:
        return _hinted(work, cluster, pattern.name)

    cases = (
        Configuration("nfs", nfs(nodes), "default", default),
        Configuration("default", striped(nodes), "default", default),
        Configuration("hinted", striped(nodes), "hinted", hinted),
    )
    return work, predict(work, cases, runs=3)


def gib(found: Prediction) -> float:
    """Return network bytes in GiB."""
    return found.network_bytes / (1 << 30)


def between_stages(work: Workload, found: Prediction) -> float:
    """Return seconds from the end of staging in to the start of staging out."""
    own = [n for n, name in enumerate(work.type_names) if not name.startswith("stage-")]
    rows = found.outcome.types[own]
    return float(rows[:, 1].max() - rows[:, 0].min())
