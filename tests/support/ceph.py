"""A real CephFS over five nodes behind shaped links (bed.py): memstore OSDs, ceph-fuse.

One OSD and one client per node; monitor, metadata server and a client on the head. The default
pool keeps one copy of everything, spread evenly by Ceph's own balancer, as in the MooseFS test.
Pools: `node_X` on the OSD of node X, `copies_2` and `copies_5` with more copies. The metadata
server ticks every half second: with few requests, a client may wait until the next tick for what
another client holds.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.support.bed import HEAD, LINK, Bed, network, ok
from tests.support.needs import missing_for
from tests.support.patience import PATIENCE_S, until
from tracehint.adapters.stores.cephfs import Question

TOOLS = (
    "ceph", "ceph-mon", "ceph-osd", "ceph-mds", "ceph-fuse", "monmaptool", "nsenter",
    "osdmaptool", "tc",
)  # fmt: skip  # a table
ASKER = """import json, sys
from tracehint.adapters.stores.cephfs import Question, ask_ceph
for line in sys.stdin:
    print(json.dumps(ask_ceph([Question(*q) for q in json.loads(line)])), flush=True)
"""
CONF = """[global]
fsid = {fsid}
mon_host = [v1:{head}:6789]
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_bind_ipv6 = false
run_dir = {folder}
admin_socket =
log_file = {folder}/$name.log
mon_cluster_log_file = {folder}/cluster.log
mon_data = {folder}/mon
mds_data = {folder}/mds
osd_data = {folder}/osd$id
osd_journal =
osd_objectstore = memstore
memstore_device_bytes = 2147483648
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
osd_crush_chooseleaf_type = 0
osd_pool_default_pg_num = 16
osd_pool_default_pg_autoscale_mode = off
mon_max_pg_per_osd = 1000
client_acl_type =
mds_tick_interval = 0.5
"""


def missing() -> str:
    """Return the missing requirements; empty if a cluster can run."""
    return missing_for(TOOLS, fuse=True)


@dataclass(frozen=True)
class CephBed(Bed):
    """The cluster with CephFS on it."""

    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    asker: list[subprocess.Popen[str]] = field(default_factory=list)
    pools: set[str] = field(default_factory=set)

    chunk: ClassVar[int] = 4 << 20  # bytes of an object
    # Otherwise a client keeps what a task wrote and closed until another client requests it.
    synced: ClassVar[bool] = True

    @property
    def conf(self) -> Path:
        """ceph.conf of this cluster."""
        return self.folder / "ceph.conf"

    def ceph(self, *commands: str) -> list[str]:
        """Run commands of `ceph` in one process; return a JSON line per command with output."""
        for _ in range(60):
            done = subprocess.run(
                self.command("ceph", "-c", self.conf, "-f", "json"),
                text=True,
                timeout=PATIENCE_S,
                capture_output=True,
                input="".join(f"{command}\n" for command in commands),
            )
            if "problem getting command descriptions" not in done.stderr:
                break
            time.sleep(0.5)  # the monitor was called before it was ready; nothing was done
        return [line for line in ok(done).splitlines() if line]

    def ask(self, questions: Sequence[Question]) -> list[str]:
        """Ask as the adapter does, in a persistent process on the head; return the answers."""
        if not self.asker:
            process = subprocess.Popen(
                self.command(sys.executable, "-c", ASKER),
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "CEPH_CONF": str(self.conf)},
            )
            self.asker.append(process)
        process = self.asker[0]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps([[q.prefix, dict(q.words)] for q in questions]) + "\n")
        process.stdin.flush()
        answers: list[str] = json.loads(process.stdout.readline())
        return answers

    def start(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        """Start a daemon in the foreground of its own process."""
        log = (self.folder / "daemons.log").open("ab")
        process = subprocess.Popen(
            [*command, "-c", self.conf, "-f"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self.daemons.append(process)
        return process

    def where(self, paths: Sequence[Path]) -> dict[Path, Counter[str]]:
        """Map each path to the label of a node -> number of the file's objects on that node."""
        from tracehint.adapters.stores.cephfs import CephFs
        from tracehint.adapters.stores.places import Places

        store = CephFs(Places(), ask=self.ask)
        fds = [os.open(path, os.O_RDONLY) for path in paths]
        try:
            places = store.locate_all(fds)
        finally:
            for fd in fds:
                os.close(fd)
        return {
            path: Counter(dict(place.detail["copies"]) if place else {})  # type: ignore[call-overload]
            for path, place in zip(paths, places, strict=True)
        }

    def give(self, folder: Path, place: str) -> None:
        """Place new files of a folder from now on: "1", a number of copies anywhere, or "node_A".
        Raises ValueError for copies in addition to the one on a node: there is no such pool."""
        if place == "1":
            return
        if place.isdecimal():
            place = f"copies_{min(int(place), len(self.nodes))}"
            if place not in self.pools:
                self.ceph(*_copies_pool(place))
                self.pools.add(place)
        if place.count("_") > 1:
            raise ValueError(f"{place}: a pool of a node has one copy")
        self._until_known(folder, place)

    def _until_known(self, folder: Path, pool: str) -> None:
        """Set the pool of a folder; clients notice a new pool a moment later."""

        def known() -> bool:
            try:
                os.setxattr(folder, "ceph.dir.layout.pool", pool.encode())
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                return False
            return True

        until(known, f"a client knows the pool {pool}", every_s=0.25)

    def local_first(self, on: bool) -> None:
        """CephFS has no such setting."""
        assert not on


