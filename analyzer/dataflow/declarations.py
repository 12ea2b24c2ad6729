"""Declared inputs and outputs of tasks, from a workflow's graph or log.

A declared input or output means the whole file and is never exact. A task that was not
observed becomes producer or consumer by its declaration. Between observed tasks a declaration
adds an edge (via `declared`) only where the collector may have missed it (additions.py).
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    binary,
    column,
    encode_column,
    in_order,
    ints,
    number_values,
    order_by,
    places,
    starts_of,
)
from tracehint.analyzer.dataflow.identity import find_objects
from tracehint.analyzer.dataflow.model import UNKNOWN, Objects, Rows
from tracehint.analyzer.dataflow.ranges import expand
from tracehint.analyzer.path_rules import ODD

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


@dataclass
class DeclaredRows:
    """Declared tasks: their texts, the tasks that represent each, and its properties.

    `first` and `last` are positions in the sorted task table; `read` is the number of bytes read
    according to the log, or UNKNOWN.
    """

    names: pa.Array
    first: Ints
    last: Ints
    observed: Bools
    read: Ints
    of_task: Ints  # declared task of each task, or UNKNOWN
    of_row: Ints  # declared task of each row of the table of declared tasks, or UNKNOWN
    parents: tuple[Ints, Ints]  # (child, parent), sorted by child


@dataclass
class Uses(Rows):
    """Distinct declared (path, task, direction), sorted by path; `size` is in bytes or UNKNOWN."""

    path: Ints
    task: Ints
    out: Bools
    size: Ints


T = TypeVar("T")


class Start(Protocol):
    """Starts work, possibly in the background, and returns a function that waits for its result,
    to be called once."""

    def __call__(self, work: Callable[[], T], /) -> Callable[[], T]: ...


# Waits for the distinct declared paths; returns them and a function that waits for the rest.
Reading = Callable[[], tuple[pa.Array, Callable[[], tuple[DeclaredRows, Uses]]]]


def start_reading(bundle: Bundle, joined: pa.Table, tasks: pa.Table, start: Start) -> Reading:
    """Start to read the declared tasks, inputs and outputs. The paths come first, because later
    steps need them. `joined` maps declared texts to task ids. The bundle must keep the two tables
    until everything is read; nothing needs them afterwards."""

    def named() -> tuple[pa.Array, Callable[[], tuple[DeclaredRows, Uses]]]:
        declared = read_tasks(bundle, joined, in_order(tasks, "task"))
        path, paths, task, table = read_paths(bundle, declared)

        def rest() -> tuple[DeclaredRows, Uses]:
            uses = read_uses(table, path, task)
            declared.parents = _parents(bundle.tables["declared_tasks"], declared)
            return declared, uses

        return paths, start(rest)

    return start(named)


def read_tasks(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> DeclaredRows:
    """Return all but the parents. `joined` maps declared texts to task ids; `tasks` is sorted."""
    ids = column(tasks, "task")
    text = joined.column("declared").combine_chunks().dictionary_encode()
    code = ints(text.indices.to_numpy(zero_copy_only=False))
    place = places(ids, column(joined, "task"))
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
    at = _find_positions(rows.column("task").combine_chunks(), text.dictionary)
    read = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(read, at[at >= 0], column(rows, "read_bytes")[at >= 0])
    return DeclaredRows(text.dictionary, first, last, seen, read, of_task, at, (at[:0], at[:0]))


def _find_positions(values: pa.Array, known: pa.Array) -> Ints:
    """Return the position of each value among the known ones, or UNKNOWN."""
    if values.equals(known):
        return np.arange(len(known))
    return ints(pc.fill_null(pc.index_in(values, value_set=known), UNKNOWN).to_numpy())


def _parents(rows: pa.Table, declared: DeclaredRows) -> tuple[Ints, Ints]:
    lists = rows.column("parents").combine_chunks()
    child = declared.of_row[ints(pc.list_parent_indices(lists).to_numpy())]
    parent = _find_positions(pc.list_flatten(lists), declared.names)
    keep = (child >= 0) & (parent >= 0)
    child, parent = child[keep], parent[keep]
    order = order_by(child, parent)
    return child[order], parent[order]


def read_paths(bundle: Bundle, declared: DeclaredRows) -> tuple[Ints, pa.Array, Ints, pa.Table]:
    """Return (path number of each row, distinct absolute paths, task of each row, rows) of the
    declarations of known tasks."""
    table = bundle.tables["declared_io"]
    task = _tasks_of(table.column("task"), declared.names)
    if not (task >= 0).all():
        table = table.filter(pa.array(task >= 0))
        task = task[task >= 0]
    return *_absolute(bundle, *encode_column(table, "path"), task, declared), task, table


def _tasks_of(texts: pa.ChunkedArray, names: pa.Array) -> Ints:
    """Return the position of each text among the names, or UNKNOWN; a dictionary-encoded column is
    searched once per distinct text of each chunk."""
    if not pa.types.is_dictionary(texts.type) or not texts.num_chunks:
        return _find_positions(texts.cast(names.type).combine_chunks(), names)
    known = _find_positions(pa.concat_arrays([part.dictionary for part in texts.chunks]), names)
    ends = np.cumsum([len(part.dictionary) for part in texts.chunks]).tolist()
    parts = [
        known[low:high][part.indices.to_numpy(zero_copy_only=False)]
        for low, high, part in zip([0, *ends], ends, texts.chunks, strict=False)
    ]
    return np.concatenate(parts)


def read_uses(table: pa.Table, path: Ints, task: Ints) -> Uses:
    """Return the distinct rows; `path` and `task` are the numbers of each row's path and task."""
    code, texts = encode_column(table, "direction")
    out = np.array([text == "out" for text in texts.to_pylist()], bool)[code]
    size = column(table, "size_bytes")
    order = order_by(path, task, out)
    first = starts_of(path[order], task[order], out[order])
    if len(first) < len(order):  # of duplicates keep one with a size, sorted last
        order = order[order_by(np.repeat(first, np.diff([*first, len(order)])), size[order])]
    last = order[np.append(first[1:], len(order))[: len(first)] - 1]
    return Uses(path[last], task[last], out[last], size[last])


