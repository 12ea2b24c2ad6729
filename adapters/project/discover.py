"""Discovery of a workflow's environment: engine, nodes, store of its directory, and the storage
classes or pools that its hints need."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.registry import ENGINES
from tracehint.adapters.place.hosts import read_hosts
from tracehint.adapters.stores.places import NAME
from tracehint.collectors.hostinfo import host_name, mounts
from tracehint.errors import UntrustedError
from tracehint.schemas.mounts import LOCAL as LOCAL_TYPES
from tracehint.schemas.mounts import mount_of
from tracehint.schemas.plain import ConfiguredPath

_TIMEOUT_S = 10
# a class of one copy with a single label: NAME : 1 ; ... create_labels: [A] ; ...
_SINGLE_COPY = re.compile(r"^(\S+) : 1 ;.*\bcreate_labels: \[([^\]*]+)\]", re.MULTILINE)


def single_classes(listing: str) -> list[str]:
    """Return the classes of one copy on one label, from `mfsscadmin list -l`."""
    return [name for name, _ in _SINGLE_COPY.findall(listing)]


def data_pools(listing: str) -> list[str]:
    """Return the data pools in `ceph fs ls` as JSON. Raise ValueError, KeyError or TypeError for
    any other text."""
    return [str(pool) for system in json.loads(listing) for pool in system["data_pools"]]


@dataclass(frozen=True)
class NodePlaces:
    """The means of a store to keep files on one node: `noun` names it, `listed` lists existing
    ones, `names` parses that output; `make`: commands for an administrator to create one for
    {node}, `each`: the unit in the message."""

    noun: str
    listed: tuple[str, ...]
    names: Callable[[str], list[str]]
    make: tuple[str, ...]
    each: str = "node"


NODE_PLACES = {
    "moosefs": NodePlaces(
        "storage class",
        ("mfsscadmin", "list", "-l"),
        single_classes,
        ("mfsscadmin create -m L -K LABEL node_{node}",),
        "node (LABEL: that of its chunk server)",
    ),
    "cephfs": NodePlaces(
        "pool",
        ("ceph", "--connect-timeout", "5", "-f", "json", "fs", "ls"),
        data_pools,
        (
            "ceph osd crush rule create-replicated on_{node} {node} osd",
            "ceph osd pool create node_{node} 8 8 replicated on_{node}",
            "ceph fs add_data_pool FILE_SYSTEM node_{node}",
        ),
    ),
}


def map_text(store: str, directory: Path, hosts: Sequence[str]) -> str:
    """Return the text of a --map file for a directory on that store; empty if its classes or pools
    do not suffice."""
    places = NODE_PLACES.get(store)
    if places is None:
        return ""
    try:
        done = subprocess.run(
            places.listed,
            cwd=directory,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            errors="replace",
            check=True,
        )
        names = places.names(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return ""
    found = map_from_names(names, [host.partition(".")[0] for host in hosts])
    head = f"# a {places.noun} for each node, found by their names: {' '.join(places.listed)}\n"
    return found and head + found


def map_from_names(names: Sequence[str], hosts: Sequence[str]) -> str:
    """Return the map from the names of classes or pools, for a run on these hosts. For a single
    host, all nodes with a class or pool are groups."""
    names = [name for name in names if NAME.fullmatch(name)]
    first = hosts[0] if hosts else ""
    for own in sorted((n for n in names if n.endswith(first)), key=len) if first else ():
        before = own.removesuffix(first)
        groups = sorted(name for name in names if before and name.startswith(before))
        if len(hosts) > 1:
            groups = [before + host for host in hosts]
        if before and set(groups) <= set(names):
            local = json.dumps(f"{before}{{host}}")
            return f"local = {local}\ngroups = {json.dumps(groups)}\n"
    return ""


LOCAL = "local"  # local disk of one node, which stores attributes
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
    *((fstype, "", LOCAL) for fstype in sorted(LOCAL_TYPES)),
)  # fmt: skip  # a table
# store -> built-in cluster model for plans until a measured one exists
CLUSTERS = {
    "moosefs": "moosefs",
    "cephfs": "cephfs",
    "hdfs": "hdfs",
    "lustre": "striped",
    "beegfs7": "striped",
    "beegfs8": "striped",
    "storage-scale": "striped",
    "orangefs": "striped",
}


def store_of(place: Path, table: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Return the store of a directory and the reason. LOCAL: a disk of this node; "": unknown.

    table: as collectors.hostinfo.mounts(); of several mounts at one path the last is on top.
    """
    found = mount_of(str(place.resolve()), table)
    if found is None:
        return "", ""
    kind, source = str(found["fstype"]), str(found["source"])
    where = f"{place.resolve()} is on {kind}, mounted at {found['path']}"
    for fstype, part, store in STORES:
        if kind == fstype and part in source:
            return _version(store), where
    return "", f"{where}, which no adapter knows: attributes may still be kept"


