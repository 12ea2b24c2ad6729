"""Data files as objects: identity across hosts, names over time, lineages and sizes.

A mount is shared if its file system is a network one and two hosts report the same source. A file
is identified by its path below the mount, confirmed by equal inode numbers; file systems that
number inodes per client (some FUSE ones) use the path alone, if each host has one file there.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    binary,
    column,
    ints,
    lookup,
    numbers,
    order_by,
    starts_of,
)
from tracehint.analyzer.dataflow.model import HUGE, UNKNOWN, Objects, Rows
from tracehint.analyzer.dataflow.ranges import expand
from tracehint.analyzer.memory import give_back
from tracehint.schemas.mounts import is_network

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


# Names of each file over time: the current one and the others that it had.
#
# A gain is a name that an object gets (create, open, link, rename), a loss one that is removed
# (unlink, rename) or that another object takes over. Directory renames move all names below.


@dataclass
class NameChanges(Rows):
    """Gains and losses of names; `path` is an index into the distinct paths."""

    obj: Ints
    path: Ints
    t: Ints
    seq: Ints
    gain: Bools


@dataclass
class Held(Rows):
    """Distinct (object, path): when it was last gained, and until when it was or is held."""

    obj: Ints
    path: Ints
    gained: Ints  # nanoseconds
    gained_seq: Ints
    lost: Ints  # nanoseconds; meaningless while `held`
    held: Bools


@dataclass
class NameRows:
    """Rows of the bundle's `names`, in order: objects (UNKNOWN: not a data file) and names."""

    obj: Ints
    directory: Bools
    t: Ints
    seq: Ints
    op: list[str]  # op names by code
    code: Ints
    path: pa.Array
    new_path: pa.Array