def _absolute(
    bundle: Bundle, code: Ints, paths: pa.Array, task: Ints, declared: DeclaredRows
) -> tuple[Ints, pa.Array]:
    """Return (number of each path, distinct paths), joined to their task's directory, else to that
    of the run. Paths are in the order of their first rows; each is joined once per directory.
    `code` is the index of each row's name in `paths`."""
    folder, folders = _folders(bundle, declared)
    folder = folder[task]
    alike = not len(folder) or int(folder.min()) == int(folder.max())
    number, rows = number_values(code if alike else folder * max(1, len(paths)) + code)
    used = code[rows]
    if len(used) < len(paths) or not np.array_equal(used, np.arange(len(used))):
        paths = paths.take(pa.array(used))
    if alike:
        whole = _join_folders(folders[int(folder[0])] if len(folder) else folders[0], paths)
    else:
        whole = _join_folders(folders.take(pa.array(folder[rows])), paths)
    odd = pc.match_substring_regex(whole, ODD)
    if alike and whole is paths:
        return _merge_paths(number, paths, odd)
    normal = _normal(whole, odd).dictionary_encode()
    return ints(normal.indices.to_numpy(zero_copy_only=False))[number], normal.dictionary


def _merge_paths(number: Ints, paths: pa.Array, odd: pa.Array) -> tuple[Ints, pa.Array]:
    """Normalise the `odd` ones of distinct paths, and renumber the paths where two become equal.
    The others do not change."""
    short = _normal(paths, odd)
    if short is paths:
        return number, paths
    some = pc.is_in(short, value_set=short.filter(odd)).to_numpy(zero_copy_only=False)
    at = np.flatnonzero(some)
    forms = short.take(pa.array(at)).dictionary_encode()
    code = ints(forms.indices.to_numpy(zero_copy_only=False))
    _, first = number_values(code)
    new = np.ones(len(paths), bool)
    new[at] = False
    new[at[first]] = True
    place = np.cumsum(new) - 1
    place[at] = place[at[first][code]]
    return place[number], short.filter(pa.array(new))


