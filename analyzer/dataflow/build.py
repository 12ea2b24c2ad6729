"""Data flow of a run: divide the accesses into partitions, solve each and join the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, Shorts, column, in_order, lookup, order_by
from tracehint.analyzer.dataflow.accesses import EpochTasks
from tracehint.analyzer.dataflow.additions import BaseFlow, add_declared
from tracehint.analyzer.dataflow.copies import Copies
from tracehint.analyzer.dataflow.declarations import Pending, work_on_demand
from tracehint.analyzer.dataflow.entries import (
    Entries,
    add_makers_of_empty,
    components,
    make_entries,
    series_of,
)
from tracehint.analyzer.dataflow.identity import complete_objects
from tracehint.analyzer.dataflow.model import (
    HOW_BIT,
    HUGE,
    READ,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Flow,
    Found,
    Objects,
)
from tracehint.analyzer.dataflow.partitions import ROWS, Batch, Partitions, divide, order_copies
from tracehint.analyzer.dataflow.tables import Part, concat_flows, make_part
from tracehint.analyzer.dataflow.users import Tasks, consumers_of, edges_of, producers_of
from tracehint.analyzer.dataflow.version_flow import move_early_reads, solve_general, solve_simple
from tracehint.analyzer.memory import give_back
from tracehint.schemas.wording import agree

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.dataflow.partitions import Accesses, Execution
    from tracehint.analyzer.model import Options
    from tracehint.schemas.store import Bundle


_COUNT = re.compile(r"(\d+) ")
_WORST = re.compile(r"\(up to ([0-9.]+) s\)")


def merge_notes(notes: Iterable[str]) -> list[str]:
    """Merge notes that differ only in numbers: leading counts are added, the words that depend on
    them adapted (`agree`), and of `(up to X s)` the largest is kept. Other notes are unchanged."""
    counts: dict[str, int] = {}
    worst: dict[str, float] = {}
    for note in notes:
        count = _COUNT.match(note)
        text = note[count.end() :] if count else note
        far = _WORST.search(text) if count else None
        if far:
            text = _WORST.sub("(up to {} s)", text, count=1)
            worst[text] = max(worst.get(text, 0.0), float(far[1]))
        counts[text] = counts.get(text, 0) + int(count[1]) if count else 0
    found = []
    for text, n in counts.items():
        if text in worst:
            text = text.replace("(up to {} s)", f"(up to {worst[text]:.3f} s)", 1)
        found.append(agree(n, "{n} " + text) if n else text)
    return found


_ACCMODE, _WRONLY, _RDWR = 3, 1, 2


def _note_huge_files(bundle: Bundle) -> list[str]:
    """Return a note about the files whose size counts as unknown."""
    huge = int((column(bundle.tables["files"], "size_bytes") > HUGE).sum())
    text = f"{{n}} [file|files] of more than {HUGE >> 50} PiB: [its size counts|their sizes count]"
    return [agree(huge, f"{text} as unknown")] if huge else []


def read_opens(
    bundle: Bundle, objects: Objects, known: EpochTasks, extents: Execution, notes: list[str]
) -> Access:
    """Return truncations and accesses of whole files (upper bounds); add a note about the latter.

    They are numbered after the extents, but truncations all have number -1.
    """
    opens = bundle.tables["opens"]
    obj = lookup(objects.file_ids, objects.file_obj, column(opens, "file")).astype(np.int32)
    mine = obj >= 0
    mine &= ~np.append(objects.software, True)[obj]
    cut = np.flatnonzero(mine & (column(opens, "truncated") == 1))
    parts = [_truncations(opens, obj, known, cut)]
    reads, writes = _opens_without_extents(bundle, extents, mine)
    for op, at in ((READ, reads), (WRITE, writes)):
        if len(at):
            parts.append(_whole_file_accesses(opens, objects, obj, known, at, op))
    found = Access.concat_parts(parts)
    found = found.take(found.task >= 0)
    unknown_end = found.last == UNKNOWN
    if unknown_end.any():
        ends = _process_ends(bundle.tables["processes"])
        found.last[unknown_end] = lookup(*ends, found.proc[unknown_end])
    found.last = np.maximum(found.first, found.last)
    if bounds := int((found.op != TRUNCATE).sum()):
        notes.append(
            agree(
                bounds,
                "{n} [access|accesses] without recorded ranges counted as of the whole file "
                "(upper bound)",
            )
        )
    found.seq = np.where(found.op == TRUNCATE, -1, extents.rows() + np.arange(len(found)))
    return found


def _truncations(opens: pa.Table, obj: Shorts, known: EpochTasks, at: Ints) -> Access:
    """Return O_TRUNC of files that had bytes; a second record of the same one has no effect."""
    proc, when = column(opens, "proc")[at], column(opens, "open_ns")[at]
    zero, one = np.zeros(len(at), np.int64), np.ones(len(at), np.int64)
    return Access(
        obj=obj[at].astype(np.int64),
        task=known.of(proc),
        proc=proc,
        op=one * TRUNCATE,
        start=zero,
        end=zero,
        stride=zero,
        count=one,
        bytes=zero,
        first=when,
        last=when,
        exact=one == 1,
        how=one * HOW_BIT["open"],
        seq=-one,
    )


def _opens_without_extents(bundle: Bundle, extents: Execution, mine: Bools) -> tuple[Ints, Ints]:
    """Return the opens for reading and for writing that have no extents.

    A bare open without any counter is an access only if the collector is blind to bytes: otherwise
    no operation happened. A read-write open of a new file has nothing to read first.
    """
    opens = bundle.tables["opens"]
    blind = "bytes" in bundle.manifest.blind_to or bundle.manifest.collector == "strace-light"
    reads, writes = column(opens, "read_ops") > 0, column(opens, "write_ops") > 0
    bare = mine & ~reads & ~writes & blind
    number = column(opens, "open")
    order = order_by(number)
    ranged = np.zeros(len(number), bool)
    at = lookup(number[order], order, extents.opens())
    ranged[at[at >= 0]] = True
    mine = mine & ~ranged
    if not mine.any():
        return np.flatnonzero(mine), np.flatnonzero(mine)
    mode = column(opens, "flags") & _ACCMODE
    fresh = (mode == _RDWR) & (column(opens, "created") == 1)
    reads = (reads | (bare & (mode != _WRONLY) & ~fresh)) & mine
    writes = (writes | (bare & ((mode == _WRONLY) | (mode == _RDWR)))) & mine
    return np.flatnonzero(reads), np.flatnonzero(writes)


def _process_ends(table: pa.Table) -> tuple[Ints, Ints]:
    proc = column(table, "proc")
    order = order_by(proc)
    return proc[order], column(table, "end_ns")[order]


def _whole_file_accesses(
    opens: pa.Table, objects: Objects, obj: Shorts, known: EpochTasks, at: Ints, op: int
) -> Access:
    """Return accesses of whole files, of one byte if the size is unknown (`tables` shows 0)."""
    size = np.maximum(objects.size, objects.opened_size)[obj[at]]
    at, size = at[size != 0], size[size != 0]
    rows = obj[at].astype(np.int64)
    objects.unsized[rows[size == UNKNOWN]] = True

    def first_of(name: str, other: str) -> Ints:
        value = column(opens, name)[at]
        return np.where(value == UNKNOWN, column(opens, other)[at], value)

    moved = column(opens, "read_bytes" if op == READ else "write_bytes")[at]
    proc, zero = column(opens, "proc")[at], np.zeros(len(at), np.int64)
    return Access(
        obj=rows,
        task=known.of(proc),
        proc=proc,
        op=zero + op,
        start=zero,
        end=np.where(size == UNKNOWN, 1, size),
        stride=zero,
        count=zero + 1,
        bytes=np.where(moved > 0, moved, np.maximum(size, 0)),
        first=first_of("first_ns", "open_ns"),
        last=first_of("last_ns", "close_ns"),
        exact=zero != 0,
        how=zero + HOW_BIT["open"],
        seq=zero,
    )


class Segmented(Protocol):
    """The part of `analyzer.model.Segmentation` that the flow needs."""

    @property
    def tasks(self) -> pa.Table: ...
    @property
    def proc_task(self) -> pa.Table: ...
    @property
    def declared_task(self) -> pa.Table: ...


class Roots(Protocol):
    """The part of `analyzer.roots` that the flow needs."""

    def classify_paths(self, paths: pa.Array, roots: Sequence[bytes]) -> pa.Array: ...
    def relative_paths(self, paths: pa.Array, roots: Sequence[bytes]) -> pa.Array: ...


@dataclass
class FlowSettings:
    """Settings of every partition. `always_general`: use the general solver for every file."""

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
    pending: Pending | None = None,
) -> Flow:
    """Return file versions, their producers and consumers, and the edges between tasks.

    `segmented` maps process epochs to tasks, `roots` are the data roots, `extents` holds that
    table and computes on it, `rules` classifies paths by the roots. Tables have the schemas of
    `tracehint.analyzer.model`. With `owned`, columns of the bundle that are not needed afterwards
    are dropped from its tables. `rows` is the size of a partition. Never raises on damaged rows.
    """
    notes = _note_huge_files(bundle)
    bundle = bundle if owned else replace(bundle, tables=dict(bundle.tables))
    pending = pending or work_on_demand(bundle, segmented.declared_task, segmented.tasks)
    table = in_order(segmented.tasks, "task")
    ids = column(table, "task")
    procs = EpochTasks(segmented.proc_task, ids)
    tasks = Tasks(ids, column(table, "engine") == 1, *series_of(table), bundle.manifest.started_ns)
    settings = FlowSettings(tasks, options, always_general)
    classify = partial(rules.classify_paths, roots=roots)
    relative = partial(rules.relative_paths, roots=roots)
    objects = complete_objects(*pending.found(), procs.of, classify)
    accesses = extents.look(objects, procs, notes)
    more = read_opens(bundle, objects, procs, extents, notes)
    bundle.tables["opens"] = bundle.tables["opens"].select(["proc"])  # no other is needed now
    objects, copies = _keep_copies_together(objects, accesses, more, tasks)
    parts = _solve_parts(accesses, divide(accesses, more, objects, copies, rows), settings, notes)
    touched = accesses.find_touched()
    del accesses  # the largest object in memory
    base = BaseFlow(*concat_flows(parts, objects, touched, relative, notes), objects, table)
    return add_declared(base, bundle, pending, classify, relative)


def _solve_parts(
    accesses: Accesses, partitions: Partitions, settings: FlowSettings, notes: list[str]
) -> list[Part]:
    """Solve all partitions, and solve those with edges on cycles of tasks a second time."""
    solved = accesses.compute(partitions, partial(_solve, settings))
    parts = [part for part, _ in solved]
    notes += merge_notes(note for _, remarks in solved for note in remarks)
    cycle = _find_cycles(parts, settings.tasks)
    if cycle is not None:
        again = np.flatnonzero([_find_cycle_edges(part, cycle).any() for part in parts])
        solved = accesses.compute(partitions, partial(_solve, settings, cycle=cycle), again)
        for i, (part, _) in zip(again.tolist(), solved, strict=True):
            parts[i] = part
    return parts


def _keep_copies_together(
    objects: Objects, accesses: Accesses, more: Access, tasks: Tasks
) -> tuple[Objects, Copies]:
    """Return the objects, with copies next to their sources, and the engines' copies."""
    give_back()
    copies, order = order_copies(accesses, more, objects, tasks.engine)
    if not len(copies):
        return objects, copies
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    accesses.renumber(number)
    more.obj = number[more.obj]
    copies = Copies(number[copies.source], number[copies.target], copies.proc, copies.shift)
    return objects.renumber_objects(order), copies