def trace_names(rows: NameRows, scope: Ints) -> tuple[Held, pa.Array]:
    """Return when each object held each name, and the distinct names (binary).

    `scope` is per object: names are compared within one scope only (a host, a shared mount).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    two = pa.concat_arrays([rows.path, pc.fill_null(rows.new_path, b"")]).dictionary_encode()
    codes = ints(two.indices.to_numpy(zero_copy_only=False))
    distinct = two.dictionary
    old, new = codes[: len(rows.obj)], codes[len(rows.obj) :]
    changes = _find_changes(rows, old, new)
    moves = _directory_moves(rows)
    if moves:
        changes, distinct = _move_below(changes, distinct, moves)
    return _object_paths(changes, scope), distinct


def _find_changes(rows: NameRows, old: Ints, new: Ints) -> NameChanges:
    def is_op(*names: str) -> Bools:
        wanted = [i for i, name in enumerate(rows.op) if name in names]
        return np.isin(rows.code, wanted) & (rows.obj >= 0)

    def part(where: Bools, path: Ints, gain: bool) -> NameChanges:
        at = np.flatnonzero(where)
        return NameChanges(
            rows.obj[at], path[at], rows.t[at], 2 * rows.seq[at] + gain, np.full(len(at), gain)
        )

    return NameChanges.concat_parts(
        [
            part(is_op("open", "create"), old, True),
            part(is_op("rename", "exchange"), old, False),
            part(is_op("rename", "exchange", "link"), new, True),
            part(is_op("unlink"), old, False),
            *_exchange_partners(rows, old, new),
        ]
    )


def _exchange_partners(rows: NameRows, old: Ints, new: Ints) -> list[NameChanges]:
    """Return the turns of the other file of each exchange; one row may represent both files."""
    parts = []
    for i in np.flatnonzero(rows.code == _code(rows.op, "exchange")).tolist():
        before = (old == new[i]) | ((new == new[i]) & (rows.new_path.is_valid().to_numpy(False)))
        before &= (rows.obj >= 0) & (rows.obj != rows.obj[i]) & (rows.seq < rows.seq[i])
        found = np.flatnonzero(before)
        if len(found):
            other = rows.obj[found[np.argmax(rows.seq[found])]]
            both = ints([new[i], old[i]])
            seq = 2 * rows.seq[i] + ints([0, 1])
            t = np.repeat(rows.t[i], 2)
            parts.append(NameChanges(np.repeat(other, 2), both, t, seq, np.array([False, True])))
    return parts


def _code(ops: list[str], name: str) -> int:
    return ops.index(name) if name in ops else -1


def _directory_moves(rows: NameRows) -> list[tuple[int, int, bytes, bytes]]:
    """Return (t, seq, old, new) of every renamed directory, in order."""
    moved = np.isin(rows.code, [_code(rows.op, "rename"), _code(rows.op, "exchange")])
    at = np.flatnonzero(moved & rows.directory)
    found = []
    for i in at[np.lexsort((rows.seq[at], rows.t[at]))].tolist():
        old, new = rows.path[i].as_py(), rows.new_path[i].as_py()
        if old and new and old != new:
            found.append((int(rows.t[i]), int(rows.seq[i]), old, new))
    return found


def _holders(changes: NameChanges) -> dict[int, list[tuple[int, int, int, bool]]]:
    """Return the gains and losses of each name: (t, seq, object, gain)."""
    holders: dict[int, list[tuple[int, int, int, bool]]] = {}
    columns = (changes.obj, changes.path, changes.t, changes.seq, changes.gain)
    for obj, path, t, seq, gain in zip(*(c.tolist() for c in columns), strict=True):
        holders.setdefault(path, []).append((t, seq, obj, gain))
    return holders


def _move_below(
    changes: NameChanges, distinct: pa.Array, moves: list[tuple[int, int, bytes, bytes]]
) -> tuple[NameChanges, pa.Array]:
    """Add losses and gains for the names below renamed directories.

    Only names below one of the directories are examined, by bisection.
    """
    import pyarrow as pa

    paths: list[bytes] = distinct.to_pylist()
    known = {path: i for i, path in enumerate(paths)}
    holders = _holders(changes)
    ordered = sorted(paths)
    added: list[tuple[int, int, int, int, bool]] = []
    for t, seq, old, new in moves:
        low = bisect.bisect_left(ordered, old + b"/")
        high = bisect.bisect_left(ordered, old + b"0")  # "0" follows "/"
        for name in ordered[low:high]:
            past = [h for h in holders.get(known[name], ()) if h[:2] < (t, 2 * seq)]
            if not past or not max(past)[3]:
                continue
            target = new + name[len(old) :]
            if target not in known:
                known[target] = len(paths)
                paths.append(target)
                bisect.insort(ordered, target)
            obj = max(past)[2]
            for path, gain in ((known[name], False), (known[target], True)):
                added.append((obj, path, t, 2 * seq + gain, gain))
                holders.setdefault(path, []).append((t, 2 * seq + gain, obj, gain))
    columns = np.array(added, np.int64).reshape(-1, 5).T
    more = NameChanges(columns[0], columns[1], columns[2], columns[3], columns[4].astype(bool))
    return NameChanges.concat_parts([changes, more]), pa.array(paths, pa.binary())


def _object_paths(changes: NameChanges, scope: Ints) -> Held:
    """Return one row per (object, path) from the turns of all names."""
    changes = changes.take(order_by(scope[changes.obj], changes.path, changes.t, changes.seq))
    # an unlink that is reported after another object took the name has no effect
    stale = ~changes.gain
    stale[1:] &= changes.gain[:-1] & (changes.obj[1:] != changes.obj[:-1])
    stale[1:] &= changes.path[1:] == changes.path[:-1]
    stale[:1] = False
    changes = changes.take(~stale)
    place, n = scope[changes.obj], len(changes)
    followed = np.zeros(n, bool)
    followed[:-1] = (place[1:] == place[:-1]) & (changes.path[1:] == changes.path[:-1])
    # per pair the last gain, or the last loss if it never had a gain
    pairs = order_by(changes.obj, changes.path, changes.gain.astype(np.int64), np.arange(n))
    first = starts_of(changes.obj[pairs], changes.path[pairs])
    at = pairs[np.append(first[1:], n)[: len(first)] - 1]
    lost = changes.t[np.minimum(at + 1, n - 1)] if n else at
    held = changes.gain[at] & ~followed[at]
    lost = np.where(changes.gain[at] & followed[at], lost, changes.t[at])
    return Held(changes.obj[at], changes.path[at], changes.t[at], changes.seq[at], lost, held)


def shared_mounts(bundle: Bundle) -> dict[tuple[str, str], list[tuple[str, bytes]]]:
    """Return the mounts that several hosts have: (fstype family, source) -> (host, mount point)."""
    found: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
    for host in bundle.manifest.hosts:
        for mount in host.mounts:
            fstype, source = str(mount.get("fstype", "")), str(mount.get("source", ""))
            if source and (is_network(fstype) or mount.get("shared") is True):
                family = "nfs" if fstype.startswith("nfs") else fstype
                point = str(mount.get("path", "")).encode("utf-8", "surrogateescape")
                found.setdefault((family, source), []).append((host.name, point.rstrip(b"/")))
    return {k: v for k, v in found.items() if len({host for host, _ in v}) > 1}


def merge_hosts(bundle: Bundle, files: pa.Table, ids: Ints, names: pa.Table) -> tuple[Ints, Ints]:
    """Return the object of each file row, numbered without gaps, and the name scope of each object.

    The scope of files on local file systems is their host, that of shared ones their mount.
    """
    from tracehint.analyzer.arrays import column

    hosts = files.column("host").combine_chunks().dictionary_encode()
    host = ints(hosts.indices.to_numpy(zero_copy_only=False))
    names_of_hosts = hosts.dictionary.to_pylist()
    mounts = shared_mounts(bundle) if len(names_of_hosts) > 1 else {}
    if not mounts:
        return np.arange(len(ids)), host
    known, shared, path = _shared_names(names, ids, mounts)
    label = np.arange(len(ids))
    scope = host.copy()
    scope[known] = len(names_of_hosts) + shared
    inode, origin = column(files, "ino"), host
    groups = (shared, path, inode[known])
    _unite_labels(label, known, groups)
    _unite_by_path(label, known, (shared, path), origin)
    _, of_row = np.unique(label, return_inverse=True)
    of_row = ints(of_row.reshape(-1))
    object_scope = np.zeros(int(of_row.max()) + 1, np.int64)
    np.maximum.at(object_scope, of_row, scope)
    return of_row, object_scope


def _shared_names(
    names: pa.Table, ids: Ints, mounts: dict[tuple[str, str], list[tuple[str, bytes]]]
) -> tuple[Ints, Ints, Ints]:
    """Return (file row, shared mount, code of the path below it) of each name on a shared mount."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.analyzer.arrays import binary, column

    rows = lookup(ids, np.arange(len(ids)), column(names, "file"))
    host = names.column("host").combine_chunks()
    found: list[tuple[Ints, Ints]] = []
    below: list[pa.Array] = []
    for number, places in enumerate(mounts.values()):
        for name, point in places:
            for text in (binary(names, "path"), binary(names, "new_path")):
                hit = pc.and_(pc.equal(host, name), pc.starts_with(text, point + b"/"))
                at = np.flatnonzero(pc.fill_null(hit, False).to_numpy(False) & (rows >= 0))
                found.append((rows[at], np.full(len(at), number)))
                below.append(
                    pc.binary_replace_slice(text.take(pa.array(at)), 0, len(point) + 1, b"")
                )
    codes = pa.concat_arrays(below).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return (
        np.concatenate([r for r, _ in found]),
        np.concatenate([n for _, n in found]),
        ints(codes),
    )