def _folders(bundle: Bundle, declared: DeclaredRows) -> tuple[Ints, pa.Array]:
    """Return (directory number of each declared task, distinct directories)."""
    rows = bundle.tables["declared_tasks"]
    cwd = bundle.manifest.cwd.encode("utf-8", "surrogateescape")
    own = pc.fill_null(binary(rows, "workdir"), cwd).dictionary_encode()
    at = declared.of_row
    known = np.flatnonzero(at >= 0)[::-1]  # the first row of a task decides
    number = np.full(len(declared.names), len(own.dictionary), np.int64)
    number[at[known]] = ints(own.indices.to_numpy(zero_copy_only=False))[known]
    return number, pa.concat_arrays([own.dictionary, pa.array([cwd], pa.binary())])


def _join_folders(folders: pa.Array | pa.Scalar, paths: pa.Array) -> pa.Array:
    keep = pc.or_(pc.starts_with(paths, b"/"), pc.equal(pc.binary_length(folders), 0))
    if pc.all(keep).as_py():
        return paths
    inside = pc.binary_join_element_wise(folders, paths, b"/")
    return pc.if_else(keep, paths, inside)


def _normal(paths: pa.Array, odd: pa.Array) -> pa.Array:
    """Return the paths without `.`, `..` and doubled slashes; only `odd` ones are changed."""
    names = paths.filter(odd).to_pylist()
    if not names:
        return paths
    return pc.replace_with_mask(paths, odd, pa.array(map(posixpath.normpath, names), pa.binary()))


def objects_of(paths: pa.Array, objects: Objects) -> Ints:
    """Return the object that each path names (the last of its lineage), or UNKNOWN."""
    count = len(objects)
    if not count:
        return np.full(len(paths), UNKNOWN, np.int64)
    others = objects.other_paths
    owner = ints(pc.list_parent_indices(others).to_numpy())
    backwards = pa.array(np.arange(count)[::-1].copy())
    names = pa.concat_arrays([objects.path.take(backwards), pc.list_flatten(others)])
    obj = np.concatenate([np.arange(count)[::-1], owner, [UNKNOWN]])
    return obj[_find_positions(paths, names)]


def pairs(uses: Uses, declared: DeclaredRows) -> tuple[Ints, Ints]:
    """Return rows (out, in) of `uses` in which two tasks declare to write and to read one path.

    If declared parents of the reader write the path, other writers are excluded.
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


@dataclass(frozen=True)
class Pending:
    """Work started early: functions that wait for the results, each to be called once."""

    found: Callable[[], tuple[Objects, Ints]]  # `find_objects`
    declared: Reading | None  # None: nothing is declared
    start: Start


def declared_of(bundle: Bundle, joined: pa.Table, tasks: pa.Table, start: Start) -> Reading | None:
    """Start to read the declarations; None if there are none. The bundle must keep its tables."""
    if not bundle.tables["declared_io"].num_rows or not joined.num_rows:
        return None
    return start_reading(bundle, joined, tasks, start)


def work_on_demand(bundle: Bundle, joined: pa.Table, tasks: pa.Table) -> Pending:
    """Return an `Pending` that computes everything on demand."""
    declared = declared_of(bundle, joined, tasks, _defer)
    return Pending(partial(find_objects, bundle), declared, _defer)


def _defer(work: Callable[[], T]) -> Callable[[], T]:
    return work
