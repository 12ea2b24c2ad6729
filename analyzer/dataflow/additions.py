"""Declared inputs, outputs and dependencies, added to the observed data flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, column, order_by, places, starts_of
from tracehint.analyzer.dataflow.declarations import DeclaredRows, Pending, Uses, objects_of, pairs
from tracehint.analyzer.dataflow.entries import components
from tracehint.analyzer.dataflow.model import UNKNOWN, Flow, Objects
from tracehint.analyzer.dataflow.users import even_lists, range_lists
from tracehint.analyzer.model import CONSUMERS, EDGES, FILES, PRODUCERS
from tracehint.schemas.wording import agree, plural

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


def with_cycles(flow: Flow, tasks: pa.Table) -> pa.Table:
    """Return the files; those on a cycle of tasks, including added edges, become concurrent."""
    ids = column(tasks, "task")
    p, c = (places(ids, column(flow.edges, n)) for n in ("producer", "consumer"))
    start = pc.fill_null(tasks.column("start_s"), 0.0).to_numpy()
    rank = np.empty(len(ids), np.int64)
    rank[np.lexsort((np.arange(len(ids)), start))] = np.arange(len(ids))
    cycle = components(p, c, rank)
    on = (cycle[p] != UNKNOWN) & (cycle[p] == cycle[c])
    if not on.any():
        return flow.files
    shared = np.asarray(flow.files.column("concurrent").to_numpy(), bool).copy()
    shared[column(flow.edges, "file")[on]] = True
    at = flow.files.column_names.index("concurrent")
    return flow.files.set_column(at, FILES.field("concurrent"), pa.array(shared))


# Blind spots and losses that can hide a whole read or write of a recorded task.
_HIDING_BLIND_SPOTS = frozenset({"copy_file_range", "static_binaries", "go_binaries", "opens"})
_LOSSES = (
    "lifecycle_records",
    "open_table_full",
    "log_lines",
    "damaged_segment",
    "spool_write",
    "missing_rows",
    "unreadable_log",
    "killed_recorder",
)


def may_hide_reads(bundle: Bundle) -> bool:
    """Whether the collector may have missed an access of an observed task."""
    if _HIDING_BLIND_SPOTS & set(bundle.manifest.blind_to) or not bundle.manifest.complete:
        return True
    kinds = bundle.tables["losses"].column("kind")
    return bool(pc.any(pc.is_in(kinds, pa.array(_LOSSES))).as_py())


PathMap = Callable[[pa.Array], pa.Array]


@dataclass
class BaseFlow:
    """The observed flow: `used` is the object of each file row, `tasks` is sorted by id."""

    flow: Flow
    used: Ints
    objects: Objects
    tasks: pa.Table


def add_declared(
    base: BaseFlow, bundle: Bundle, pending: Pending, is_software: PathMap, relative: PathMap
) -> Flow:
    """Return the flow with the declarations added, if any, and empty their tables in the bundle."""
    if pending.declared is None:
        return base.flow
    paths, rest = pending.declared()
    soft = np.asarray(is_software(paths).to_numpy(zero_copy_only=False), bool)
    obj = objects_of(paths, base.objects)
    declared, uses = rest()
    for name in ("declared_io", "declared_tasks"):
        bundle.tables[name] = bundle.tables[name].schema.empty_table()
    engine = np.append(column(base.tasks, "engine") == 1, True)
    left_out = soft[uses.path] | engine[declared.first[uses.task]]
    uses = uses.take(~left_out) if left_out.any() else uses
    writer, reader = _select_unobserved(base, declared, uses, obj, *pairs(uses, declared))
    if not may_hide_reads(bundle):  # no record then means no access
        both = declared.observed[uses.task[writer]] & declared.observed[uses.task[reader]]
        if both.any():
            base.flow.notes.append(
                agree(int(both.sum()), "{n} declared [dependency|dependencies] carried no data")
            )
        writer, reader = writer[~both], reader[~both]
    users = np.flatnonzero(~declared.observed[uses.task])
    needed = np.zeros(len(paths), bool)
    needed[uses.path[users]] = True
    needed[uses.path[writer]] = True
    row, size, fresh = _number_rows(base, uses, obj, needed)
    added = _AddedRows(base, declared, uses, row, size, users)
    files = pending.start(partial(added.files, paths, fresh, relative, reader))
    producers, consumers = added.producers(), added.consumers()
    edges = added.edges(writer, reader)
    flow = Flow(files(), producers, consumers, edges, base.flow.notes)
    if len(writer):
        flow.notes.append(f"{plural(len(writer), 'edge')} declared by the workflow and not seen")
        flow.files = with_cycles(flow, base.tasks)
    return flow


def _select_unobserved(
    base: BaseFlow, declared: DeclaredRows, uses: Uses, obj: Ints, writer: Ints, reader: Ints
) -> tuple[Ints, Ints]:
    """Return the declared pairs without an observed edge between their tasks over the same path."""
    edges, ids = base.flow.edges, column(base.tasks, "task")
    if not edges.num_rows:
        return writer, reader
    p = declared.of_task[np.searchsorted(ids, column(edges, "producer"))]
    c = declared.of_task[np.searchsorted(ids, column(edges, "consumer"))]
    lineage = base.objects.lineage[base.used[column(edges, "file")]]
    of_path = np.append(base.objects.lineage, UNKNOWN)[obj]
    columns = (
        np.concatenate([lineage, of_path[uses.path[writer]]]),
        np.concatenate([p, uses.task[writer]]),
        np.concatenate([c, uses.task[reader]]),
    )
    order = order_by(*columns)
    first = starts_of(*(k[order] for k in columns))
    observed = np.logical_or.reduceat(order < len(p), first) if len(first) else first
    seen = np.zeros(len(order), bool)
    seen[order] = np.repeat(observed, np.diff(np.append(first, len(order))))
    keep = ~seen[len(p) :] | (of_path[uses.path[writer]] == UNKNOWN)
    return writer[keep], reader[keep]


def _number_rows(base: BaseFlow, uses: Uses, obj: Ints, needed: Bools) -> tuple[Ints, Ints, Ints]:
    """Return per path its file row (the last version) and size, and the paths that need a row."""
    last = np.full(len(base.objects) + 1, UNKNOWN, np.int64)
    np.maximum.at(last, base.used, np.arange(len(base.used)))
    row = last[obj]
    size = np.full(len(obj), UNKNOWN, np.int64)
    np.maximum.at(size, uses.path, uses.size)
    known = column(base.flow.files, "size_bytes")
    size = np.where(row >= 0, np.append(known, UNKNOWN)[row], size)
    fresh = np.flatnonzero(needed & (row < 0))
    row[fresh] = len(base.used) + np.arange(len(fresh))
    return row, size, fresh


@dataclass
class _AddedRows:
    """Builder of the added rows. `row` and `size` are per path, `users` are the rows of `uses` that
    become producers and consumers."""

    base: BaseFlow
    declared: DeclaredRows
    uses: Uses
    row: Ints
    size: Ints
    users: Ints

    def producers(self) -> pa.Table:
        more = self._use_rows(self.uses.out[self.users], PRODUCERS)
        return pa.concat_tables([self.base.flow.producers, more])

    def consumers(self) -> pa.Table:
        more = self._use_rows(~self.uses.out[self.users], CONSUMERS)
        return pa.concat_tables([self.base.flow.consumers, more])

    @cached_property
    def moved(self) -> Ints:
        """Bytes per user: the whole file, scaled down if the log states that the task read less in
        total."""
        at = self.users
        size = np.maximum(self.size[self.uses.path[at]], 0)
        if (self.declared.read < 0).all():
            return size
        task, out = self.uses.task[at], self.uses.out[at]
        inputs = np.bincount(task[~out], size[~out], len(self.declared.first))
        read = self.declared.read[task]
        share = np.where(out | (read < 0), 1.0, np.minimum(1.0, read / np.maximum(inputs[task], 1)))
        return np.asarray(np.rint(size * share), np.int64)

    def _use_rows(self, chosen: Bools, schema: pa.Schema) -> pa.Table:
        at = self.users[chosen]
        path = self.uses.path[at]
        size = np.maximum(self.size[path], 0)
        task = self.declared.last[self.uses.task[at]]
        some = size > 0
        ends = np.concatenate([[0], np.cumsum(some)])
        columns = {
            "file": self.row[path],
            "task": column(self.base.tasks, "task")[task],
            "bytes": self.moved[chosen],
            "unique_bytes": size,
            "owned_bytes": size,
            "cover": pa.array(np.ones(len(at)), mask=~some),
            "peek": np.zeros(len(at), bool),
            "ranges": range_lists(ends, size[some] * 0, size[some]),
            "how": even_lists(pa.repeat("declared", len(at)), len(at), 1),
            "first_s": self.base.tasks.column("start_s").take(pa.array(task)).combine_chunks(),
            "last_s": self.base.tasks.column("end_s").take(pa.array(task)).combine_chunks(),
            "superseded": np.zeros(len(at), bool),
        }
        return pa.table([pa.array(columns[name]) for name in schema.names], schema=schema)

    def edges(self, writer: Ints, reader: Ints) -> pa.Table:
        tasks = self.base.tasks
        p = self.declared.last[self.uses.task[writer]]
        c = self.declared.first[self.uses.task[reader]]
        end = np.asarray(pc.fill_null(tasks.column("end_s"), -np.inf).to_numpy())
        start = np.asarray(pc.fill_null(tasks.column("start_s"), np.inf).to_numpy())
        ids, n = column(tasks, "task"), self.base.flow.edges.num_rows
        path = self.uses.path[writer]
        columns = [
            n + np.arange(len(writer)),
            ids[p],
            self.row[path],
            ids[c],
            np.maximum(self.size[path], 0),
            pa.repeat("declared", len(writer)),
            pa.array(("certain", "uncertain")).take(pa.array((end[p] > start[c]).astype(np.int64))),
        ]
        more = pa.table([pa.array(v) for v in columns], schema=EDGES)
        return pa.concat_tables([self.base.flow.edges, more])

    def files(self, paths: pa.Array, fresh: Ints, relative: PathMap, handed: Ints) -> pa.Table:
        """Return the known rows with updated roles and exact shares, then the rows of new paths."""
        old, n = self.base.flow.files, self.base.flow.files.num_rows
        role = old.column("role").combine_chunks()
        written, read = np.zeros(n + len(fresh), bool), np.zeros(n + len(fresh), bool)
        written[:n] = pc.is_in(role, pa.array(["intermediate", "output", "scratch"])).to_numpy(
            False
        )
        read[:n] = pc.is_in(role, pa.array(["intermediate", "input"])).to_numpy(False)
        before = written + 2 * read
        out, used = self.uses.out[self.users], self.row[self.uses.path[self.users]]
        written[used[out]] = True
        read[used[~out]] = True
        row = self.row[self.uses.path[handed]]
        written[row] = read[row] = True
        roles = pa.array(("output", "input", "intermediate"))
        names = roles.take(pa.array(np.where(read, 1 + written, 0)))
        same = pa.array((written + 2 * read == before)[:n])
        keep = pc.or_(same, pc.equal(role, "software"))
        changed = {
            "role": pc.if_else(keep, role, names.slice(0, n)),
            "exact_share": pa.array(self._exact_shares()[:n]),
        }
        for name, values in changed.items():
            old = old.set_column(old.column_names.index(name), FILES.field(name), values)
        paths = paths if len(fresh) == len(paths) else paths.take(pa.array(fresh))
        return pa.concat_tables([old, self._new_files(relative(paths), fresh, names.slice(n))])

    def _new_files(self, paths: pa.Array, fresh: Ints, roles: pa.Array) -> pa.Table:
        """Return rows of paths without recorded accesses; their exact share is 0."""
        n, count = self.base.flow.files.num_rows, len(fresh)
        size = self.size[fresh]
        columns = {
            "file": n + np.arange(count),
            "lineage": len(self.base.objects) + np.arange(count),
            "version": np.zeros(count, np.int32),
            "path": paths,
            "other_paths": even_lists(pa.array([], pa.binary()), count, 0),
            "role": roles,
            "size_bytes": pa.array(size, mask=size < 0),
            "deleted": np.zeros(count, bool),
            "exact_share": np.zeros(count),
            "concurrent": np.zeros(count, bool),
        }
        return pa.table([pa.array(columns[name]) for name in FILES.names], schema=FILES)

    def _exact_shares(self) -> np.ndarray:
        """Return the exact share of the known rows, lowered by declared bytes."""
        flow, n = self.base.flow, self.base.flow.files.num_rows
        seen = np.zeros(n)
        for table in (flow.producers, flow.consumers):
            np.add.at(seen, column(table, "file"), column(table, "bytes").astype(float))
        more = np.bincount(self.row[self.uses.path[self.users]], self.moved, n)
        share = np.asarray(flow.files.column("exact_share").to_numpy())
        return np.where(more[:n] > 0, share * seen / np.maximum(seen + more[:n], 1), share)
