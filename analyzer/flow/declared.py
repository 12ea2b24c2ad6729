"""What a workflow's graph or log declares, beside what was observed.

A declared input or output stands for the whole file and is never exact. A task that was not
observed becomes producer or consumer by its declaration. Between tasks that were observed a
declaration adds an edge (via `declared`) only where the collector can have missed it (blind.py).
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, in_turn, ints, order_by, starts_of
from tracehint.analyzer.columns import binary, coded, column
from tracehint.analyzer.flow.model import UNKNOWN, Objects, Rows
from tracehint.analyzer.flow.ranges import expand
from tracehint.analyzer.path_rules import ODD

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


@dataclass
class DeclaredRows:
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
    of_row: Ints  # the same per row of the table of declared tasks
    parents: tuple[Ints, Ints]  # (child, parent), sorted by child


@dataclass
class Uses(Rows):
    """Distinct declared (path, task, direction), sorted by path; `size` UNKNOWN or bytes."""

    path: Ints
    task: Ints
    out: Bools
    size: Ints


def taken(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> tuple[DeclaredRows, Uses, pa.Array]:
    """The declared tasks, inputs and outputs, and the distinct paths of these. The bundle has
    none of them after this."""
    declared = read_tasks(bundle, joined, tasks)
    uses, paths = read_uses(bundle, declared)
    for name in ("declared_io", "declared_tasks"):
        bundle.tables[name] = bundle.tables[name].schema.empty_table()
    return declared, uses, paths


def read_tasks(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> DeclaredRows:
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
    at = _index(rows.column("task").combine_chunks(), text.dictionary)
    read = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(read, at[at >= 0], column(rows, "read_bytes")[at >= 0])
    parents = _parents(rows, at, text.dictionary)
    return DeclaredRows(text.dictionary, first, last, seen, read, of_task, at, parents)


def _index(values: pa.Array, known: pa.Array) -> Ints:
    """Position of each value among the known ones, or UNKNOWN."""
    if values.equals(known):
        return np.arange(len(known))
    return ints(pc.fill_null(pc.index_in(values, value_set=known), UNKNOWN).to_numpy())


def _parents(rows: pa.Table, at: Ints, names: pa.Array) -> tuple[Ints, Ints]:
    lists = rows.column("parents").combine_chunks()
    child = at[ints(pc.list_parent_indices(lists).to_numpy())]
    parent = _index(pc.list_flatten(lists), names)
    keep = (child >= 0) & (parent >= 0)
    child, parent = child[keep], parent[keep]
    order = order_by(child, parent)
    return child[order], parent[order]


def read_uses(bundle: Bundle, declared: DeclaredRows) -> tuple[Uses, pa.Array]:
    """The declared inputs and outputs of known tasks, and the distinct absolute paths."""
    table = bundle.tables["declared_io"]
    code, texts = coded(table, "task")
    task = _index(texts, declared.names)[code]
    if not (task >= 0).all():
        table = table.filter(pa.array(task >= 0))
        task = task[task >= 0]
    path, names = _absolute(bundle, *coded(table, "path"), task, declared)
    code, texts = coded(table, "direction")
    out = np.array([text == "out" for text in texts.to_pylist()], bool)[code]
    size = column(table, "size_bytes")
    order = order_by(path, task, out)
    first = starts_of(path[order], task[order], out[order])
    if len(first) < len(order):  # of those that are there twice, the last is the one with a size
        order = order[order_by(np.repeat(first, np.diff([*first, len(order)])), size[order])]
    last = order[np.append(first[1:], len(order))[: len(first)] - 1]
    return Uses(path[last], task[last], out[last], size[last]), names


def _absolute(
    bundle: Bundle, code: Ints, paths: pa.Array, task: Ints, declared: DeclaredRows
) -> tuple[Ints, pa.Array]:
    """(number of each path, the distinct ones): joined to their task's directory, else to that of
    the run. In the order of their first rows; a name is joined once for each directory. `code`:
    which of the paths it is."""
    folder, folders = _folders(bundle, declared)
    folder = folder[task]
    alike = not len(folder) or int(folder.min()) == int(folder.max())
    number, rows = in_turn(code if alike else folder * max(1, len(paths)) + code)
    used = code[rows]
    if len(used) < len(paths) or not np.array_equal(used, np.arange(len(used))):
        paths = paths.take(pa.array(used))
    whole = _normal(_joined(folders.take(pa.array(folder[rows])), paths))
    if alike and whole is paths:
        return number, paths
    normal = whole.dictionary_encode()
    return ints(normal.indices.to_numpy(zero_copy_only=False))[number], normal.dictionary


def _folders(bundle: Bundle, declared: DeclaredRows) -> tuple[Ints, pa.Array]:
    """(number of each declared task's directory, the directories)."""
    rows = bundle.tables["declared_tasks"]
    cwd = bundle.manifest.cwd.encode("utf-8", "surrogateescape")
    own = pc.fill_null(binary(rows, "workdir"), cwd).dictionary_encode()
    at = declared.of_row
    known = np.flatnonzero(at >= 0)[::-1]  # the first row of a task decides
    number = np.full(len(declared.names), len(own.dictionary), np.int64)
    number[at[known]] = ints(own.indices.to_numpy(zero_copy_only=False))[known]
    return number, pa.concat_arrays([own.dictionary, pa.array([cwd], pa.binary())])


def _joined(folders: pa.Array, paths: pa.Array) -> pa.Array:
    keep = pc.or_(pc.starts_with(paths, b"/"), pc.equal(pc.binary_length(folders), 0))
    if pc.all(keep).as_py():
        return paths
    inside = pc.binary_join_element_wise(folders, paths, b"/")
    return pc.if_else(keep, paths, inside)


def _normal(paths: pa.Array) -> pa.Array:
    """Paths without `.`, `..` and doubled slashes; only odd ones are touched."""
    odd = pc.match_substring_regex(paths, ODD)
    names = paths.filter(odd).to_pylist()
    if not names:
        return paths
    return pc.replace_with_mask(paths, odd, pa.array(map(posixpath.normpath, names), pa.binary()))


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


def pairs(uses: Uses, declared: DeclaredRows) -> tuple[Ints, Ints]:
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
