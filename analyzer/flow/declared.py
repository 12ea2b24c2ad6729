"""What a workflow's graph or log declares, beside what was observed.

A declared input or output stands for the whole file and is never exact. A task that was not
observed becomes producer or consumer by its declaration. Between tasks that were observed a
declaration adds an edge (via `declared`) only where the collector can have missed it (blind.py).
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, ints, order_by, starts_of
from tracehint.analyzer.columns import binary, column
from tracehint.analyzer.flow.model import UNKNOWN, Objects, Rows
from tracehint.analyzer.flow.ranges import expand

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_ODD = re.compile(rb"//|/\.\.?(?:/|$)|/$")


@dataclass
class Declared:
    """The declared tasks: text, observed tasks that stand for each, and what is known of each.

    `first` and `last` are positions in the sorted task table; `read` is UNKNOWN or the bytes
    that the log says it read.
    """

    names: pa.Array
    first: Ints
    last: Ints
    observed: Bools
    read: Ints
    of_task: Ints  # per task its declared one, or UNKNOWN
    parents: tuple[Ints, Ints]  # (child, parent), sorted by child


@dataclass
class Uses(Rows):
    """Distinct declared (path, task, direction), sorted by path; `size` UNKNOWN or bytes."""

    path: Ints
    task: Ints
    out: Bools
    size: Ints


def read_tasks(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> Declared:
    """`joined` maps declared texts to task ids; `tasks` is sorted by id."""
    ids = column(tasks, "task")
    text = joined.column("declared").combine_chunks().dictionary_encode()
    code = ints(text.indices.to_numpy(zero_copy_only=False))
    place = np.searchsorted(ids, column(joined, "task"))
    count = len(text.dictionary)
    first, last = np.full(count, len(ids)), np.full(count, UNKNOWN, np.int64)
    np.minimum.at(first, code, place)
    np.maximum.at(last, code, place)
    seen = np.zeros(count, bool)
    observed = pc.not_equal(tasks.column("source"), "declared").to_numpy()
    np.logical_or.at(seen, code, observed[place])
    of_task = np.full(len(ids), UNKNOWN, np.int64)
    of_task[place[::-1]] = code[::-1]
    rows = bundle.tables["declared_tasks"]
    at = _index(rows.column("task"), text.dictionary)
    read = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(read, at[at >= 0], column(rows, "read_bytes")[at >= 0])
    return Declared(
        text.dictionary, first, last, seen, read, of_task, _parents(rows, at, text.dictionary)
    )


def _index(values: pa.Array, known: pa.Array) -> Ints:
    """Position of each value among the known ones, or UNKNOWN."""
    return ints(pc.fill_null(pc.index_in(values, value_set=known), UNKNOWN).to_numpy())


def _parents(rows: pa.Table, at: Ints, names: pa.Array) -> tuple[Ints, Ints]:
    lists = rows.column("parents").combine_chunks()
    child = at[ints(pc.list_parent_indices(lists).to_numpy())]
    parent = _index(pc.list_flatten(lists), names)
    keep = (child >= 0) & (parent >= 0)
    child, parent = child[keep], parent[keep]
    order = order_by(child, parent)
    return child[order], parent[order]


def read_uses(bundle: Bundle, declared: Declared) -> tuple[Uses, pa.Array]:
    """The declared inputs and outputs of known tasks, and the distinct absolute paths."""
    table = bundle.tables["declared_io"]
    task = _index(table.column("task"), declared.names)
    table = table.filter(pa.array(task >= 0))
    task = task[task >= 0]
    encoded = _absolute(bundle, table).dictionary_encode()
    normal = _normal(encoded.dictionary).dictionary_encode()
    path = ints(normal.indices.to_numpy(zero_copy_only=False))[
        encoded.indices.to_numpy(zero_copy_only=False)
    ]
    out = pc.equal(table.column("direction"), "out").to_numpy().astype(bool)
    size = column(table, "size_bytes")
    order = order_by(path, task, out.astype(np.int64), size)
    path, task, out, size = path[order], task[order], out[order], size[order]
    first = starts_of(path, task, out.astype(np.int64))
    last = np.append(first[1:], len(path))[: len(first)] - 1  # the one with a size
    return Uses(path[last], task[last], out[last], size[last]), normal.dictionary


def _absolute(bundle: Bundle, table: pa.Table) -> pa.Array:
    """Paths joined to their task's directory, else to that of the run."""
    path = binary(table, "path")
    rows = bundle.tables["declared_tasks"]
    at = pc.index_in(table.column("task"), value_set=rows.column("task").combine_chunks())
    cwd = bundle.manifest.cwd.encode("utf-8", "surrogateescape")
    folder = pc.fill_null(binary(rows, "workdir").take(at.combine_chunks()), cwd)
    inside = pc.binary_join_element_wise(folder, path, b"/")
    keep = pc.or_(pc.starts_with(path, b"/"), pc.equal(pc.binary_length(folder), 0))
    return pc.if_else(keep, path, inside)


def _normal(paths: pa.Array) -> pa.Array:
    """Paths without `.`, `..` and doubled slashes; only odd ones are touched."""
    names = paths.to_pylist()
    return pa.array([posixpath.normpath(n) if _ODD.search(n) else n for n in names], pa.binary())


def objects_of(paths: pa.Array, objects: Objects) -> Ints:
    """The object that each path names (the last of its lineage), or UNKNOWN."""
    count = len(objects)
    if not count:
        return np.full(len(paths), UNKNOWN, np.int64)
    others = objects.other_paths
    owner = ints(pc.list_parent_indices(others).to_numpy())
    backwards = pa.array(np.arange(count)[::-1].copy())
    names = pa.concat_arrays([objects.path.take(backwards), pc.list_flatten(others)])
    obj = np.concatenate([np.arange(count)[::-1], owner, [UNKNOWN]])
    return obj[_index(paths, names)]


def pairs(uses: Uses, declared: Declared) -> tuple[Ints, Ints]:
    """Rows (out, in) of `uses` that declare a handover of one path between two tasks.

    Where the reader's declared parents wrote the path, the other writers are left out.
    """
    order = order_by(uses.path, (~uses.out).astype(np.int64))
    first = starts_of(uses.path[order])
    stop = np.append(first[1:], len(order))[: len(first)]
    outs = np.add.reduceat(uses.out[order].astype(np.int64), first) if len(first) else first
    group = np.repeat(np.arange(len(first)), stop - first)
    inner = ~uses.out[order]
    reader = order[inner]
    i, j = expand(first[group[inner]], (first + outs)[group[inner]])
    writer, reader = order[j], reader[i]
    p, c = uses.task[writer], uses.task[reader]
    child, parent = declared.parents
    count = len(declared.names)
    known = child * count + parent
    key = c * count + p
    at = np.minimum(np.searchsorted(known, key), max(len(known) - 1, 0))
    by_parent = known[at] == key if len(known) else np.zeros(len(key), bool)
    fed = np.zeros(len(uses), bool)
    fed[reader[by_parent]] = True
    keep = (p != c) & (by_parent | ~fed[reader])
    return writer[keep], reader[keep]
