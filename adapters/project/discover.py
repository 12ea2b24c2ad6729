"""Finding out what a workflow runs on: its engine, its store, its nodes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tracehint.collectors.hostinfo import mounts

# file in the directory -> engine
ENGINES: tuple[tuple[str, str], ...] = (
    ("*.makeflow", "makeflow"), ("Makeflow", "makeflow"), ("*.mf", "makeflow"),
    ("Snakefile", "snakemake"), ("workflow/Snakefile", "snakemake"), ("*.smk", "snakemake"),
    ("main.nf", "nextflow"), ("*.nf", "nextflow"), ("*.cwl", "cwl"), ("*.swift", "swift-t"),
    ("Makefile", "make"), ("makefile", "make"),
)  # fmt: skip  # a table

# (type of the mount, part of its source) -> store of the registry
STORES: tuple[tuple[str, str, str], ...] = (
    ("fuse.mfs", "", "moosefs"), ("fuse", "mfs#", "moosefs"), ("fuse.moosefs", "", "moosefs"),
    ("ceph", "", "cephfs"), ("fuse.ceph", "", "cephfs"), ("fuse.ceph-fuse", "", "cephfs"),
    ("lustre", "", "lustre"), ("beegfs", "", "beegfs8"), ("fuse.glusterfs", "", "glusterfs"),
    ("fuse.daos", "", "daos"), ("fuse.dfuse", "", "daos"), ("fuse.alluxio-fuse", "", "alluxio"),
    ("pvfs2", "", "orangefs"), ("nfs", "", "nfs"), ("nfs4", "", "nfs"),
    ("ext4", "", "xattr"), ("xfs", "", "xattr"), ("btrfs", "", "xattr"), ("tmpfs", "", "xattr"),
    ("overlay", "", "xattr"), ("zfs", "", "xattr"),
)  # fmt: skip  # a table


@dataclass(frozen=True)
class Found:
    """What was found; empty where nothing was. `why` in words, by key."""

    engine: str
    store: str
    data_root: str
    nodes: int
    why: dict[str, str]


def discover(directory: Path) -> Found:
    """Look around the directory; nothing is changed, no host is asked."""
    why: dict[str, str] = {}
    engine = _engine(directory, why)
    store = _store(directory, why)
    nodes = _nodes(why)
    return Found(engine, store, str(directory.resolve()), nodes, why)


def _engine(directory: Path, why: dict[str, str]) -> str:
    for pattern, name in ENGINES:
        hit = next((p for p in sorted(directory.glob(pattern)) if p.is_file()), None)
        if hit is not None:
            why["engine"] = f"{hit.relative_to(directory)} is here"
            return name
    return ""


def _store(directory: Path, why: dict[str, str]) -> str:
    place = str(directory.resolve())
    below = [m for m in mounts() if (place + "/").startswith(str(m["path"]).rstrip("/") + "/")]
    if not below:
        return ""
    mount = max(below, key=lambda m: len(str(m["path"])))
    kind, source = str(mount["fstype"]), str(mount["source"])
    for fstype, part, store in STORES:
        if kind == fstype and part in source:
            why["store"] = f"{place} is on {kind}, mounted at {mount['path']}"
            return store
    why["store"] = f"{place} is on {kind}, which no adapter knows: attributes may still be kept"
    return "xattr"


def _nodes(why: dict[str, str]) -> int:
    """Nodes of Slurm that can run jobs; 0: unknown."""
    if shutil.which("sinfo") is None:
        return 0
    try:
        done = subprocess.run(
            ["sinfo", "-h", "-N", "-o", "%N %T"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    up = {
        line.split()[0]
        for line in done.stdout.splitlines()
        if re.match(r"\S+ (idle|mixed|allocated|completing)", line)
    }
    if done.returncode or not up:
        return 0
    why["nodes"] = f"sinfo names {len(up)} nodes that can run jobs"
    return len(up)


def project_text(found: Found, by_hand: Mapping[str, str], tables: str = "") -> str:
    """The project file as TOML. What was not found stands there as a comment.

    by_hand, tables: what stays of an older file (adapters/project/kept.py).
    """
    lines = [f"store = {json.dumps(found.store or 'xattr')}  # {found.why.get('store', 'a guess')}"]
    lines.append(f"data_root = [{json.dumps(found.data_root)}]")
    if found.engine:
        lines.append(f"engine = {json.dumps(found.engine)}  # {found.why['engine']}")
    hints = {
        "map": '# map = "site.toml"  # names of storage classes or pools (docs: stores)',
        "cluster": '# cluster = "cluster.toml"  # nodes, links, disks: with it `run` makes plans',
    }
    lines += [by_hand.get(key, hint) for key, hint in hints.items()]
    return "\n".join(_plain(line) for line in lines) + "\n" + (f"\n{tables}" if tables else "")


def _plain(line: str) -> str:
    """Without control characters: names of directories end up in comments."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", line)
