"""Which rows of the bundle's `files` are one file, and which files follow each other.

An object is one inode with all its names; the same name on a shared mount of several hosts is
one object. A lineage is the sequence of objects that were called by one path: rename over a
file, or unlink and create, begins a new object of the same lineage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, ints, lookup, order_by, starts_of
from tracehint.analyzer.columns import binary, column, numbers
from tracehint.analyzer.flow.model import UNKNOWN, Objects
from tracehint.analyzer.flow.mounts import merge_hosts
from tracehint.analyzer.flow.names import Held, NameRows, history
from tracehint.analyzer.flow.ranges import expand
from tracehint.analyzer.memory import give_back

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

IsSoftware = Callable[["pa.Array"], "pa.Array"]
TaskOf = Callable[[Ints], Ints]  # process epochs -> tasks


def build_objects(bundle: Bundle, task_of: TaskOf, is_software: IsSoftware) -> Objects:
    """The data files of the bundle as objects, with names, lineages and sizes."""
    return judged(*find_objects(bundle), task_of, is_software)


def judged(objects: Objects, creator: Ints, task_of: TaskOf, is_software: IsSoftware) -> Objects:
    """The objects of `find_objects` with what tasks and data roots decide."""
    objects.maker = np.where(creator == UNKNOWN, UNKNOWN, task_of(creator))
    objects.existed[(objects.maker >= 0) & (objects.existed == UNKNOWN)] = 0
    software = is_software(objects.path).to_numpy(zero_copy_only=False)
    objects.software = np.asarray(software, bool)
    return objects


def find_objects(bundle: Bundle) -> tuple[Objects, Ints]:
    """The objects without what tasks decide (`judged`), and per object its creator or UNKNOWN."""
    import pyarrow.compute as pc

    files = bundle.tables["files"]
    regular = files.filter(pc.equal(files.column("kind"), "file"))
    regular = regular.take(order_by(column(regular, "file")))
    ids = column(regular, "file")
    keep = starts_of(ids)  # a damaged bundle may repeat an identifier
    regular, ids = regular.take(keep), ids[keep]
    names = bundle.tables["names"]
    of_row, scope = merge_hosts(bundle, regular, ids, names)
    count = int(of_row.max()) + 1 if len(of_row) else 0
    rows = _name_rows(names, files, ids, of_row)
    held, distinct = history(rows, scope)
    give_back()
    path, others, gone = _paths(held, distinct, count)
    lineage, rank = _lineages(held, path, scope)
    deleted = np.ones(count, bool)
    np.logical_and.at(deleted, of_row, column(regular, "deleted") == 1)
    give_back()
    opened, creator = _first_opens(bundle, ids, of_row, count)
    objects = Objects(
        file_ids=ids,
        file_obj=of_row,
        existed=_existed(column(regular, "existed"), of_row, count),
        size=_sizes(column(regular, "size_bytes"), of_row, count),
        opened_size=opened,
        deleted=deleted | gone,
        lineage=lineage,
        rank=rank,
        software=np.zeros(count, bool),
        path=path,
        other_paths=others,
        maker=np.full(count, UNKNOWN, np.int64),
        unsized=np.zeros(count, bool),
        hosts=len(pc.unique(files.column("host"))),
    )
    order = order_by(lineage, rank)
    return objects.reordered(order), creator[order]


def _sizes(known: Ints, of_row: Ints, count: int) -> Ints:
    """The largest that a host saw, or UNKNOWN."""
    size = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(size, of_row, known)
    return size


def _existed(known: Ints, of_row: Ints, count: int) -> Ints:
    """0: made in the run, as soon as one host saw it made; 1: there before; UNKNOWN."""
    existed = np.full(count, 2, np.int64)
    np.minimum.at(existed, of_row, np.where(known == UNKNOWN, 2, known))
    return np.where(existed == 2, UNKNOWN, existed)


def _name_rows(names: pa.Table, files: pa.Table, ids: Ints, of_row: Ints) -> NameRows:
    import pyarrow.compute as pc

    ordered = names.take(order_by(column(names, "t_ns"), column(names, "seq")))
    op = pc.dictionary_encode(ordered.column("op").combine_chunks())
    file = column(ordered, "file")
    directories = np.sort(column(files.filter(pc.equal(files.column("kind"), "dir")), "file"))
    return NameRows(
        obj=lookup(ids, of_row, file),
        directory=lookup(directories, directories, file) != UNKNOWN,
        t=column(ordered, "t_ns"),
        seq=np.arange(len(file)),
        op=op.dictionary.to_pylist(),
        code=ints(op.indices.to_numpy(zero_copy_only=False)),
        path=binary(ordered, "path"),
        new_path=binary(ordered, "new_path"),
    )


def _paths(held: Held, distinct: pa.Array, count: int) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """Per object its last name, its other names, and whether it has no name left."""
    import pyarrow as pa

    when = np.where(held.held, held.gained, held.lost)
    order = order_by(held.obj, held.held.astype(np.int64), when, held.gained_seq)
    obj, path = held.obj[order], held.path[order]
    first = starts_of(obj)
    last = np.append(first[1:], len(obj))[: len(first)] - 1
    primary = np.full(count, UNKNOWN, np.int64)
    primary[obj[last]] = path[last]
    gone = np.zeros(count, bool)
    gone[obj[last]] = ~held.held[order][last]
    lists = np.zeros(count + 1, np.int64)
    np.add.at(lists, obj[last] + 1, last - first)
    _, rest = expand(first, last)
    empty = pa.array([b""], pa.binary())
    names = pa.concat_arrays([distinct.cast(pa.binary()), empty])
    taken = names.take(pa.array(np.where(primary < 0, len(distinct), primary)))
    others = pa.ListArray.from_arrays(
        pa.array(np.cumsum(lists), pa.int32()), names.take(pa.array(path[rest]))
    )
    return taken, others, gone


def _lineages(held: Held, path: pa.Array, scope: Ints) -> tuple[Ints, Ints]:
    """Per object its lineage (scope and last name) and its place in it, by time."""
    count = len(path)
    code = ints(path.dictionary_encode().indices.to_numpy(zero_copy_only=False))
    nameless = np.ones(count, bool)
    nameless[held.obj] = False
    code = np.where(nameless, len(path) + np.arange(count), code)  # never share a lineage
    begin = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(begin, held.obj, held.gained)
    order = order_by(scope, code, begin)
    first = starts_of(scope[order], code[order])
    lineage, rank = np.empty(count, np.int64), np.empty(count, np.int64)
    sizes = np.diff(np.append(first, count))
    lineage[order] = np.repeat(np.arange(len(first)), sizes)
    rank[order] = np.arange(count) - np.repeat(first, sizes)
    return lineage, rank


def _first_opens(bundle: Bundle, ids: Ints, of_row: Ints, count: int) -> tuple[Ints, Ints]:
    """Per object: its size at the first open, and the process that created it."""
    opens = bundle.tables["opens"]
    obj = lookup(ids, of_row, numbers(opens, "file"))
    when, size = numbers(opens, "open_ns"), numbers(opens, "size_at_open")
    opened, creator = np.full(count, UNKNOWN, np.int64), np.full(count, UNKNOWN, np.int64)
    at = _first(np.flatnonzero((obj >= 0) & (size >= 0)), obj, when)
    opened[obj[at]] = size[at]
    at = _first(np.flatnonzero((obj >= 0) & (numbers(opens, "created") == 1)), obj, when)
    creator[obj[at]] = numbers(opens, "proc")[at]
    return opened, creator


def _first(rows: Ints, obj: Ints, when: Ints) -> Ints:
    """Of these rows the earliest of each object."""
    rows = rows[order_by(obj[rows], when[rows])]
    return rows[starts_of(obj[rows])]
