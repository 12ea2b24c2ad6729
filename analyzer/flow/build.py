"""The steps in order: objects, accesses, last writers, versions, users, tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tracehint.analyzer.flow import complex as general
from tracehint.analyzer.flow import copies as engine_copies
from tracehint.analyzer.flow import simple
from tracehint.analyzer.flow.access import Tasks as ProcTasks
from tracehint.analyzer.flow.access import accesses
from tracehint.analyzer.flow.causal import after_their_writes
from tracehint.analyzer.flow.empty import add_empty
from tracehint.analyzer.flow.entries import Entries, make_entries
from tracehint.analyzer.flow.identity import build_objects, column
from tracehint.analyzer.flow.model import Flow, Found, Objects
from tracehint.analyzer.flow.ranges import Bools, distinct, order_by
from tracehint.analyzer.flow.retries import series_of
from tracehint.analyzer.flow.tables import Parts, make_tables
from tracehint.analyzer.flow.users import Tasks, consumers_of, edges_of, producers_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Options
    from tracehint.schemas.store import Bundle


class Cut(Protocol):
    """What the flow needs of `analyzer.tasks.TaskCut`."""

    @property
    def tasks(self) -> pa.Table: ...
    @property
    def proc_task(self) -> pa.Table: ...
    @property
    def declared_task(self) -> pa.Table: ...


class Roots(Protocol):
    """What the flow needs of `analyzer.roots`."""

    def classify_paths(self, paths: pa.Array, roots: Sequence[bytes]) -> pa.Array: ...
    def relative_paths(self, paths: pa.Array, roots: Sequence[bytes]) -> pa.Array: ...


def build(
    bundle: Bundle, cut: Cut, roots: Sequence[bytes], options: Options, rules: Roots,
    *, always_general: bool = False,
) -> Flow:  # fmt: skip
    """See `build_flow`. `always_general` sends every file the long way (tests compare both)."""
    notes: list[str] = []
    table = cut.tasks.take(order_by(column(cut.tasks, "task")))
    ids = column(table, "task")
    procs = ProcTasks(cut.proc_task, ids)
    tasks = Tasks(
        ids, column(table, "engine") == 1, *series_of(table), bundle.manifest.started_ns
    )
    objects = build_objects(bundle, procs.of, lambda p: rules.classify_paths(p, roots))
    access = accesses(bundle, objects, procs, notes)
    if objects.hosts > 1:
        after_their_writes(access, objects, notes)
    found, alone, many = _solve(access, objects, tasks, options, notes, always_general)
    add_empty(found, access, objects, tasks.engine)
    entries = make_entries(found, objects, tasks.engine, alone, many, options.max_versions)
    edges = edges_of(found, entries, tasks)
    parts = Parts(
        objects, entries, tasks,
        producers_of(found, entries, tasks, edges, _replaced(entries, objects), alone),
        consumers_of(found, entries, tasks), edges, _software(bundle, objects),
    )  # fmt: skip
    return make_tables(parts, lambda p: rules.relative_paths(p, roots), options, notes)


def _solve(
    access: Any, objects: Objects, tasks: Tasks, options: Options, notes: list[str], all_: bool
) -> tuple[Found, Bools, Bools]:
    """(found, objects that went the short way, objects of too many versions)."""
    copies = engine_copies.find(access, objects, tasks.engine)
    chosen = np.full(len(objects), all_)
    chosen[copies.source] = True
    chosen[copies.target] = True
    easy, hard = simple.solve(access, objects, chosen, notes)
    rest = access.take(hard[access.obj])
    found, many = general.solve(rest, objects, tasks.engine, copies, options.max_versions, notes)
    return Found.joined([easy, found]), ~hard, many


def _replaced(entries: Entries, objects: Objects) -> Bools:
    """Objects whose name a later object of the run took."""
    last = np.full(int(objects.lineage.max(initial=-1)) + 1, -1)
    np.maximum.at(last, entries.lineage, objects.rank[entries.obj])
    return np.asarray(objects.rank < last[objects.lineage])


def _software(bundle: Bundle, objects: Objects) -> Any:
    """Objects outside the data roots with at least one access."""
    from tracehint.analyzer.flow.identity import lookup

    file = distinct(column(bundle.tables["extents"], "file"))
    obj = lookup(objects.file_ids, objects.file_obj, file)
    obj = distinct(obj[obj >= 0])
    return obj[objects.software[obj]]