@contextmanager
def ceph_cluster(folder: Path, *, more: str = "", link: int = LINK) -> Iterator[CephBed]:
    """Start everything, wait until files can be written, and stop it at the end. `more`: further
    lines of ceph.conf; `link`: Mbit/s of a node."""
    with network(folder, link) as plain:
        bed = CephBed(plain.nodes, plain.space, folder)
        try:
            _start(bed, more)
            yield bed
        finally:
            for mount in (bed.mount, *(node.mount for node in bed.nodes)):
                subprocess.run(["umount", "-l", mount], capture_output=True)
            for process in (*bed.asker, *reversed(bed.daemons)):
                process.kill()
                process.wait()


def _start(bed: CephBed, more: str) -> None:
    fsid = str(uuid.uuid4())
    bed.conf.write_text(CONF.format(fsid=fsid, head=HEAD, folder=bed.folder) + more)
    for name in ("mds", *(f"osd{i}" for i in range(len(bed.nodes)))):
        (bed.folder / name).mkdir()
    ok(
        bed.head(
            "monmaptool",
            "--create",
            "--fsid",
            fsid,
            "--addv",
            "a",
            f"[v1:{HEAD}:6789]",
            bed.folder / "monmap",
        )
    )
    ok(bed.head("ceph-mon", "--mkfs", "-i", "a", "-c", bed.conf, "--monmap", bed.folder / "monmap"))
    bed.start(bed.command("ceph-mon", "-i", "a"))
    ids = [str(uuid.uuid4()) for _ in bed.nodes]
    bed.ceph(*(f"osd new {name} {i}" for i, name in enumerate(ids)))
    osds = []
    for i, node in enumerate(bed.nodes):
        ok(node.run("ceph-osd", "-i", str(i), "--mkfs", "--osd-uuid", ids[i], "-c", bed.conf))
        osds.append(node.command("ceph-osd", "-i", str(i)))
    _wait_for_osds(bed, osds)
    _pools(bed)
    bed.start(bed.command("ceph-mds", "-i", "a"))
    _wait_for_mds(bed)
    for where, mount in [
        *((node.command, node.mount) for node in bed.nodes),
        (bed.command, bed.mount),
    ]:
        bed.start(where("ceph-fuse", mount))
    _wait_for_mounts(bed)


def _wait_for_osds(bed: CephBed, commands: list[list[str | Path]]) -> None:
    """Start the OSDs and wait; restart one that ended because it asked too early ("wrong fsid")."""
    running = [bed.start(command) for command in commands]

    def up() -> bool:
        if json.loads(bed.ceph("osd stat")[0])["num_up_osds"] == len(commands):
            return True
        for i, process in enumerate(running):
            if process.poll() is not None:
                running[i] = bed.start(commands[i])
        return False

    until(up, f"the OSDs come up, see {bed.folder / 'daemons.log'}", every_s=0.5)


def _pools(bed: CephBed) -> None:
    """Create the file system, a pool for each node, and pools with several copies."""
    commands = ["osd pool create meta 8", "osd pool create data 64", "fs new cephfs meta data"]
    for node in bed.nodes:
        name = f"node_{node.label}"
        commands += [
            f"osd crush rule create-replicated on_{name} {node.label} osd",
            f"osd pool create {name} 8 8 replicated on_{name}",
            f"fs add_data_pool cephfs {name}",
        ]
    for copies in (2, len(bed.nodes)):
        commands += _copies_pool(f"copies_{copies}")
        bed.pools.add(f"copies_{copies}")
    bed.ceph(*commands)
    _even(bed)


def _copies_pool(name: str) -> list[str]:
    return [
        f"osd pool create {name} 16",
        f"osd pool set {name} size {name.rpartition('_')[2]}",
        f"fs add_data_pool cephfs {name}",
    ]


def _even(bed: CephBed) -> None:
    """Spread placement groups of the default pool evenly over the OSDs, as a cluster's balancer
    does: by chance alone one of five has half more than its share."""
    known, moves = bed.folder / "osdmap", bed.folder / "moves"
    ok(bed.head("ceph", "-c", bed.conf, "osd", "getmap", "-o", known))
    even = ("--upmap", moves, "--upmap-pool", "data", "--upmap-deviation", "1")
    ok(bed.head("osdmaptool", known, *even))
    bed.ceph(*(line.removeprefix("ceph ") for line in moves.read_text().splitlines() if line))


def _wait_for_mds(bed: CephBed) -> None:
    def active() -> bool:
        states = json.loads(bed.ceph("mds stat")[0])["fsmap"]["filesystems"][0]["mdsmap"]["info"]
        return any(one["state"] == "up:active" for one in states.values())

    until(active, "the metadata server comes up", every_s=0.5)


def _wait_for_mounts(bed: CephBed) -> None:
    """Wait until every client can write and the head can read it."""
    mounts = (bed.mount, *(node.mount for node in bed.nodes))
    until(lambda: all(map(os.path.ismount, mounts)), "every client mounts", every_s=0.5)
    for node in bed.nodes:
        ok(node.run("sh", "-c", f"echo {node.label} > {node.mount}/probe"))
        assert (bed.mount / "probe").read_text() == f"{node.label}\n"
    (bed.mount / "probe").unlink()
