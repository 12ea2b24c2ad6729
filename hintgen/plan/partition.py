"""Partition the tasks of a run into parts that exchange few bytes, each stage spread evenly.

After Tanaka and Tatebe, "Workflow Scheduling to Minimize Data Movement Using Multi-constraint
Graph Partitioning" (CCGrid 2012): vertices are tasks, edge weights are the bytes transferred,
each stage is a constraint. Links that no balanced cut can keep are omitted: those of a file or
task with more neighbours in one stage than the largest part of that stage holds.
"""

from __future__ import annotations

import heapq
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.dataflow.model import Rows
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Floats
from tracehint.hintgen.plan.graph import Graph


@dataclass
class TaskLinks(Rows):
    """Bytes between two tasks, one row per link."""

    a: Ints
    b: Ints
    bytes: Ints


@dataclass(frozen=True)
class _Neighbours:
    """Links by task, each stored at both ends: rows begin[task] to begin[task + 1]."""

    begin: Ints
    other: Ints
    bytes: Ints


def spread(
    part: Ints,
    stage: Ints,
    cost: Floats,
    links: TaskLinks,
    shares: Floats,
    cores: Ints,
    imbalance: float,
) -> Ints:
    """Return the parts after moving tasks until no stage exceeds its share of cost times
    `imbalance` in any part. A part may always hold one task per core. Tasks with the fewest bytes
    in their part leave first, for the part with free capacity that has most of their bytes.
    """
    part = part.copy()
    around = _neighbours(links, len(part))
    order = np.argsort(stage, kind="stable")
    ends = np.searchsorted(stage[order], np.arange(int(stage.max(initial=0)) + 2))
    for first, last in pairwise(ends):
        _spread_stage(part, order[first:last], cost, around, shares, cores, imbalance)
    return part


def _neighbours(links: TaskLinks, tasks: int) -> _Neighbours:
    own, other = np.concatenate([links.a, links.b]), np.concatenate([links.b, links.a])
    moved = np.concatenate([links.bytes, links.bytes])
    order = np.argsort(own, kind="stable")
    begin = np.searchsorted(own[order], np.arange(tasks + 1))
    return _Neighbours(begin, other[order], moved[order])


def _spread_stage(
    part: Ints,
    tasks: Ints,
    cost: Floats,
    around: _Neighbours,
    shares: Floats,
    cores: Ints,
    imbalance: float,
) -> None:
    """Spread the tasks of one stage; modifies `part`."""
    parts = len(shares)
    load = np.bincount(part[tasks], cost[tasks], parts).astype(float)
    count = np.bincount(part[tasks], minlength=parts)
    most = float(cost[tasks].max())
    room = np.maximum(shares * float(load.sum()) * imbalance, most)
    over = (load > room * (1 + 1e-9)) & (count > cores)
    if not over.any():
        return
    leaving = _select_leaving(part, tasks[over[part[tasks]]], cost, around, room, cores)
    if not len(leaving):
        return
    np.subtract.at(load, part[leaving], cost[leaving])
    emptiest = [(load[k] / shares[k], k) for k in range(parts)]
    heapq.heapify(emptiest)
    for task in leaving[np.argsort(-cost[leaving], kind="stable")].tolist():
        goal = _best_free_part(task, part, cost[task], around, load, room)
        if goal < 0:
            while emptiest[0][0] < load[emptiest[0][1]] / shares[emptiest[0][1]] - 1e-12:
                k = emptiest[0][1]
                heapq.heapreplace(emptiest, (load[k] / shares[k], k))
            goal = emptiest[0][1]
        part[task] = goal
        load[goal] += cost[task]


def _select_leaving(
    part: Ints, tasks: Ints, cost: Floats, around: _Neighbours, room: Floats, cores: Ints
) -> Ints:
    """Select the tasks that exceed the capacity of their part, least linked to it first."""
    bound = np.array([_bytes_to_own_part(task, part, around) for task in tasks.tolist()])
    order = np.lexsort((tasks, -bound, part[tasks]))
    ordered = tasks[order]
    own = part[ordered]
    first = np.searchsorted(own, own)
    filled = np.cumsum(cost[ordered])
    filled = filled - (filled[first] - cost[ordered[first]])
    place = np.arange(len(own)) - first
    return ordered[(filled > room[own] * (1 + 1e-9)) & (place >= cores[own])]


def _bytes_to_own_part(task: int, part: Ints, around: _Neighbours) -> float:
    """Return the bytes that link a task to its own part."""
    rows = slice(around.begin[task], around.begin[task + 1])
    return float(around.bytes[rows][part[around.other[rows]] == part[task]].sum())