def _unite_labels(label: Ints, rows: Ints, keys: tuple[Ints, ...]) -> None:
    """Assign one label to the file rows of each group, until no label changes."""
    order = order_by(*keys)
    rows = rows[order]
    first = starts_of(*(k[order] for k in keys))
    sizes = np.diff(np.append(first, len(rows)))
    while len(rows):
        lowest = np.repeat(np.minimum.reduceat(label[rows], first), sizes)
        if np.array_equal(lowest, label[rows]):
            break
        np.minimum.at(label, rows, lowest)
        label[:] = label[label]


def _unite_by_path(label: Ints, rows: Ints, keys: tuple[Ints, ...], host: Ints) -> None:
    """Join by path alone where no inode number matched and each host has one file of that path."""
    order = order_by(*keys, host[rows], label[rows])
    rows = rows[order]
    keys = tuple(k[order] for k in keys)
    distinct = starts_of(*keys, host[rows], label[rows])
    rows, keys = rows[distinct], tuple(k[distinct] for k in keys)
    first = starts_of(*keys)
    sizes = np.diff(np.append(first, len(rows)))
    one_host = starts_of(*keys, host[rows])
    hosts = np.zeros(len(rows), np.int64)
    hosts[one_host] = 1
    group = np.repeat(np.arange(len(first)), sizes)
    lonely = np.bincount(group, hosts, len(first)) == sizes
    keep = lonely[group]
    _unite_labels(label, rows[keep], tuple(k[keep] for k in keys))


