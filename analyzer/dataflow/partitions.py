"""A partition of whole lineages: the objects and accesses that one step of the work sees."""

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
    """Objects `low` up to `high` with their accesses; both numbered from 0 at `low`."""

    low: int
    high: int
    objects: Objects
    access: Access
    copies: Copies

    def fill_batch(self, extents: Access) -> Batch:
        """The batch with these accesses (objects numbered as in the run; given away) before its
        own."""
        access = Access.concat_parts([extents, self.access]) if len(self.access) else extents
        access.obj = access.obj - self.low
        return replace(self, access=clip(access, self.objects))


@dataclass
class Partitions:
    """How the objects are divided: partition i are those from `bounds[i]` up to `bounds[i + 1]`.

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
        """The partition of each object."""
        return np.repeat(np.arange(len(self), dtype=np.uint16), np.diff(self.bounds))

    def frame(self, i: int) -> Batch:
        """Partition i without extents; its accesses keep the numbers of the run (`fill_batch`)."""
        low, high = int(self.bounds[i]), int(self.bounds[i + 1])
        copies = self.copies
        inside = copies.take((copies.source >= low) & (copies.source < high))
        inside = Copies(inside.source - low, inside.target - low, inside.proc, inside.shift)
        more = self.more.take(self._of_more == i)
        return Batch(low, high, self.objects.part(low, high), more, inside)


if TYPE_CHECKING:
    pass

ROWS = 1 << 17  # accesses of one partition, unless one path has more


def keep_together(
    extents: Accesses, more: Access, objects: Objects, engine: Bools
) -> tuple[Copies, Ints]:
    """Complete copies by engines, and the order of the objects that puts the paths last that
    they concern (see `Objects.reordered`)."""
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
    """Partitions of about `rows` accesses, in the order of the objects; at most 65535.

    Objects that copies concern are in one partition, the last one.
    """
    count = len(objects)
    weight = 1 + extents.per_object()  # objects cost something too
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
    """The extents of one bundle. All but `by_process` is known once `look` was called."""

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> Accesses:
        """Find objects and tasks of all extents; notes how many were damaged."""
        ...

    def rows(self) -> int:
        """Number of extents."""
        ...

    def last_ns(self) -> int | None:
        """When the last access ended; None without any."""
        ...

    def opens(self) -> Ints:
        """Opens that have extents, in any order, perhaps repeated; may hold UNKNOWN."""
        ...

    def by_process(self) -> pa.Table:
        """Columns proc, count: extents of each process epoch."""
        ...


class Accesses(Protocol):
    """The extents that count: of data files, by known tasks, not damaged.

    Rows come in the order of recording; `seq` is the row of the bundle's table.
    """

    def of_tasks(self, chosen: Bools) -> Access:
        """The accesses of tasks (a mask over all tasks)."""
        ...

    def of_objects(self, chosen: Bools) -> Access:
        """The accesses to objects (a mask over all objects)."""
        ...

    def per_object(self) -> Ints:
        """How many accesses each object has."""
        ...

    def find_touched(self) -> Bools:
        """Objects that any extent names, software and damaged extents included."""
        ...

    def renumber(self, number: Ints) -> None:
        """Give the objects new numbers: `number` is the new one of each old one."""
        ...

    def compute(
        self, partitions: Partitions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        """The result of each partition, in order; with `only`, of these partitions.

        `work` is a pure function that can be pickled: it may run in another process.
        """
        ...