def _version(store: str) -> str:
    """Return the BeeGFS version by the names of its tools; the newer one without tools."""
    if store != "beegfs":
        return store
    return "beegfs7" if shutil.which("beegfs-ctl") and not shutil.which("beegfs") else "beegfs8"


@dataclass(frozen=True)
class LocatedStore:
    """A name for --store, a file for --map, and the reason in words (empty: not found)."""

    store: str
    places: Path | None
    why: str


def commands_for(store: str, hosts: Sequence[str]) -> list[str]:
    """Return an administrator's commands for keeping files on one of these hosts; empty if unknown
    or not needed."""
    places = NODE_PLACES.get(store)
    if places is None:
        return []
    nodes = [host.partition(".")[0] for host in hosts]
    return [
        f"no {places.noun} keeps files on one node, so hints that place files have no effect; an",
        f"administrator creates one for each {places.each}:",
        *(f"  {line.format(node=node)}" for node in nodes for line in places.make),
    ]


@contextmanager
def store_here(place: Path, nodes: Sequence[str] = ()) -> Iterator[LocatedStore]:
    """Find the store and map for hints below the directory; the map exists inside the context.
    `nodes`: nodes of the run, in the order of a plan's parts.

    Local disks and unknown stores get attributes.
    """
    store, why = store_of(place, mounts())
    if store in ("", LOCAL):
        yield LocatedStore("xattr", None, "")
        return
    text = map_text(store, place, nodes or [host_name()])
    if not text:
        lines = commands_for(store, nodes or [host_name()])
        yield LocatedStore(store, None, "\n  ".join([why, *lines]))
        return
    with tempfile.TemporaryDirectory(prefix="tracehint-") as folder:
        path = Path(folder, "map.toml")
        path.write_text(text)
        yield LocatedStore(store, path, f"{why}; a {NODE_PLACES[store].noun} for each node")


@dataclass(frozen=True)
class Scheduler:
    """A batch system: commands to submit a job with its environment and to list usable nodes."""

    name: str
    submit: tuple[str, ...]
    ask: tuple[str, ...]
    ready: re.Pattern[str]  # of the output; its group is a node


SCHEDULERS = (
    Scheduler(
        "Slurm", ("sbatch",), ("sinfo", "-h", "-N", "-o", "%N %T"),
        # a star marks a node that does not respond
        re.compile(r"^(\S+) (?:idle|mixed|allocated|completing|planned)(?!\*)[^*\n]*$", re.M),
    ),
    Scheduler("LSF", ("bsub",), ("bhosts", "-w"),
        re.compile(r"^(\S+)\s+(?:ok|closed_(?:Full|Busy|Excl|cu_Excl))\s", re.M)),
    Scheduler("PBS", ("qsub", "-V"), ("pbsnodes", "-a"),
        re.compile(r"^(\S+)\n(?:[ \t]+(?!state =)\S.*\n)*[ \t]+state = "
                   r"(?:free|busy|job-busy|job-exclusive)[ \t]*$", re.M)),
)  # fmt: skip  # a table
HOSTS = "hosts.toml"
# file names of node lists in the directory, one name per line
NODE_LISTS = ("hostfile", "machinefile", "hosts.txt", "nodes.txt", "machines")
_MAX_LINES = 100_000  # lines read of such a file


@dataclass(frozen=True)
class Discovered:
    """Findings, empty if unknown. `why`: reason in words, by key.

    `store` receives the hints; on a disk of one node these are attributes (`local` is true).
    """

    engine: str
    workflow: str  # its file
    store: str
    local: bool
    data_root: str
    nodes: int
    hosts: str  # host file for `place` and `emit`
    why: dict[str, str]
    scheduler: Scheduler | None = None


