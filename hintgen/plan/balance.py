"""Spread every stage over the parts: METIS alone lets a star fall into one of them."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.predict.model import Floats


@dataclass(frozen=True)
class TaskLinks:
    """Bytes between two tasks; a row per link."""

    a: Ints
    b: Ints
    bytes: Ints

    def __len__(self) -> int:
        return len(self.a)

    def take(self, rows: Bools) -> TaskLinks:
        """Some of the rows."""
        return TaskLinks(self.a[rows], self.b[rows], self.bytes[rows])


@dataclass(frozen=True)
class _Neighbours:
    """The links of a task from both ends: rows begin[task] to begin[task + 1]."""

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
    """The parts with no stage beyond its share of cost times `imbalance` in any of them.

    A part may always hold one task per core. Those leave first that are least linked to their
    part; they go where they are linked most, of the parts with room.
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
    """Spread the tasks of one stage; `part` is changed."""
    parts = len(shares)
    load = np.bincount(part[tasks], cost[tasks], parts).astype(float)
    count = np.bincount(part[tasks], minlength=parts)
    most = float(cost[tasks].max())
    room = np.maximum(shares * float(load.sum()) * imbalance, most)
    over = (load > room * (1 + 1e-9)) & (count > cores)
    if not over.any():
        return
    leaving = _leaving(part, tasks[over[part[tasks]]], cost, around, room, cores)
    if not len(leaving):
        return
    np.subtract.at(load, part[leaving], cost[leaving])
    emptiest = [(load[k] / shares[k], k) for k in range(parts)]
    heapq.heapify(emptiest)
    for task in leaving[np.argsort(-cost[leaving], kind="stable")].tolist():
        goal = _best_with_room(task, part, cost[task], around, load, room)
        if goal < 0:
            while emptiest[0][0] < load[emptiest[0][1]] / shares[emptiest[0][1]] - 1e-12:
                k = emptiest[0][1]
                heapq.heapreplace(emptiest, (load[k] / shares[k], k))
            goal = emptiest[0][1]
        part[task] = goal
        load[goal] += cost[task]


def _leaving(
    part: Ints, tasks: Ints, cost: Floats, around: _Neighbours, room: Floats, cores: Ints
) -> Ints:
    """Of the tasks of parts that are too full, those that are linked least to their part."""
    bound = np.array([_bound(task, part, around) for task in tasks.tolist()])
    order = np.lexsort((tasks, -bound, part[tasks]))
    ordered = tasks[order]
    own = part[ordered]
    first = np.searchsorted(own, own)
    filled = np.cumsum(cost[ordered])
    filled = filled - (filled[first] - cost[ordered[first]])
    place = np.arange(len(own)) - first
    return ordered[(filled > room[own] * (1 + 1e-9)) & (place >= cores[own])]


def _bound(task: int, part: Ints, around: _Neighbours) -> float:
    """Bytes that link a task to its own part."""
    rows = slice(around.begin[task], around.begin[task + 1])
    return float(around.bytes[rows][part[around.other[rows]] == part[task]].sum())


def _best_with_room(
    task: int, part: Ints, cost: float, around: _Neighbours, load: Floats, room: Floats
) -> int:
    """The part with room to which a task is linked most; -1: there is none."""
    rows = slice(around.begin[task], around.begin[task + 1])
    near = part[around.other[rows]]
    free = load[near] + cost <= room[near]
    if not free.any():
        return -1
    weight = np.bincount(near[free], around.bytes[rows][free])
    return int(np.argmax(weight))
