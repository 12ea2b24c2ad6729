"""Groups of files around one task, chains of pipeline files, cycles of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import Ints, column, distinct, order_by, starts_of
from tracehint.analyzer.patterns.rows import (
    ROLES,
    UNKNOWN,
    Bools,
    Facts,
    Floats,
    Groups,
    KeptEdges,
    Labels,
    Rows,
    Single,
    code,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Options


@dataclass
class Around(Rows):
    """Groups, reduces first, then by task; numbered from 0 here and from 1 in table `groups`."""

    pattern: Ints
    task: Ints
    files: Ints  # number of files
    partners: Ints  # number of producers (reduce) or consumers (distribute)
    bytes: Ints
    share: Floats  # reduce: share of `bytes` in the task's intermediate input; distribute: 1
    largest: Ints  # bytes of the largest partner
    spread: Floats  # coefficient of variation of bytes per consumer, NaN for a reduce


def find_groups(
    single: Single, task_reads: Floats, lineage: Ints, options: Options
) -> tuple[Around, Labels]:
    """Find the groups and the labels of their files; `lineage`: path number of each version."""
    least = max(options.reduce_min_share, 1e-9)
    tasks = len(task_reads)
    reduces = _reduces(single, task_reads, tasks, least)
    reduces = reduces.take(_several(single.consumer, lineage[single.file], tasks)[reduces.task])
    alone = single.take(single.alone)
    distributes = _distributes(alone, tasks)
    several = _several(alone.producer, lineage[alone.file], tasks)
    distributes = distributes.take(several[distributes.task])
    around = Around.concat_parts([reduces, distributes])
    of_task = np.full(tasks, UNKNOWN, np.int64)
    of_task[reduces.task] = np.arange(len(reduces))
    order = order_by(single.file)
    once = order[starts_of(single.file[order])]
    labels = [_labels(single.file[once], of_task[single.consumer[once]], "reduce")]
    of_task = np.full(tasks, UNKNOWN, np.int64)
    of_task[distributes.task] = len(reduces) + np.arange(len(distributes))
    labels.append(_labels(alone.file, of_task[alone.producer], "distribute"))
    labels[0].near = np.minimum(1, 0.5 * around.share[labels[0].group] / least)
    return around, Labels.concat_parts(labels)


def _several(task: Ints, lineage: Ints, tasks: int) -> Bools:
    """Whether each task has files of at least two paths."""
    low, high = np.full(tasks, np.iinfo(np.int64).max), np.full(tasks, -1, np.int64)
    np.minimum.at(low, task, lineage)
    np.maximum.at(high, task, lineage)
    return np.asarray(low < high)


def _labels(file: Ints, group: Ints, pattern: str) -> Labels:
    file, group = file[group >= 0], group[group >= 0]
    return Labels(file, np.full(len(file), code(pattern)), group, np.ones(len(file)))


def _reduces(single: Single, task_reads: Floats, tasks: int, least: float) -> Around:
    """Find tasks that are the only reader of several files from several producers."""
    order = order_by(single.consumer, single.file)
    first = order[starts_of(single.consumer[order], single.file[order])]
    task = single.consumer[first]
    files = np.bincount(task, minlength=tasks)
    amount = _sum(task, single.u[first], tasks)
    order = order_by(single.consumer, single.producer)
    task, other = single.consumer[order], single.producer[order]
    first = starts_of(task, other)
    fed = np.add.reduceat(single.fed[order], first) if len(first) else first
    feeds = Groups(task[first], tasks)
    largest, partners = feeds.high(fed, 0), feeds.size
    found = (files >= 2) & (partners >= 2) & (amount >= least * task_reads)
    at = np.flatnonzero(found)
    amount, total = amount[at], task_reads[at]
    return Around(
        np.full(len(at), code("reduce")),
        at,
        files[at],
        partners[at],
        amount,
        np.where(total > 0, amount / np.where(total > 0, total, 1), 1.0),
        np.where(amount > 0, largest[at], 0),
        np.full(len(at), np.nan),
    )


def _distributes(alone: Single, tasks: int) -> Around:
    """Find tasks whose files have one reader each and at least two readers in total."""
    order = order_by(alone.producer, alone.consumer)
    task, other = alone.producer[order], alone.consumer[order]
    first = starts_of(task, other)
    amount = np.add.reduceat(alone.u[order], first) if len(first) else first
    files = np.bincount(alone.producer, minlength=tasks)
    by_task = Groups(task[first], tasks)
    at = np.flatnonzero(by_task.size >= 2)
    partners, total = by_task.size[at], by_task.sum(amount)[at]
    off = amount - _mean(by_task, amount)[task[first]]
    deviation = np.sqrt(by_task.sum(off * off)[at] / partners)
    mean = total / partners
    return Around(
        np.full(len(at), code("distribute")),
        at,
        files[at],
        partners,
        total,
        np.ones(len(at)),
        by_task.high(amount, 0)[at],
        np.where(total > 0, deviation / np.where(total > 0, mean, 1), 0.0),
    )


def _mean(groups: Groups, values: Any) -> Floats:
    return np.asarray(groups.sum(values) / np.maximum(groups.size, 1))


def _sum(key: Ints, values: Ints, count: int) -> Ints:
    """Return exact integer sums per key; `key` is sorted."""
    return np.asarray(Groups(key, count).sum(values), np.int64)


def number_chains(piped: Single) -> tuple[Ints, Ints]:
    """Return position (from 1) and length of the chain of each pipeline file.

    `piped`: pipeline files with the producer and the consumer of each. Parallel files between the
    same two tasks form one step.
    """
    order = order_by(piped.producer, piped.consumer)
    first = starts_of(piped.producer[order], piped.consumer[order])
    if not len(first):
        return order, order
    pair = np.empty(len(order), np.int64)
    pair[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
    p, c = piped.producer[order][first], piped.consumer[order][first]
    tasks = int(max(p.max(), c.max())) + 1
    ins, outs = np.bincount(c, minlength=tasks), np.bincount(p, minlength=tasks)
    out = np.full(tasks, UNKNOWN, np.int64)
    out[p] = np.arange(len(p))
    after = np.where((ins[c] == 1) & (outs[c] == 1), out[c], UNKNOWN)
    position, length = find_chain_positions(after)
    return position[pair], length[pair]


def find_chain_positions(after: Any) -> tuple[Any, Any]:
    """Return position (from 1) and length of the chain of each element.

    `after[k]` is the element that follows k, or -1; no element follows two others. Cycles
    cannot occur (they are concurrently shared); positions in a cycle would be meaningless.
    """
    count = len(after)
    before = np.full(count, -1, np.int64)
    linked = np.flatnonzero(after >= 0)
    before[after[linked]] = linked

    def distance(step: Any) -> Any:
        # Pointer doubling: hops to the end of the chain in log2(length) rounds.
        hops, jump = (step >= 0).astype(np.int64), step.copy()
        for _ in range(64):
            active = np.flatnonzero(jump >= 0)
            if not len(active):
                break
            target = jump[active]
            hops[active] += hops[target]
            jump[active] = jump[target]
        return hops

    ahead, behind = distance(after), distance(before)
    return behind + 1, behind + ahead + 1


_PEEL_ROUNDS = 64


@dataclass
class SharedFiles:
    """Per file: whether it is concurrently shared, the number of tasks in its cycle (UNKNOWN: it
    is on no cycle found here), and whether a cycle is the reason."""

    file: Bools
    tasks: Ints
    cycle: Bools


def components(pairs: Any) -> Any:
    """Return the strongly connected components with at least two tasks.

    `pairs` is an int64 array of shape (edges, 2); the result is an int64 array of shape
    (members, 2): task, component. Tasks without predecessors or successors are removed first,
    so that the search is limited to the neighbourhood of the cycles.
    """
    for _ in range(_PEEL_ROUNDS):
        keep = np.isin(pairs[:, 0], pairs[:, 1]) & np.isin(pairs[:, 1], pairs[:, 0])
        if keep.all():
            break
        pairs = pairs[keep]
    if not len(pairs):
        return np.empty((0, 2), np.int64)
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(pairs.tolist())
    found = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    rows = [(task, k) for k, members in enumerate(found) for task in members]
    return np.array(rows, np.int64).reshape(-1, 2)


def find_cycles(
    files: pa.Table, facts: Facts, links: KeptEdges, tasks: int, options: Options, *, backward: bool
) -> SharedFiles:
    """Find concurrently shared files. `backward`: an edge points back in time; without one (most
    runs: producers start first) there are no cycles and the search is skipped."""
    count = len(facts)
    shared = SharedFiles(np.zeros(count, bool), np.full(count, UNKNOWN), np.zeros(count, bool))
    if backward:
        pairs = distinct(links.producer.astype(np.int64) * tasks + links.consumer)
        members = components(np.column_stack(np.divmod(pairs, tasks)))
        _mark_cycles(shared, links, members, tasks)
    many = _too_many_versions(files, facts, options.max_versions)
    marked = column(files, "concurrent") == 1
    more = (marked | many) & (facts.role != ROLES.index("software")) & (facts.role >= 0)
    more &= ~shared.file
    shared.file |= more
    shared.cycle |= more & facts.both_ways
    return shared


def _mark_cycles(shared: SharedFiles, links: KeptEdges, members: Ints, tasks: int) -> None:
    """Mark the files of the edges inside a component."""
    of_task = np.full(tasks, UNKNOWN, np.int64)
    of_task[members[:, 0]] = members[:, 1]
    size = np.bincount(members[:, 1])
    component = of_task[links.producer]
    inside = (component != UNKNOWN) & (component == of_task[links.consumer])
    at = links.file[inside]
    np.maximum.at(shared.tasks, at, size[component[inside]])
    shared.file[at] = shared.cycle[at] = True


def _too_many_versions(files: pa.Table, facts: Facts, most: int) -> Bools:
    """Whether the path of each file has more than `most` versions; software is not counted."""
    lineage = column(files, "lineage")
    counts = (facts.role >= 0) & (facts.role != ROLES.index("software"))
    if not len(lineage):
        return np.asarray(counts, bool)
    order = np.argsort(lineage, kind="stable")
    new = np.ones(len(lineage), bool)
    new[1:] = lineage[order][1:] != lineage[order][:-1]
    number = np.empty(len(lineage), np.int64)
    number[order] = np.cumsum(new) - 1
    versions = np.bincount(number[counts], minlength=len(order))
    return np.asarray(versions[number] > most, bool)