def _best_free_part(
    task: int, part: Ints, cost: float, around: _Neighbours, load: Floats, room: Floats
) -> int:
    """Return the part with free capacity that a task is linked to most; -1: none."""
    rows = slice(around.begin[task], around.begin[task + 1])
    near = part[around.other[rows]]
    free = load[near] + cost <= room[near]
    if not free.any():
        return -1
    weight = np.bincount(near[free], around.bytes[rows][free])
    return int(np.argmax(weight))


class UnavailableError(Exception):
    """A strategy cannot be tried here; the message contains the reason and the remedy."""


PROGRAM = "gpmetis"
MAX_SECONDS = 120
_MAX_SUM = (1 << 30) - 1  # the sum of all edge weights must fit into 31 bits


def find_metis() -> tuple[Path, dict[str, str]]:
    """Return the path of `gpmetis` and its environment. Raises UnavailableError."""
    from importlib import metadata

    try:
        files = metadata.files("cmeel-metis") or []
    except metadata.PackageNotFoundError:
        files = []
    for entry in files:
        if entry.name == PROGRAM and entry.parent.name == "bin" and "cmeel.prefix" in str(entry):
            program = Path(str(entry.locate())).resolve()
            if program.is_file():
                libraries = str(program.parent.parent / "lib")
                return program, {**os.environ, "LD_LIBRARY_PATH": libraries}
    found = shutil.which(PROGRAM)
    if found:
        return Path(found), dict(os.environ)
    raise UnavailableError(
        f"{PROGRAM} of METIS is missing: pip install cmeel-metis, or Debian's package metis"
    )


def cut(
    ends: tuple[Ints, Ints],
    bytes_: Ints,
    weights: Ints,
    shares: Floats,
    imbalance: Sequence[float],
    seed: int,
) -> Ints:
    """Return the part of each vertex.

    `ends`: the two vertices of each edge; `bytes_`: the cost of cutting each edge.
    `weights`: (vertices, constraints), integers from 0. `shares`: target share of each part, sum 1.
    `imbalance`: by constraint, the maximum load of a part relative to its share.
    Raises UnavailableError if METIS is missing or fails.
    """
    program, environment = find_metis()
    parts = len(shares)
    with tempfile.TemporaryDirectory(prefix="tracehint-plan-") as folder:
        graph = Path(folder) / "graph"
        graph.write_bytes(_graph_text(ends, bytes_, weights))
        options = [f"-seed={seed}", f"-ubvec={' '.join(f'{u:.3f}' for u in imbalance)}"]
        if np.ptp(shares) > 1e-9:
            (Path(folder) / "shares").write_text(_shares_text(shares, weights.shape[1]))
            options.append(f"-tpwgts={Path(folder) / 'shares'}")
        words = [str(program), *options, str(graph), str(parts)]
        part = _run(words, environment, Path(folder) / f"graph.part.{parts}")
    if len(part) != len(weights) or part.min() < 0 or part.max() >= parts:
        raise UnavailableError("METIS answered something else than a part per task")
    return part


