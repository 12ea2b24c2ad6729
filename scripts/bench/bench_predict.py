"""Speed and memory of the prediction engine; `make bench-predict`.

A layered graph in which each task reads two files of 40 MB of the previous layer, computes, and
writes one. Reports processor seconds of the engine, which depend little on other load.
"""

from __future__ import annotations

import resource

import numpy as np

from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE, Workload, default
from tracehint.analyzer.predict.simulator import Scenario, build, simulate

SIZE = 40_000_000
# tasks, nodes, tasks per layer, megabytes per chunk, chunks at a time, goal in seconds
CASES = (
    (50_000, 20, 400, 64, 1, 1.0), (50_000, 20, 400, 1, 20, 2.0),
    (100_000, 100, 800, 64, 1, 5.0), (100_000, 100, 800, 1, 100, 5.0),
    (100_000, 1000, 8000, 64, 1, 30.0), (100_000, 1000, 8000, 1, 1000, 30.0),
    (1_000_000, 100, 1_000_000, 64, 1, None),
)  # fmt: skip  # a table
CLUSTER = """
base = "moosefs"
[nodes]
count = {nodes}
cores = 4
disk_read_mb_s = 500
disk_write_mb_s = 300
[store]
chunk_mb = {chunk}
window = {window}
"""


def layered(tasks: int, layer: int) -> Workload:
    """Make the graph, with array operations."""
    random = np.random.default_rng(1)
    number = np.arange(tasks)
    deep = number >= layer
    before = (number // layer - 1)[:, None] * layer + random.integers(0, layer, (tasks, 2))
    reads = np.where(deep[:, None], before, (tasks + number % 50)[:, None])
    kinds = np.tile([READ, READ, COMPUTE, WRITE], (tasks, 1))
    files = np.column_stack([reads, np.full(tasks, -1), number])
    moved = np.where(kinds == COMPUTE, 0, SIZE).ravel()
    seconds = np.where(kinds == COMPUTE, random.uniform(1, 5, (tasks, 1)), 0.0)
    pairs = np.column_stack([before[deep].ravel(), np.repeat(number[deep], 2)])
    pairs = np.unique(pairs, axis=0)
    return Workload(
        task_id=number, names=[""] * tasks, type=np.zeros(tasks, np.int32), type_names=["task"],
        cores=np.ones(tasks, np.int32), op_begin=np.arange(tasks + 1) * 4,
        op_kind=kinds.ravel().astype(np.int32), op_file=files.ravel().astype(np.int32),
        op_start=np.zeros(4 * tasks, np.int64), op_length=moved, op_bytes=moved,
        op_seconds=seconds.ravel(), busy=np.ones(tasks),
        dep_begin=np.searchsorted(pairs[:, 0], np.arange(tasks + 1)),
        dep=pairs[:, 1].astype(np.int32), size=np.full(tasks + 50, SIZE),
        produced=np.repeat(np.array([1, 0], np.int32), [tasks, 50]),
        file_id=np.arange(tasks + 50),
    )  # fmt: skip  # a table


def main() -> None:
    """Print one line per case."""
    for tasks, nodes, layer, chunk, window, goal in CASES:
        work = layered(tasks, layer)
        text = CLUSTER.format(nodes=nodes, chunk=chunk, window=window)
        cluster = parse_cluster(text, "bench.toml")
        scenario = Scenario(build(cluster, 1), default(work, cluster))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        simulate(work, [scenario], 1)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wanted = f"goal {goal:g} s" if goal else "no goal"
        print(
            f"{tasks:,} tasks, {nodes} nodes, chunks of {chunk} MB: {spent:.2f} s ({wanted}), "
            f"{tasks / spent:,.0f} tasks/s; most memory so far {after.ru_maxrss / 1e6:.2f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