IsSoftware = Callable[["pa.Array"], "pa.Array"]
TaskOf = Callable[[Ints], Ints]  # process epochs -> tasks


def build_objects(bundle: Bundle, task_of: TaskOf, is_software: IsSoftware) -> Objects:
    """Return the data files of the bundle as objects, with names, lineages and sizes."""
    return complete_objects(*find_objects(bundle), task_of, is_software)


def complete_objects(
    objects: Objects, creator: Ints, task_of: TaskOf, is_software: IsSoftware
) -> Objects:
    """Complete the objects of `find_objects`, in place, by the tasks and data roots."""
    objects.maker = np.where(creator == UNKNOWN, UNKNOWN, task_of(creator))
    objects.existed[(objects.maker >= 0) & (objects.existed == UNKNOWN)] = 0
    software = is_software(objects.path).to_numpy(zero_copy_only=False)
    objects.software = np.asarray(software, bool)
    return objects


def find_objects(bundle: Bundle) -> tuple[Objects, Ints]:
    """Return the objects without what `complete_objects` sets, and the creator of each."""
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
    held, distinct = trace_names(rows, scope)
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
        existed=_existence_of(column(regular, "existed"), of_row, count),
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
    return objects.renumber_objects(order), creator[order]


def _sizes(known: Ints, of_row: Ints, count: int) -> Ints:
    """Return the largest size that a host recorded, or UNKNOWN."""
    size = np.full(count, UNKNOWN, np.int64)
    np.maximum.at(size, of_row, np.where(known > HUGE, UNKNOWN, known))
    return size


def _existence_of(known: Ints, of_row: Ints, count: int) -> Ints:
    """Return 0: created in the run, according to any host; 1: existed before; or UNKNOWN."""
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
    """Return per object its last name, its other names, and whether it has no name left."""
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
    """Return per object its lineage (scope and last name) and its rank in it, by time."""
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
    """Return per object its size at the first open, and the process that created it."""
    opens = bundle.tables["opens"]
    obj = lookup(ids, of_row, numbers(opens, "file"))
    when, size = numbers(opens, "open_ns"), numbers(opens, "size_at_open")
    opened, creator = np.full(count, UNKNOWN, np.int64), np.full(count, UNKNOWN, np.int64)
    at = _earliest_rows(np.flatnonzero((obj >= 0) & (size >= 0) & (size <= HUGE)), obj, when)
    opened[obj[at]] = size[at]
    at = _earliest_rows(np.flatnonzero((obj >= 0) & (numbers(opens, "created") == 1)), obj, when)
    creator[obj[at]] = numbers(opens, "proc")[at]
    return opened, creator


def _earliest_rows(rows: Ints, obj: Ints, when: Ints) -> Ints:
    """Return the earliest of these rows for each object."""
    rows = rows[order_by(obj[rows], when[rows])]
    return rows[starts_of(obj[rows])]
