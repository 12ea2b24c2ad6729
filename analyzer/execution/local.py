"""Extents in the memory of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.columns import column
from tracehint.analyzer.execution.bundle_files import (
    BundleFiles,
    Folder,
    add_problems,
    files_at,
    read,
)
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.execution.threads import compute_all
from tracehint.analyzer.flow.access import EpochTasks, Raw, read_extents
from tracehint.analyzer.flow.model import Access, Objects
from tracehint.analyzer.flow.partitions import Batch, Partitions
from tracehint.analyzer.memory import give_back
from tracehint.errors import UsageError
from tracehint.schemas.footer import rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.flow.extents import Execution
    from tracehint.schemas.store import Bundle


T = TypeVar("T")
IN_MEMORY = 200  # bytes that an extent takes while the flow is followed


def run_at(
    where: str,
    work: Callable[[Bundle, Execution | None], T],
    master: str | None = None,
    resources: Resources | None = None,
) -> T:
    """`work` on the bundle at the path or URL `where`, and its extents where they are apart."""
    resources = resources or Resources()
    if master is not None:
        raise UsageError("--master: the backend local runs in one process", "Add --backend spark.")
    files = files_at(where)
    if _too_large(files, resources.memory):
        return _in_batches(files, work, resources)
    # The bundle is handed over and not kept: it can go before the labels are made.
    return work(_settled(read(files)), None)


def _settled(bundle: Bundle) -> Bundle:
    """The bundle; what only its reading took goes back."""
    give_back()
    return bundle


def _too_large(files: BundleFiles, memory: int | None) -> bool:
    """Whether the extents would take more than half of the memory. What a killed recorder left
    is always converted in memory."""
    if memory is None or (isinstance(files, Folder) and files.killed()):
        return False
    found = (file for _, file in files.open(files.segments("extents")))
    return rows_of(found) * IN_MEMORY > memory // 2


def _in_batches(
    files: BundleFiles, work: Callable[[Bundle, Execution | None], T], resources: Resources
) -> T:
    from tracehint.analyzer.execution.spilled import SpilledExtents

    bundle = read(files, without=("extents",))
    with SpilledExtents(files, resources) as extents:
        add_problems(bundle, extents.problems)
        return work(bundle, extents)


class LocalExtents:
    """An `Execution` on the Arrow table `extents`."""

    def __init__(self, table: pa.Table, resources: Resources | None = None) -> None:
        self._table, self._resources = table, resources or Resources()

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> LocalAccesses:
        raw, damaged = read_extents(self._table, objects, known)
        # the other columns are in `raw`, or nobody needs them any more
        self._table = self._table.select(["open", "proc", "last_ns"])
        raw.table = raw.table.schema.empty_table()
        give_back()
        if damaged:
            notes.append(f"{damaged} damaged access records were left out")
        return LocalAccesses(raw, len(objects), self._resources)

    def rows(self) -> int:
        return int(self._table.num_rows)

    def last_ns(self) -> int | None:
        import pyarrow.compute as pc

        last: int | None = pc.max(self._table.column("last_ns")).as_py()
        return last

    def opens(self) -> Ints:
        return column(self._table, "open")

    def by_process(self) -> pa.Table:
        counted = self._table.select(["proc"]).group_by("proc").aggregate([([], "count_all")])
        return counted.rename_columns(["proc", "count"])


class LocalAccesses:
    """`Accesses` of extents with their objects and tasks in `raw`."""

    def __init__(self, raw: Raw, objects: int, resources: Resources) -> None:
        self._raw, self._objects, self._resources = raw, objects, resources

    def of_tasks(self, chosen: Bools) -> Access:
        rows = self._raw.rows
        return self._raw.access(rows[chosen[self._raw.task[rows]]])

    def of_objects(self, chosen: Bools) -> Access:
        rows = self._raw.rows
        return self._raw.access(rows[chosen[self._raw.obj[rows]]])

    def per_object(self) -> Ints:
        return np.bincount(self._raw.obj[self._raw.rows], minlength=self._objects)

    def touched(self) -> Bools:
        touched = np.zeros(self._objects + 1, bool)
        touched[self._raw.obj] = True
        return touched[:-1]

    def renumber(self, number: Ints) -> None:
        self._raw.obj = np.append(number, -1).astype(np.int32)[self._raw.obj]

    def compute(
        self, partitions: Partitions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        raw = self._raw
        number = partitions.of_object()[raw.obj[raw.rows]]
        order = np.argsort(number, kind="stable")
        cuts = np.searchsorted(number[order], np.arange(len(partitions) + 1))
        chosen = range(len(partitions)) if only is None else only.tolist()

        def solve(i: int) -> T:
            return work(
                partitions.frame(i).filled(raw.access(raw.rows[order[cuts[i] : cuts[i + 1]]]))
            )

        return compute_all(solve, chosen, self._resources, "following the bytes")
