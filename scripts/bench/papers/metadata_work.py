"""Workloads of the comparison: 32 nodes over four sites, with a number of operations per node."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.predict.metadata.model import COMPUTING, LOOKUP, UPDATE, MetaWork

NODES, SITES = 32, ("eu-west", "eu-north", "us-east", "us-south")
Steps = list[tuple[int, float]]


class Builder:
    """Builder of a workload, task by task; an entry is made by the task that updates it."""

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.tasks: list[Steps] = []
        self.site: list[str] = []
        self.after: list[tuple[int, int]] = []
        self.entries = 0

    def entry(self) -> int:
        """Add an entry; return its number."""
        self.entries += 1
        return self.entries - 1

    def task(self, node: int, steps: Steps, after: tuple[int, ...] = ()) -> int:
        """Add a task on a node, after other tasks; return its number."""
        self.tasks.append(steps)
        self.site.append(SITES[node * len(SITES) // self.nodes])
        self.after += [(before, len(self.tasks) - 1) for before in after]
        return len(self.tasks) - 1

    def work(self) -> MetaWork:
        """Return the workload in the predictor's form."""
        steps = [step for task in self.tasks for step in task]
        kind = np.array([k for k, _ in steps], np.int32)
        value = np.array([v for _, v in steps])
        order = sorted(self.after)
        begin = np.searchsorted([a for a, _ in order], np.arange(len(self.tasks) + 1))
        return MetaWork(
            op_begin=np.cumsum([0, *map(len, self.tasks)]).astype(np.int64),
            op_kind=kind,
            op_entry=np.where(kind == COMPUTING, -1, value).astype(np.int32),
            op_seconds=np.where(kind == COMPUTING, value, 0.0),
            dep_begin=begin.astype(np.int64),
            dep=np.array([b for _, b in order], np.int32),
            known=np.zeros(self.entries, np.int32),
            paths=[b"run/%d" % i for i in range(self.entries)],
            site=self.site,
            recorded=False,
        )


def synthetic(operations: int, nodes: int = NODES) -> MetaWork:
    """Half of the nodes enter files; the other half look up files that may exist by then."""
    build, random = Builder(nodes), np.random.default_rng(operations)
    made = [[build.entry() for _ in range(operations)] for _ in range(nodes // 2)]
    for node in range(nodes):
        if node % 2:
            at = random.integers(0, nodes // 2, operations)
            steps = [(LOOKUP, made[w][random.integers(0, i + 1)]) for i, w in enumerate(at)]
        else:
            steps = [(UPDATE, entry) for entry in made[node // 2]]
        build.task(node, [(kind, float(entry)) for kind, entry in steps])
    return build.work()


def near_pipeline(operations: int, stages: int = 5, computing: float = 1.0) -> MetaWork:
    """Chains on single nodes: each task looks up the entries of the previous task."""
    build, each = Builder(NODES), operations // (2 * stages - 1)
    for node in range(NODES):
        last: list[int] = []
        before: tuple[int, ...] = ()
        for _ in range(stages):
            new = [build.entry() for _ in range(each)]
            steps: Steps = [(LOOKUP, entry) for entry in last]
            steps += [(COMPUTING, computing / stages), *((UPDATE, entry) for entry in new)]
            before, last = (build.task(node, steps, before),), new
    return build.work()


def montage(operations: int, computing: float = 1.0) -> MetaWork:
    """Parallel: project; differences of neighbours; one fit; background; one mosaic."""
    build, each = Builder(NODES), operations // 6
    made = [[build.entry() for _ in range(each)] for _ in range(NODES)]
    wait = (COMPUTING, computing / 3)
    project = [build.task(n, [wait, *((UPDATE, e) for e in made[n])]) for n in range(NODES)]
    diff, plane = [], []
    for n in range(NODES):
        other = (n + 1) % NODES
        plane.append(build.entry())
        read: Steps = [(LOOKUP, e) for e in made[n] + made[other]]
        steps = [*read, wait, (UPDATE, plane[-1])]
        diff.append(build.task(n, steps, (project[n], project[other])))
    fit = build.entry()
    model = build.task(0, [*((LOOKUP, e) for e in plane), (UPDATE, fit)], tuple(diff))
    flat = []
    for n in range(NODES):
        new = [build.entry() for _ in range(each)]
        read = [(LOOKUP, fit), *((LOOKUP, e) for e in made[n])]
        flat.append((build.task(n, [*read, wait, *((UPDATE, e) for e in new)], (model,)), new[0]))
    build.task(0, [(LOOKUP, entry) for _, entry in flat], tuple(task for task, _ in flat))
    return build.work()
