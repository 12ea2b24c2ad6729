"""Extents in the memory of this process."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tracehint.analyzer import NOT_NEEDED, analyze
from tracehint.analyzer.flow.access import Raw, Tasks, read_extents
from tracehint.analyzer.flow.batches import Batch, Portions
from tracehint.analyzer.flow.identity import column
from tracehint.analyzer.flow.model import Access, Objects
from tracehint.analyzer.flow.ranges import Bools, Ints
from tracehint.errors import UsageError
from tracehint.schemas.store import read_bundle

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis, Options

T = TypeVar("T")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def analyze_at(where: str, options: Options, master: str | None = None) -> Analysis:
    """The analysis of the bundle in the directory `where`."""
    if master is not None:
        raise UsageError("--master: this engine runs in one process", "Add --engine spark.")
    if _URL.match(where):
        raise UsageError(
            f"{where}: a URL, and this engine reads directories only",
            "Add --engine spark, or copy the bundle to this machine.",
        )
    # The bundle is handed over and not kept: it can go before the labels are made.
    return analyze(read_bundle(where, NOT_NEEDED), options)


class LocalExtents:
    """An `Execution` on the Arrow table `extents`."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def look(self, objects: Objects, known: Tasks, notes: list[str]) -> LocalAccesses:
        raw, damaged = read_extents(self._table, objects, known)
        if damaged:
            notes.append(f"{damaged} damaged access records were left out")
        return LocalAccesses(raw, len(objects))

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

    def __init__(self, raw: Raw, objects: int) -> None:
        self._raw, self._objects = raw, objects

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
        self, portions: Portions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        raw = self._raw
        number = portions.of_object()[raw.obj[raw.rows]]
        order = np.argsort(number, kind="stable")
        cuts = np.searchsorted(number[order], np.arange(len(portions) + 1))
        chosen = range(len(portions)) if only is None else only.tolist()
        return [
            work(portions.frame(i).filled(raw.access(raw.rows[order[cuts[i] : cuts[i + 1]]])))
            for i in chosen
        ]
