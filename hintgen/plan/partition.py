"""Cut the tasks of a run into parts that hand each other few bytes, every stage spread evenly.

After Tanaka and Tatebe, "Workflow Scheduling to Minimize Data Movement Using Multi-constraint
Graph Partitioning" (CCGrid 2012): vertices are tasks, an edge weighs the bytes handed over, every
stage is a constraint of its own. What no balanced cut can keep together is left out of it: a file,
or a task, with more neighbours in one stage than a part of that stage holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Floats
from tracehint.hintgen.plan.balance import TaskLinks, spread
from tracehint.hintgen.plan.graph import Graph
from tracehint.hintgen.plan.metis import cut

PER_NODE = 2  # tasks of a stage per node from which on it is a constraint
MAX_CONSTRAINTS = 8  # METIS balances few constraints well; the heaviest stages are taken
FEW_WAYS = ((20_000, 1), (5_000, 3))  # from so many tasks on fewer ways to cut are tried
_MEAN, _MOST = 100, 100_000  # whole-number weights of tasks: of the mean one, at most


@dataclass(frozen=True)
class CutOptions:
    """How to cut: what the fullest part may hold against its share, and whether tasks weigh
    their time or count one each."""

    imbalance: float = 1.08
    timed: bool = True
    seed: int = 1


WAYS = (
    CutOptions(1.08, True, 1), CutOptions(1.2, False, 1), CutOptions(1.08, False, 2),
    CutOptions(1.4, True, 1), CutOptions(1.08, True, 2), CutOptions(1.2, True, 2),
)  # fmt: skip  # a table


def parts_of(graph: Graph, cluster: Cluster, way: CutOptions) -> Ints:
    """The part of each task; as many parts as the cluster has nodes. Raises UnavailableError."""
    shares = shares_of(cluster)
    cost = costs(graph, cluster) if way.timed else np.ones(graph.tasks)
    size = np.bincount(graph.stage)
    constrained = _constraints(graph.stage, cost, size, len(shares))
    links = _links(graph)
    kept = links.take(~_too_many(links, graph, size, shares))
    weights = _weights(graph.stage, cost, constrained)
    part = np.zeros(graph.tasks, np.int64)  # nothing to keep together: only to spread
    if len(kept):
        allowed = [way.imbalance] * weights.shape[1]
        part = cut((kept.a, kept.b), kept.bytes, weights, shares, allowed, way.seed)
    part = _near_their_bytes(part, links, kept)
    return spread(part, graph.stage, cost, links, shares, cores_of(cluster), way.imbalance)


def ways_for(tasks: int, seed: int) -> list[CutOptions]:
    """The ways to cut that are tried; other seeds, other cuts."""
    count = next((few for many, few in FEW_WAYS if tasks >= many), len(WAYS))
    return [replace(way, seed=way.seed + len(WAYS) * seed) for way in WAYS[:count]]


def shares_of(cluster: Cluster) -> Floats:
    """What each node can do, as a share of all."""
    each = [node["cores"] * node["speed"] for node in cluster.nodes]
    power = np.repeat(each, [int(node["count"]) for node in cluster.nodes])
    return np.asarray(power / power.sum())


def cores_of(cluster: Cluster) -> Ints:
    """Processors of each node."""
    counts = [int(node["count"]) for node in cluster.nodes]
    return np.repeat([int(node["cores"]) for node in cluster.nodes], counts)


def costs(graph: Graph, cluster: Cluster) -> Floats:
    """Seconds of each task alone: computing, and its bytes over the slowest link."""
    rate = min(node["link_mbit"] * node["link_efficiency"] for node in cluster.nodes)
    moved = np.bincount(graph.reads.task, graph.reads.bytes, graph.tasks)
    moved += np.bincount(graph.writes.task, graph.writes.bytes, graph.tasks)
    return np.asarray(graph.seconds + moved / rate)


def _constraints(stage: Ints, cost: Floats, size: Ints, parts: int) -> Ints:
    """The stages that must be spread evenly, the heaviest ones where there are many."""
    large = np.flatnonzero(size >= PER_NODE * parts)
    weight = np.bincount(stage, cost)
    return np.sort(large[np.argsort(-weight[large], kind="stable")[:MAX_CONSTRAINTS]])


def _weights(stage: Ints, cost: Floats, constrained: Ints) -> Ints:
    """(tasks, constraints); without a constrained stage all tasks are one constraint."""
    mean = float(cost.mean()) or 1.0
    whole = np.clip(np.rint(cost / mean * _MEAN), 1, _MOST).astype(np.int64)
    if not len(constrained):
        return np.asarray(whole[:, None])
    return np.where(stage[:, None] == constrained[None, :], whole[:, None], 0)


def _links(graph: Graph) -> TaskLinks:
    """What tasks hand each other; readers of one input are linked to the first of them."""
    inputs = graph.reads.take(graph.writer[graph.reads.file] < 0)
    first = np.full(graph.files, -1, np.int64)
    first[inputs.file[::-1]] = inputs.task[::-1]
    head = first[inputs.file]
    other = head != inputs.task
    return TaskLinks(
        np.concatenate([graph.link_from, head[other]]),
        np.concatenate([graph.link_to, inputs.task[other]]),
        np.concatenate([graph.link_bytes, inputs.bytes[other]]),
    )


def _too_many(links: TaskLinks, graph: Graph, size: Ints, shares: Floats) -> Bools:
    """Links of a task to more tasks of one stage than the largest part of that stage holds."""
    stages = len(size)
    most = np.ceil(1.1 * size * float(shares.max()))

    def crowded(own: Ints, other: Ints) -> Bools:
        key = own * stages + graph.stage[other]
        distinct_pairs = np.unique(np.stack([key, other]), axis=1)[0]
        keys, count = np.unique(distinct_pairs, return_counts=True)
        found = count[np.searchsorted(keys, key)]
        return np.asarray((found > most[graph.stage[other]]) & (found > 1))

    if not len(links):
        return np.zeros(0, bool)
    return crowded(links.a, links.b) | crowded(links.b, links.a)


def _near_their_bytes(part: Ints, links: TaskLinks, kept: TaskLinks) -> Ints:
    """Tasks that METIS saw no link of go where most of what they take comes from."""
    seen = np.zeros(len(part), bool)
    seen[kept.a] = seen[kept.b] = True
    loose = ~seen[links.b]
    if not loose.any():
        return part
    parts = int(part.max()) + 1
    key = links.b[loose] * parts + part[links.a[loose]]
    keys, at = np.unique(key, return_inverse=True)
    weight = np.bincount(at, links.bytes[loose])
    order = np.lexsort((weight, keys // parts))
    result = part.copy()
    result[keys[order] // parts] = keys[order] % parts
    return result
