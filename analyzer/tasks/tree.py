"""The process tree as arrays: one position per process epoch, links as positions, -1 for none.

Everything here is numpy over all epochs: a run can have millions of processes. Bundles are
untrusted: identifiers may repeat, dangle or form cycles, so walks are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools as Bools
from tracehint.analyzer.arrays import Ints as Ints
from tracehint.analyzer.arrays import column, finder, order_by, spread

if TYPE_CHECKING:
    import pyarrow as pa


NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Tree:
    """Process epochs of a bundle. All arrays have one entry per row of `processes`."""

    proc: Ints  # identifiers
    parent: Ints  # epoch that forked this one
    prev: Ints  # epoch of the same process before its exec
    next: Ints  # epoch of the same process after its exec
    head: Ints  # first epoch of the process
    start: Ints  # ns
    end: Ints  # ns; NEVER: still running
    orphan: Bools  # has a parent that is not in the bundle
    kid_order: Ints  # positions grouped by parent, each group in order of start
    kid_start: Ints  # group of position p: kid_order[kid_start[p]:kid_start[p + 1]]

    @property
    def up(self) -> Ints:
        """The previous epoch of the same process, else the one that forked it."""
        return np.where(self.prev >= 0, self.prev, self.parent)

    def kids(self, of: Ints) -> tuple[Ints, Ints]:
        """Return the epochs forked by each of `of`, and for each its position in `of`."""
        counts = self.kid_start[of + 1] - self.kid_start[of]
        owner = np.repeat(np.arange(len(of)), counts)
        return self.kid_order[spread(self.kid_start[of], counts)], owner


def build_tree(processes: pa.Table) -> Tree:
    """Build the tree of a `processes` table."""
    proc = column(processes, "proc", -1)
    start = column(processes, "start_ns", 0)
    end = column(processes, "end_ns", NEVER)
    find = finder(proc)
    parent_id = column(processes, "parent", -1)
    prev = find(column(processes, "prev", -1))
    n = len(proc)
    own = np.arange(n)
    prev[prev == own] = -1
    following = np.full(n, -1, np.int64)
    known = np.flatnonzero(prev >= 0)[::-1]
    following[prev[known]] = known
    # a second epoch that claims the same predecessor is treated as forked by it
    forked = (prev >= 0) & (following[np.maximum(prev, 0)] != own)
    parent = np.where(prev >= 0, np.where(forked, prev, -1), find(parent_id))
    prev[forked] = -1
    parent[parent == own] = -1
    kids = np.flatnonzero(parent >= 0)
    order = kids[order_by(parent[kids], start[kids])]
    kid_start = np.searchsorted(parent[order], np.arange(n + 1))
    return Tree(
        proc,
        parent,
        prev,
        following,
        jump(prev),
        start,
        end,
        (parent_id >= 0) & (parent < 0) & (prev < 0),
        order,
        kid_start,
    )


def jump(link: Ints, stop: Bools | None = None) -> Ints:
    """Follow `link` from each position to the last one, or the first with `stop` set.

    Pointer jumping: log2(n) passes over the array; a walk on a cycle ends somewhere on it.
    """
    n = len(link)
    own = np.arange(n)
    goal = np.where(link >= 0, link, own)
    if stop is not None:
        goal = np.where(stop, own, goal)
    for _ in range(max(1, n.bit_length())):
        further = goal[goal]
        if np.array_equal(further, goal):
            break
        goal = further
    return goal


# A job is a task; a driver and a helper are engine processes.
JOB, DRIVER, HELPER = range(3)


@dataclass
class Units:
    """Table of units. Positions refer to epochs of the tree, units to this table.

    head: first epoch; role: JOB, DRIVER, HELPER; engine: code of the engine that it is, or
    whose job or helper it is; driver: unit of the engine process above, -1 for a root; subshell: a
    forked copy of a shell that is the whole job; engine_epoch: the epoch that is the engine.
    """

    head: Ints
    role: Ints
    engine: Ints
    driver: Ints
    subshell: Bools
    engine_epoch: Ints

    def __len__(self) -> int:
        return len(self.head)


@dataclass
class Batches:
    """Collects units level by level."""

    count: int = 0
    parts: list[tuple[Ints, ...]] = field(default_factory=list)

    def add(
        self, head: Ints, role: Ints, engine: Ints, driver: Ints, subshell: Bools, epoch: Ints
    ) -> Ints:
        """Add units; return their numbers."""
        numbers = np.arange(self.count, self.count + len(head))
        self.count += len(head)
        self.parts.append((head, role, engine, driver, subshell.astype(np.int64), epoch))
        return numbers

    def units(self) -> Units:
        """Return the table of all units."""
        if not self.parts:
            none = np.empty(0, np.int64)
            return Units(none, none, none, none, none.astype(bool), none)
        columns = [np.concatenate(c) for c in zip(*self.parts, strict=True)]
        return Units(columns[0], columns[1], columns[2], columns[3], columns[4] > 0, columns[5])


def unit_of_epochs(tree: Tree, owner: Ints) -> Ints:
    """Return per epoch its own unit or that of the nearest epoch above; -1 for none."""
    nearest = jump(tree.up, owner >= 0)
    return owner[nearest]


@dataclass
class Grouping:
    """The unit that represents each epoch's task, and per unit whether that task is an engine's."""

    of: Ints
    engine: Bools
    units: Units
    unit_of: Ints


@dataclass
class Keys:
    """One entry per task: the unit that represents it, or its given name, or its batch job."""

    of: Ints  # per epoch
    unit: Ints
    name: Ints
    job: Ints
    engine: Bools
