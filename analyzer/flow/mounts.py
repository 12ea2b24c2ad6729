"""One file seen by several hosts: a shared mount and the same path below it.

A mount is shared when its file system is a network one and two hosts name the same source.
Inode numbers confirm the match where they agree; file systems that number inodes per client
(some FUSE ones) are matched by the path alone, where each host knows one file of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, ints, lookup, order_by, starts_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

# File systems that several hosts mount; any `fuse.*` counts where the sources are the same.
NETWORK = frozenset(
    [
        "nfs",
        "nfs3",
        "nfs4",
        "lustre",
        "ceph",
        "cephfs",
        "gpfs",
        "mmfs",
        "beegfs",
        "beegfs_nodev",
        "pvfs2",
        "orangefs",
        "afs",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "glusterfs",
        "ocfs2",
        "gfs2",
        "wekafs",
        "panfs",
        "daos",
        "dfuse",
        "moosefs",
        "mfs",
        "juicefs",
        "virtiofs",
        "sshfs",
        "davfs",
        "coda",
        "quobyte",
        "shared",
    ]
)


def is_network(fstype: str) -> bool:
    """Whether mounts of this type with one source show the same files on every host."""
    return fstype in NETWORK or fstype.startswith(("fuse.", "nfs"))


def shared_mounts(bundle: Bundle) -> dict[tuple[str, str], list[tuple[str, bytes]]]:
    """(fstype family, source) -> (host, mount point) of the mounts that several hosts have."""
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
    """Per file row its object, numbered without gaps, and per object its scope of names.

    Files on local file systems have the scope of their host, shared ones that of their mount.
    """
    from tracehint.analyzer.columns import column

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
    _join(label, known, groups)
    _join_lonely(label, known, (shared, path), origin)
    _, of_row = np.unique(label, return_inverse=True)
    of_row = ints(of_row.reshape(-1))
    object_scope = np.zeros(int(of_row.max()) + 1, np.int64)
    np.maximum.at(object_scope, of_row, scope)
    return of_row, object_scope


def _shared_names(
    names: pa.Table, ids: Ints, mounts: dict[tuple[str, str], list[tuple[str, bytes]]]
) -> tuple[Ints, Ints, Ints]:
    """(file row, shared mount, code of the path below it) for every name on a shared mount."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.analyzer.columns import binary, column

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


def _join(label: Ints, rows: Ints, keys: tuple[Ints, ...]) -> None:
    """Give the file rows of each group one label, until no label changes."""
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


def _join_lonely(label: Ints, rows: Ints, keys: tuple[Ints, ...], host: Ints) -> None:
    """Join by path alone where no inode number matched and each host has one such file."""
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
    _join(label, rows[keep], tuple(k[keep] for k in keys))