def _solve(
    settings: FlowSettings, batch: Batch, cycle: Ints | None = None
) -> tuple[Part, list[str]]:
    """Return the rows of one partition, and notes. `cycle`: the cycle of each task, if known.

    A pure function of its arguments: it may run in another process.
    """
    objects, access, tasks, options = batch.objects, batch.access, settings.tasks, settings.options
    notes: list[str] = []
    if objects.hosts > 1:
        move_early_reads(access, objects, notes)
    found, alone, many = _solve_batch(batch, settings, notes)
    add_makers_of_empty(found, access, objects, tasks.engine)
    entries = make_entries(found, objects, tasks.engine, alone, many, options.max_versions, cycle)
    edges = edges_of(found, entries, tasks)
    replaced = _replaced_objects(entries, objects)
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


def _solve_batch(
    batch: Batch, settings: FlowSettings, notes: list[str]
) -> tuple[Found, Bools, Bools]:
    """Return (found, objects solved by the simple method, objects of too many versions)."""
    objects, engine = batch.objects, settings.tasks.engine
    chosen = np.full(len(objects), settings.always_general)
    chosen[batch.copies.source] = True
    chosen[batch.copies.target] = True
    easy, hard = solve_simple(batch.access, objects, chosen, notes)
    rest = batch.access.take(hard[batch.access.obj])
    limit = settings.options.max_versions
    found, many = solve_general(rest, objects, engine, batch.copies, limit, notes)
    return Found.concat_parts([easy, found]), ~hard, many


