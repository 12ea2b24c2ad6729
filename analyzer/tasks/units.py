"""Units: what the walk over the process tree finds, one per engine process and per job."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tracehint.analyzer.tasks.tree import Bools, Ints, Tree, jump

# A job is a task; a driver and a helper are engine processes.
JOB, DRIVER, HELPER = range(3)


@dataclass
class Units:
    """Columns over units. Positions refer to epochs of the tree, units to this table.

    head: first epoch; role: JOB, DRIVER, HELPER; engine: code of the engine that it is a job or
    helper of, or that it is; driver: unit of the engine process above, -1 for a root; subshell: a
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
        """Add units; returns their numbers."""
        numbers = np.arange(self.count, self.count + len(head))
        self.count += len(head)
        self.parts.append((head, role, engine, driver, subshell.astype(np.int64), epoch))
        return numbers

    def units(self) -> Units:
        """The table of all units."""
        if not self.parts:
            none = np.empty(0, np.int64)
            return Units(none, none, none, none, none.astype(bool), none)
        columns = [np.concatenate(c) for c in zip(*self.parts, strict=True)]
        return Units(columns[0], columns[1], columns[2], columns[3], columns[4] > 0, columns[5])


def unit_of_epochs(tree: Tree, owner: Ints) -> Ints:
    """Per epoch the unit that it belongs to: of itself or of the nearest epoch above; -1: none."""
    nearest = jump(tree.up, owner >= 0)
    return owner[nearest]
