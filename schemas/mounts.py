"""Types of mounted file systems: local (disks and memory of one node) and network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# Disks and memory of one node. A type in neither set (most of FUSE) may be local or network.
LOCAL = frozenset(
    [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "f2fs", "bcachefs",
        "jfs", "reiserfs", "ramfs",
    ]
)  # fmt: skip  # a table
# Mounted by several hosts; any `fuse.*` counts if the sources are equal.
NETWORK = frozenset(
    [
        "nfs", "nfs3", "nfs4", "lustre", "ceph", "cephfs", "gpfs", "mmfs", "beegfs",
        "beegfs_nodev", "pvfs2", "orangefs", "afs", "cifs", "smb3", "smbfs", "9p", "glusterfs",
        "ocfs2", "gfs2", "wekafs", "panfs", "daos", "dfuse", "moosefs", "mfs", "juicefs",
        "virtiofs", "sshfs", "davfs", "coda", "quobyte", "shared",
    ]
)  # fmt: skip  # a table


def is_network(fstype: str) -> bool:
    """Whether mounts of this type with one source show the same files on every host."""
    return fstype in NETWORK or fstype.startswith(("fuse.", "nfs"))


def mount_of(path: str, table: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the mount of a path without symbolic links; of several at one place, the last.

    table: mounts as in a manifest's host, with `path` and `fstype`.
    """
    found, longest = None, 0
    for mount in table:
        folder = str(mount["path"]).rstrip("/") + "/"
        if f"{path.rstrip('/')}/".startswith(folder) and len(folder) >= longest:
            found, longest = mount, len(folder)
    return found
