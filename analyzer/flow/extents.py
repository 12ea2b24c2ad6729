"""What the steps of the analysis ask of the table `extents`, wherever it lies.

All other tables of a bundle grow with tasks and files and are held by the process that analyzes.
`extents` grows with the accesses: it is asked for sums, for the few accesses of engines, and to
compute a function of each partition of whole paths (docs/rationale/distributed-engine.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.arrays import Bools, Ints
    from tracehint.analyzer.flow.access import EpochTasks
    from tracehint.analyzer.flow.model import Access, Objects
    from tracehint.analyzer.flow.partitions import Batch, Partitions

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

    def touched(self) -> Bools:
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