def _replaced_objects(entries: Entries, objects: Objects) -> Bools:
    """Return per object whether a later object of the run took over its name."""
    lineage = objects.lineage - int(objects.lineage.min(initial=0))
    last = np.full(int(lineage.max(initial=-1)) + 1, -1)
    np.maximum.at(last, lineage[entries.obj], objects.rank[entries.obj])
    return np.asarray(objects.rank < last[lineage])


def _find_cycles(parts: list[Part], tasks: Tasks) -> Ints | None:
    """Return the cycle of each task, or None if there is no cycle."""
    first_write = np.full(len(tasks.ids), np.iinfo(np.int64).max)
    for part in parts:
        known = part.ends.first != UNKNOWN
        np.minimum.at(first_write, part.ends.writer[known], part.ends.first[known])
    none = [np.empty(0, np.int64)]
    producer = np.concatenate([part.ends.producer for part in parts] or none)
    consumer = np.concatenate([part.ends.consumer for part in parts] or none)
    cycle = components(producer, consumer, first_write)
    return cycle if (cycle != UNKNOWN).any() else None


def _find_cycle_edges(part: Part, cycle: Ints) -> Bools:
    """Return which edges of a partition are on a cycle."""
    producer, consumer = part.ends.producer, part.ends.consumer
    return np.asarray((cycle[producer] != UNKNOWN) & (cycle[producer] == cycle[consumer]))