def _run(words: list[str], environment: dict[str, str], result: Path) -> Ints:
    """Run METIS and return the integers it writes to `result`. Raises UnavailableError."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            check=False,
            env=environment,
            timeout=MAX_SECONDS,
            cwd=result.parent,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"METIS took more than {MAX_SECONDS} s") from None
    if done.returncode or not result.is_file():
        message = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-200:]
        raise UnavailableError(f"METIS gave up: {message or done.returncode}")
    return np.array(result.read_bytes().split(), np.int64)


def _graph_text(ends: tuple[Ints, Ints], bytes_: Ints, weights: Ints) -> bytes:
    """Serialise the graph for METIS: per vertex its weights, then neighbours and edge weights."""
    count, constraints = weights.shape
    a, b = np.concatenate(ends), np.concatenate(ends[::-1])
    cost = np.concatenate([bytes_, bytes_])
    keep = a != b
    a, b, cost = a[keep], b[keep], cost[keep]
    order = order_by(a, b)
    a, b, cost = a[order], b[order], cost[order]
    first = starts_of(a, b)
    if len(first):
        cost = np.add.reduceat(cost.astype(np.float64), first)
        a, b = a[first], b[first]
        cost = np.maximum(1, np.rint(cost * min(1.0, _MAX_SUM / max(1.0, float(cost.sum())))))
    pairs = np.column_stack([b + 1, cost.astype(np.int64)]) if len(a) else np.zeros((0, 2), int)
    begin = np.searchsorted(a, np.arange(count + 1))
    words = pairs.ravel().astype("S").astype(object)
    own = weights.astype("S").astype(object)
    lines = [f"{count} {len(a) // 2} 011 {constraints}".encode()]
    lines += [b" ".join([*own[i], *words[2 * begin[i] : 2 * begin[i + 1]]]) for i in range(count)]
    return b"\n".join(lines) + b"\n"


def _shares_text(shares: Floats, constraints: int) -> str:
    return "".join(
        f"{part} : {c} = {share:.6f}\n"
        for part, share in enumerate(shares)
        for c in range(constraints)
    )


PER_NODE = 2  # minimum number of tasks per node of a stage that is a constraint
MAX_CONSTRAINTS = 8  # METIS balances only few constraints well; the heaviest stages are used
FEW_WAYS = ((20_000, 1), (5_000, 3))  # (minimum number of tasks, number of cuts tried)
_MEAN, _MOST = 100, 100_000  # integer weight of the mean task, maximum weight


@dataclass(frozen=True)
class CutOptions:
    """Options of a cut: maximum load of a part relative to its share, and whether tasks weigh
    their time (`timed`) or 1 each."""

    imbalance: float = 1.08
    timed: bool = True
    seed: int = 1


WAYS = (
    CutOptions(1.08, True, 1),
    CutOptions(1.2, False, 1),
    CutOptions(1.08, False, 2),
    CutOptions(1.4, True, 1),
    CutOptions(1.08, True, 2),
    CutOptions(1.2, True, 2),
)


def parts_of(graph: Graph, cluster: Cluster, way: CutOptions) -> Ints:
    """Return the part of each task, with one part per node. Raises UnavailableError."""
    shares = shares_of(cluster)
    cost = costs(graph, cluster) if way.timed else np.ones(graph.tasks)
    size = np.bincount(graph.stage)
    constrained = _constraints(graph.stage, cost, size, len(shares))
    links = _links(graph)
    kept = links.take(~_find_crowded(links, graph, size, shares))
    weights = _weights(graph.stage, cost, constrained)
    part = np.zeros(graph.tasks, np.int64)  # without links, tasks are only spread
    if len(kept):
        allowed = [way.imbalance] * weights.shape[1]
        part = cut((kept.a, kept.b), kept.bytes, weights, shares, allowed, way.seed)
    part = _place_unlinked_tasks(part, links, kept)
    return spread(part, graph.stage, cost, links, shares, cores_of(cluster), way.imbalance)


def ways_for(tasks: int, seed: int) -> list[CutOptions]:
    """Return the cut options to try for this number of tasks, with seeds derived from `seed`."""
    count = next((few for many, few in FEW_WAYS if tasks >= many), len(WAYS))
    return [replace(way, seed=way.seed + len(WAYS) * seed) for way in WAYS[:count]]


def shares_of(cluster: Cluster) -> Floats:
    """Return the compute power (cores times speed) of each node as a share of the total."""
    each = [node["cores"] * node["speed"] for node in cluster.nodes]
    power = np.repeat(each, [int(node["count"]) for node in cluster.nodes])
    return np.asarray(power / power.sum())


def cores_of(cluster: Cluster) -> Ints:
    """Return the number of processors of each node."""
    counts = [int(node["count"]) for node in cluster.nodes]
    return np.repeat([int(node["cores"]) for node in cluster.nodes], counts)


def costs(graph: Graph, cluster: Cluster) -> Floats:
    """Return the seconds of each task alone: computing plus its bytes over the slowest link."""
    rate = min(node["link_mbit"] * node["link_efficiency"] for node in cluster.nodes)
    moved = np.bincount(graph.reads.task, graph.reads.bytes, graph.tasks)
    moved = moved + np.bincount(graph.writes.task, graph.writes.bytes, graph.tasks)
    return np.asarray(graph.seconds + moved / rate)


def _constraints(stage: Ints, cost: Floats, size: Ints, parts: int) -> Ints:
    """Return the stages to spread evenly: those with enough tasks, at most MAX_CONSTRAINTS."""
    large = np.flatnonzero(size >= PER_NODE * parts)
    weight = np.bincount(stage, cost)
    return np.sort(large[np.argsort(-weight[large], kind="stable")[:MAX_CONSTRAINTS]])


def _weights(stage: Ints, cost: Floats, constrained: Ints) -> Ints:
    """Return task weights (tasks, constraints); one constraint of all tasks if none is given."""
    mean = float(cost.mean()) or 1.0
    whole = np.clip(np.rint(cost / mean * _MEAN), 1, _MOST).astype(np.int64)
    if not len(constrained):
        return np.asarray(whole[:, None])
    return np.where(stage[:, None] == constrained[None, :], whole[:, None], 0)


def _links(graph: Graph) -> TaskLinks:
    """Return the links between tasks; the readers of an input are linked to its first reader."""
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


def _find_crowded(links: TaskLinks, graph: Graph, size: Ints, shares: Floats) -> Bools:
    """Return a mask of links of a task to more tasks of a stage than the largest part may hold."""
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


def _place_unlinked_tasks(part: Ints, links: TaskLinks, kept: TaskLinks) -> Ints:
    """Move tasks whose links METIS did not get to the part that most of their input comes from."""
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