def discover(directory: Path, table: Sequence[Mapping[str, Any]] | None = None) -> Discovered:
    """Inspect the directory; nothing is changed, no host is contacted.

    table: the mounts; None: those of this machine.
    """
    why: dict[str, str] = {}
    engine, workflow = _engine(directory)
    if engine:
        why["engine"] = f"{workflow} is here"
    kind, why["store"] = store_of(directory, mounts() if table is None else table)
    hosts, nodes = _hosts(directory, why)
    scheduler = next((s for s in SCHEDULERS if shutil.which(s.submit[0])), None)
    if scheduler is not None:
        nodes = nodes or _nodes(scheduler, why)
    store = "xattr" if kind in ("", LOCAL) else kind
    root = str(directory.resolve())
    return Discovered(engine, workflow, store, kind == LOCAL, root, nodes, hosts, why, scheduler)


def _engine(directory: Path) -> tuple[str, str]:
    """Return the engine and its workflow file."""
    for name in sorted(ENGINES, key=lambda name: name == "make"):  # may only build programs
        for pattern in ENGINES[name].files:
            hit = next((p for p in sorted(directory.glob(pattern)) if p.is_file()), None)
            if hit is not None:
                return name, str(hit.relative_to(directory))
    return "", ""


def _hosts(directory: Path, why: dict[str, str]) -> tuple[str, int]:
    """Return the directory's host file and its node count; a plain list is only counted."""
    path = directory / HOSTS
    if path.is_file():
        try:
            count = len(read_hosts(ConfiguredPath(path)))
        except UntrustedError as error:
            why["ignored"] = f"{error.what}: it is ignored"
        else:
            why["nodes"] = f"{count} nodes in {HOSTS}"
            return HOSTS, count
    for name in NODE_LISTS:
        if (directory / name).is_file():
            with (directory / name).open(encoding="utf-8", errors="replace") as stream:
                lines = [line.partition("#")[0].split() for line in islice(stream, _MAX_LINES)]
            count = len({words[0] for words in lines if words})
            if count:
                why["nodes"] = f"{count} nodes in {name} (for `place` and `emit`: {HOSTS})"
                return "", count
    return "", 0


def count_nodes(directory: Path, wait_s: float) -> tuple[int, str]:
    """Return the node count of the directory's host file, otherwise of the batch system, and its
    source; 0: unknown, or no answer in `wait_s` seconds."""
    _, count = _hosts(directory, {})
    if count:
        return count, "nodes of the host file"
    scheduler = next((s for s in SCHEDULERS if shutil.which(s.submit[0])), None)
    count = _nodes(scheduler, {}, wait_s) if scheduler is not None else 0
    return count, f"nodes of {scheduler.ask[0]}" if scheduler is not None and count else ""


def _nodes(scheduler: Scheduler, why: dict[str, str], wait_s: float = 10) -> int:
    """Count the nodes of the batch system that can run jobs; 0: unknown."""
    try:
        done = subprocess.run(scheduler.ask, capture_output=True, text=True, timeout=wait_s)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return 0
    up = set(scheduler.ready.findall(done.stdout))
    if done.returncode or not up:
        return 0
    why["nodes"] = f"{len(up)} nodes can run jobs, as {scheduler.ask[0]} reports"
    return len(up)


def project_text(found: Discovered, by_hand: Mapping[str, str], tables: str = "") -> str:
    """Return the project file as TOML, with comments for values that were not found.

    by_hand, tables: kept from an older file (adapters/project/config.py).
    """
    lines = [f"store = {json.dumps(found.store)}  # {found.why.get('store') or 'a guess'}"]
    lines.append(f"data_root = [{json.dumps(found.data_root)}]")
    if found.engine:
        lines.append(f"engine = {json.dumps(found.engine)}  # {found.why['engine']}")
    if found.hosts:
        lines.append(f"hosts = {json.dumps(found.hosts)}  # {found.why['nodes']}")
    hints = {
        "map": '# map = "site.toml"  # names of storage classes or pools (docs: stores)',
        "cluster": '# cluster = "cluster.toml"  # nodes, links, disks: with it `run` makes plans',
    }
    if found.store in CLUSTERS:
        ready = json.dumps(CLUSTERS[found.store])
        hints["cluster"] = f"cluster = {ready}  # built-in; `tracehint calibrate` fits it to runs"
    lines += [by_hand.get(key, hint) for key, hint in hints.items()]
    return (
        "\n".join(_strip_controls(line) for line in lines)
        + "\n"
        + (f"\n{tables}" if tables else "")
    )


def _strip_controls(line: str) -> str:
    """Replace control characters: names of directories appear in comments."""
    return re.sub(r"[\x00-\x1f\x7f]", "?", line)
