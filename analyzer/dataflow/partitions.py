"""Partitions of whole lineages: the objects and accesses that are processed in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, starts_of
from tracehint.analyzer.dataflow.accesses import clip
from tracehint.analyzer.dataflow.copies import Copies, find
from tracehint.analyzer.dataflow.model import READ, WRITE, Access, Objects

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.dataflow.accesses import EpochTasks


@dataclass
class Batch:
    """Objects `low` up to `high` with their accesses; both are numbered from 0 at `low`."""

    low: int
    high: int
    objects: Objects
    access: Access
    copies: Copies

    def fill_batch(self, extents: Access) -> Batch:
        """Return the batch with these extents before its own accesses. `extents` uses the
        object numbers of the run and may be modified."""
        access = Access.concat_parts([extents, self.access]) if len(self.access) else extents
        access.obj = access.obj - self.low
        return replace(self, access=clip(access, self.objects))


@dataclass
class Partitions:
    """Division of the objects: partition i is `bounds[i]` up to `bounds[i + 1]`.

    `more` are the accesses that are not extents.
    """

    bounds: Ints
    objects: Objects
    more: Access
    copies: Copies

    def __post_init__(self) -> None:
        self._of_more = self.of_object()[self.more.obj]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def of_object(self) -> Ints:
        """Return the partition of each object."""
        return np.repeat(np.arange(len(self), dtype=np.uint16), np.diff(self.bounds))

    def frame(self, i: int) -> Batch:
        """Return partition i without extents; accesses keep the run's numbers (`fill_batch`)."""
        low, high = int(self.bounds[i]), int(self.bounds[i + 1])
        copies = self.copies
        inside = copies.take((copies.source >= low) & (copies.source < high))
        inside = Copies(inside.source - low, inside.target - low, inside.proc, inside.shift)
        more = self.more.take(self._of_more == i)
        return Batch(low, high, self.objects.part(low, high), more, inside)


ROWS = 1 << 17  # accesses of one partition, unless one path has more


def order_copies(
    extents: Accesses, more: Access, objects: Objects, engine: Bools
) -> tuple[Copies, Ints]:
    """Return the complete copies by engines, and an order of the objects in which the paths of
    copies are last (see `Objects.renumber_objects`)."""
    access = Access.concat_parts([extents.of_tasks(engine), more.take(engine[more.task])])
    copies = Copies.empty()
    if (access.op == WRITE).any():
        read = np.zeros(len(objects), bool)
        read[access.obj[access.op == READ]] = True
        everything = Access.concat_parts([extents.of_objects(read), more.take(read[more.obj])])
        copies = find(access, everything, objects)
    special = np.zeros(int(objects.lineage.max(initial=-1)) + 1, bool)
    special[objects.lineage[copies.source]] = True
    special[objects.lineage[copies.target]] = True
    late = special[objects.lineage]
    return copies, np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])


def divide(
    extents: Accesses, more: Access, objects: Objects, copies: Copies, rows: int = ROWS
) -> Partitions:
    """Divide the objects, in order, into partitions of about `rows` accesses; at most 65535.

    Objects of copies are in one partition, the last one.
    """
    count = len(objects)
    weight = 1 + extents.per_object()  # objects have a cost too
    weight += np.bincount(more.obj, minlength=count)
    first = starts_of(objects.lineage)
    before = np.cumsum(weight) - weight
    rows = max(rows, int(weight.sum()) >> 15)
    partition = before[first] // rows
    bounds = first[starts_of(partition)]
    if len(copies):
        low = min(int(copies.source.min()), int(copies.target.min()))
        low = int(first[np.searchsorted(first, low, side="right") - 1])
        bounds = np.append(bounds[bounds < low], low)
    return Partitions(np.append(bounds, count), objects, more, copies)


T = TypeVar("T")


class Execution(Protocol):
    """The extents of one bundle. All methods but `by_process` require that `look` was called."""

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> Accesses:
        """Find objects and tasks of all extents; add a note about damaged ones."""
        ...

    def rows(self) -> int:
        """Return the number of extents."""
        ...

    def last_ns(self) -> int | None:
        """Return when the last access ended, or None without any."""
        ...

    def opens(self) -> Ints:
        """Return the opens that have extents, unordered, possibly repeated or UNKNOWN."""
        ...

    def by_process(self) -> pa.Table:
        """Return the number of extents of each process epoch: columns proc, count."""
        ...


class Accesses(Protocol):
    """The valid extents: of data files, by known tasks, not damaged.

    Rows are in recording order; `seq` is the row of the bundle's table.
    """

    def of_tasks(self, chosen: Bools) -> Access:
        """Return the accesses of tasks (a mask over all tasks)."""
        ...

    def of_objects(self, chosen: Bools) -> Access:
        """Return the accesses to objects (a mask over all objects)."""
        ...

    def per_object(self) -> Ints:
        """Return the number of accesses of each object."""
        ...

    def find_touched(self) -> Bools:
        """Return which objects any extent refers to, software and damaged extents included."""
        ...

    def renumber(self, number: Ints) -> None:
        """Renumber the objects: `number` holds the new number of each old one."""
        ...

    def compute(
        self, partitions: Partitions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        """Return the result of each partition, in order; with `only`, of these partitions.

        `work` is a pure function that can be pickled: it may run in another process.
        """
        ...
