"""The steps in order: objects, accesses, last writers, versions, users, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.columns import column, in_order
from tracehint.analyzer.flow import general, simple
from tracehint.analyzer.flow.access import EpochTasks
from tracehint.analyzer.flow.additions import Scene, add_declared
from tracehint.analyzer.flow.ahead import Ahead, nothing_yet
from tracehint.analyzer.flow.batches import ROWS, divide, keep_together
from tracehint.analyzer.flow.causal import after_their_writes
from tracehint.analyzer.flow.copies import Copies
from tracehint.analyzer.flow.empty import add_empty
from tracehint.analyzer.flow.entries import Entries, make_entries
from tracehint.analyzer.flow.fold import components
from tracehint.analyzer.flow.identity import judged
from tracehint.analyzer.flow.model import UNKNOWN, Access, Flow, Found, Objects
from tracehint.analyzer.flow.notes import merged
from tracehint.analyzer.flow.partitions import Batch, Partitions
from tracehint.analyzer.flow.retries import series_of
from tracehint.analyzer.flow.tables import Part, make_part
from tracehint.analyzer.flow.together import together
from tracehint.analyzer.flow.users import Tasks, consumers_of, edges_of, producers_of
from tracehint.analyzer.flow.whole import from_opens
from tracehint.analyzer.memory import give_back

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.flow.extents import Accesses, Execution
    from tracehint.analyzer.model import Options
    from tracehint.schemas.store import Bundle


class Segmented(Protocol):
    """What the flow needs of `analyzer.tasks.Segmentation`."""

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


@dataclass
class FlowSettings:
    """What every partition is computed with. `always_general`: every file goes the long way."""

    tasks: Tasks
    options: Options
    always_general: bool


def build_flow(
    bundle: Bundle,
    segmented: Segmented,
    roots: Sequence[bytes],
    options: Options,
    rules: Roots,
    extents: Execution,
    *,
    always_general: bool = False,
    rows: int = ROWS,
    owned: bool = False,
    ahead: Ahead | None = None,
) -> Flow:
    """Files by version, their producers and consumers, and the edges between tasks.

    `segmented`: which process epoch belongs to which task, `roots` are the data roots, `extents`
    who has that table and computes, `rules` what is data below them. Tables have the schemas of
    `tracehint.analyzer.model`. With `owned`, columns of the bundle that nothing needs after this
    are dropped from its tables. `rows` is the size of a partition. Never raises on damaged rows.
    """
    notes: list[str] = []
    bundle = bundle if owned else replace(bundle, tables=dict(bundle.tables))
    ahead = ahead or nothing_yet(bundle, segmented.declared_task, segmented.tasks)
    table = in_order(segmented.tasks, "task")
    ids = column(table, "task")
    procs = EpochTasks(segmented.proc_task, ids)
    tasks = Tasks(ids, column(table, "engine") == 1, *series_of(table), bundle.manifest.started_ns)
    settings = FlowSettings(tasks, options, always_general)
    classify = partial(rules.classify_paths, roots=roots)
    relative = partial(rules.relative_paths, roots=roots)
    objects = judged(*ahead.found(), procs.of, classify)
    accesses = extents.look(objects, procs, notes)
    more = from_opens(bundle, objects, procs, extents, notes)
    bundle.tables["opens"] = bundle.tables["opens"].select(["proc"])  # all that counts now
    objects, copies = _with_copies(objects, accesses, more, tasks)
    parts = _parts(accesses, divide(accesses, more, objects, copies, rows), settings, notes)
    touched = accesses.touched()
    del accesses  # the largest thing there is
    scene = Scene(*together(parts, objects, touched, relative, notes), objects, table)
    return add_declared(scene, bundle, ahead, classify, relative)


def _parts(
    accesses: Accesses, partitions: Partitions, settings: FlowSettings, notes: list[str]
) -> list[Part]:
    """The rows of all partitions; those on cycles of tasks are computed again."""
    solved = accesses.compute(partitions, partial(_solve, settings))
    parts = [part for part, _ in solved]
    notes += merged(note for _, said in solved for note in said)
    cycle = _cycles(parts, settings.tasks)
    if cycle is not None:
        again = np.flatnonzero([_on(part, cycle).any() for part in parts])
        solved = accesses.compute(partitions, partial(_solve, settings, cycle=cycle), again)
        for i, (part, _) in zip(again.tolist(), solved, strict=True):
            parts[i] = part
    return parts


def _with_copies(
    objects: Objects, accesses: Accesses, more: Access, tasks: Tasks
) -> tuple[Objects, Copies]:
    """The copies that engines made, and the objects so that each stands beside its source."""
    give_back()
    copies, order = keep_together(accesses, more, objects, tasks.engine)
    if not len(copies):
        return objects, copies
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    accesses.renumber(number)
    more.obj = number[more.obj]
    copies = Copies(number[copies.source], number[copies.target], copies.proc, copies.shift)
    return objects.reordered(order), copies


def _solve(
    settings: FlowSettings, batch: Batch, cycle: Ints | None = None
) -> tuple[Part, list[str]]:
    """The rows of one partition, and notes. `cycle`: per task the cycle that it is on, if known.

    A pure function of its arguments: it may run in another process.
    """
    objects, access, tasks, options = batch.objects, batch.access, settings.tasks, settings.options
    notes: list[str] = []
    if objects.hosts > 1:
        after_their_writes(access, objects, notes)
    found, alone, many = _found(batch, settings, notes)
    add_empty(found, access, objects, tasks.engine)
    entries = make_entries(found, objects, tasks.engine, alone, many, options.max_versions, cycle)
    edges = edges_of(found, entries, tasks)
    replaced = _replaced(entries, objects)
    part = make_part(
        batch.low,
        objects,
        entries,
        tasks,
        producers_of(found, entries, tasks, edges, replaced, alone),
        consumers_of(found, entries, tasks),
        edges,
        options,
    )
    return part, notes


def _found(batch: Batch, settings: FlowSettings, notes: list[str]) -> tuple[Found, Bools, Bools]:
    """(found, objects that went the short way, objects of too many versions)."""
    objects, engine = batch.objects, settings.tasks.engine
    chosen = np.full(len(objects), settings.always_general)
    chosen[batch.copies.source] = True
    chosen[batch.copies.target] = True
    easy, hard = simple.solve(batch.access, objects, chosen, notes)
    rest = batch.access.take(hard[batch.access.obj])
    limit = settings.options.max_versions
    found, many = general.solve(rest, objects, engine, batch.copies, limit, notes)
    return Found.joined([easy, found]), ~hard, many


def _replaced(entries: Entries, objects: Objects) -> Bools:
    """Objects whose name a later object of the run took."""
    lineage = objects.lineage - int(objects.lineage.min(initial=0))
    last = np.full(int(lineage.max(initial=-1)) + 1, -1)
    np.maximum.at(last, lineage[entries.obj], objects.rank[entries.obj])
    return np.asarray(objects.rank < last[lineage])


def _cycles(parts: list[Part], tasks: Tasks) -> Ints | None:
    """Per task the cycle that it is on; None if there is no cycle."""
    first_write = np.full(len(tasks.ids), np.iinfo(np.int64).max)
    for part in parts:
        known = part.ends.first != UNKNOWN
        np.minimum.at(first_write, part.ends.writer[known], part.ends.first[known])
    none = [np.empty(0, np.int64)]
    producer = np.concatenate([part.ends.producer for part in parts] or none)
    consumer = np.concatenate([part.ends.consumer for part in parts] or none)
    cycle = components(producer, consumer, first_write)
    return cycle if (cycle != UNKNOWN).any() else None


def _on(part: Part, cycle: Ints) -> Bools:
    """The edges of a partition that are on a cycle."""
    producer, consumer = part.ends.producer, part.ends.consumer
    return np.asarray((cycle[producer] != UNKNOWN) & (cycle[producer] == cycle[consumer]))
