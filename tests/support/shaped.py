"""A real MooseFS over five nodes, each a network name space behind a shaped link (tbf, 200 Mbit).

Goal 1, no trash, no rebalancing: what crosses the links is what the workflow causes. `bytes_moved`
counts what all nodes received. The master lives on the bridge's name space, which is no node.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.moosefs import _MASTER, _SERVER, ok, wait_for_servers

LABELS = "ABCDE"
HUB = "10.99.8.1"
RATE = "200mbit"


@dataclass(frozen=True)
class Node:
    """One node: its name space, address and mount."""

    label: str
    space: str
    address: str
    mount: Path

    def command(self, *words: str | Path) -> list[str | Path]:
        """A command line that runs on this node: its network, and its label as host name."""
        inner = ["sh", "-c", 'hostname "$0" && exec "$@"', self.label, *words]
        return ["nsenter", f"--net=/run/netns/{self.space}", "unshare", "--uts", *inner]

    def run(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run it and wait."""
        return subprocess.run(self.command(*words), cwd=cwd, text=True, capture_output=True,
                              timeout=120)  # fmt: skip

    def received(self) -> int:
        """Bytes that came in over the link so far."""
        done = self.run("cat", "/proc/net/dev")
        line = next(x for x in done.stdout.splitlines() if x.strip().startswith("eth0:"))
        return int(line.partition(":")[2].split()[0])


def bytes_moved(nodes: list[Node]) -> int:
    """What all nodes received so far."""
    return sum(node.received() for node in nodes)


@contextmanager
def shaped_cluster(folder: Path) -> Iterator[list[Node]]:
    """Five nodes with a chunk server and a mount each."""
    hub = f"thhub{os.getpid()}"
    nodes = [
        Node(label, f"thn{label}{os.getpid()}", f"10.99.8.{11 + i}", folder / f"mount{label}")
        for i, label in enumerate(LABELS)
    ]
    try:
        _network(hub, nodes)
        _write(folder, nodes)
        ok(_in(hub, "mfsmaster", "-c", folder / "master.cfg", "start"))
        for node in nodes:
            ok(node.run("mfschunkserver", "-c", folder / f"server{node.label}.cfg", "start"))
            ok(node.run("mfsmount", node.mount, "-H", HUB))
        wait_for_servers(nodes[0].run, nodes[0].mount, len(nodes))
        for node in nodes:
            ok(nodes[0].run("mfsscadmin", "create", "-m", "L", "-K", node.label,
                            f"node_{node.label}", cwd=nodes[0].mount))  # fmt: skip
        ok(nodes[0].run("mfssetgoal", "1", nodes[0].mount))
        ok(nodes[0].run("mfssettrashtime", "0", nodes[0].mount))
        yield nodes
    finally:
        for node in nodes:
            subprocess.run(["umount", "-l", node.mount], capture_output=True)
        for node in nodes:
            with suppress(subprocess.TimeoutExpired):
                node.run("mfschunkserver", "-c", folder / f"server{node.label}.cfg", "stop")
        _in(hub, "mfsmaster", "-c", folder / "master.cfg", "stop")
        for space in (hub, *(node.space for node in nodes)):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def _in(space: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    command = ["nsenter", f"--net=/run/netns/{space}", *words]
    return subprocess.run(command, text=True, capture_output=True, timeout=60)


def _network(hub: str, nodes: list[Node]) -> None:
    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    ip("netns", "add", hub)
    ip("-n", hub, "link", "add", "br0", "type", "bridge")
    ip("-n", hub, "addr", "add", f"{HUB}/24", "dev", "br0")
    for link in ("lo", "br0"):
        ip("-n", hub, "link", "set", link, "up")
    for node in nodes:
        port = f"v{node.label}"
        ip("netns", "add", node.space)
        ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns",
           node.space)  # fmt: skip
        ip("-n", hub, "link", "set", port, "master", "br0", "up")
        ip("-n", node.space, "addr", "add", f"{node.address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", node.space, "link", "set", link, "up")
        for space, link in ((hub, port), (node.space, "eth0")):
            shape = ["root", "tbf", "rate", RATE, "burst", "256k", "latency", "50ms"]
            ok(_in(space, "tc", "qdisc", "add", "dev", link, *shape))


def _write(folder: Path, nodes: list[Node]) -> None:
    names = ["master"]
    names += [f"{kind}{n.label}" for kind in ("state", "disk", "mount") for n in nodes]
    for name in names:
        (folder / name).mkdir(mode=0o777)
    (folder / "master" / "metadata.mfs").write_text("MFSM NEW")
    (folder / "exports").write_text("* / rw,alldirs,admin,maproot=0:0\n")
    quiet = "CHUNKS_WRITE_REP_LIMIT = 0\nCHUNKS_READ_REP_LIMIT = 0\n"
    text = _MASTER.format(folder=folder).replace("10.99.7.1", HUB)
    (folder / "master.cfg").write_text(text + quiet)
    for node in nodes:
        (folder / f"hdd{node.label}").write_text(f"{folder}/disk{node.label}\n")
        text = _SERVER.format(folder=folder, label=node.label, address=node.address)
        (folder / f"server{node.label}.cfg").write_text(text.replace("10.99.7.1", HUB))
