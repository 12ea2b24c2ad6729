"""Which store a directory is on, by the mount table."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

LOCAL = "local"  # attributes are kept, by the disk of one node
# (type of the mount, part of its source) -> store of the registry
STORES: tuple[tuple[str, str, str], ...] = (
    ("fuse.mfs", "", "moosefs"), ("fuse", "mfs#", "moosefs"), ("fuse.moosefs", "", "moosefs"),
    ("ceph", "", "cephfs"), ("fuse.ceph", "", "cephfs"), ("fuse.ceph-fuse", "", "cephfs"),
    ("lustre", "", "lustre"), ("gpfs", "", "storage-scale"), ("mmfs", "", "storage-scale"),
    ("beegfs", "", "beegfs"), ("fuse.glusterfs", "", "glusterfs"),
    ("fuse.daos", "", "daos"), ("fuse.dfuse", "", "daos"), ("fuse.alluxio-fuse", "", "alluxio"),
    ("fuse.juicefs", "", "juicefs"), ("fuse", "JuiceFS:", "juicefs"),
    ("fuse.seaweedfs", "", "seaweedfs"), ("fuse.weed", "", "seaweedfs"),
    ("pvfs2", "", "orangefs"), ("fuse.eosxd", "", "eos"), ("fuse.xrootdfs", "", "xrootd"),
    ("nfs", "", "nfs"), ("nfs4", "", "nfs"), ("fuse.sshfs", "", "nfs"), ("cifs", "", "nfs"),
    ("smb3", "", "nfs"), ("afs", "", "nfs"), ("9p", "", "nfs"),
    ("ext2", "", LOCAL), ("ext3", "", LOCAL), ("ext4", "", LOCAL), ("xfs", "", LOCAL),
    ("btrfs", "", LOCAL), ("tmpfs", "", LOCAL), ("overlay", "", LOCAL), ("zfs", "", LOCAL),
    ("f2fs", "", LOCAL), ("bcachefs", "", LOCAL),
)  # fmt: skip  # a table
# store -> the ready-made cluster that plans are made for until there is a measured one
CLUSTERS = {
    "moosefs": "moosefs", "cephfs": "cephfs", "hdfs": "hdfs", "lustre": "striped",
    "beegfs7": "striped", "beegfs8": "striped", "storage-scale": "striped", "orangefs": "striped",
}  # fmt: skip  # a table


def store_of(place: Path, table: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """The store of a directory, and why in words. LOCAL: a disk of this node; "": unknown.

    table: as collectors.hostinfo.mounts(); of mounts at one place the last one is on top.
    """
    real = str(place.resolve()).rstrip("/") + "/"
    found: Mapping[str, Any] | None = None
    for mount in table:
        path = str(mount["path"]).rstrip("/") + "/"
        if real.startswith(path) and (found is None or len(path) >= _length(found)):
            found = mount
    if found is None:
        return "", ""
    kind, source = str(found["fstype"]), str(found["source"])
    where = f"{place.resolve()} is on {kind}, mounted at {found['path']}"
    for fstype, part, store in STORES:
        if kind == fstype and part in source:
            return _version(store), where
    return "", f"{where}, which no adapter knows: attributes may still be kept"


def _length(mount: Mapping[str, Any]) -> int:
    return len(str(mount["path"]).rstrip("/")) + 1


def _version(store: str) -> str:
    """BeeGFS 7 and 8 have tools of different names; the newer one where there is neither."""
    if store != "beegfs":
        return store
    return "beegfs7" if shutil.which("beegfs-ctl") and not shutil.which("beegfs") else "beegfs8"
