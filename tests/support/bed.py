"""A small cluster on one machine: network namespaces behind shaped links (tbf, 200 Mbit/s).

A bridge joins five nodes and the head, which has no disk of the store and whose traffic is not
counted. `received()` counts bytes that arrive over a node's link. Needs root, `ip` and `tc`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import PATIENCE_S

LABELS = "ABCDE"
HEAD = "10.99.8.1"
LINK = 200  # Mbit/s


@dataclass(frozen=True)
class Node:
    """One node: its namespace, address and mount."""

    label: str
    space: str
    address: str
    mount: Path

    def command(self, *words: str | Path) -> list[str | Path]:
        """Return a command line for this node: its network, and its label as host name."""
        inner = ["sh", "-c", 'hostname "$0" && exec "$@"', self.label, *words]
        return ["nsenter", f"--net=/run/netns/{self.space}", "unshare", "--uts", *inner]

    def run(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command on this node and wait."""
        return subprocess.run(
            self.command(*words), cwd=cwd, text=True, capture_output=True, timeout=PATIENCE_S
        )

    def received(self) -> int:
        """Return the bytes received over the link so far."""
        return _received(ok(self.run("cat", "/proc/net/dev")), "eth0")


@dataclass(frozen=True)
class Bed:
    """Nodes and head; `mount` is the head's own mount of the store, `folder` holds everything."""

    nodes: list[Node]
    space: str
    folder: Path

    @property
    def mount(self) -> Path:
        """The head's mount."""
        return self.folder / "mounthead"

    def command(self, *words: str | Path) -> list[str | Path]:
        """Return a command line for the head."""
        return ["nsenter", f"--net=/run/netns/{self.space}", *words]

    def head(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a command on the head and wait."""
        return subprocess.run(
            self.command(*words), text=True, capture_output=True, timeout=PATIENCE_S
        )

    def received(self) -> int:
        """Return the bytes that all nodes received so far."""
        return sum(node.received() for node in self.nodes)

    def returned(self) -> int:
        """Return the bytes that the head received so far."""
        return _received(ok(self.head("cat", "/proc/net/dev")), "br0")


def ok(done: subprocess.CompletedProcess[str]) -> str:
    """Return a command's standard output; fail with all its output if it failed."""
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _received(devices: str, name: str) -> int:
    """Return the bytes received by a device, from the text of /proc/net/dev."""
    line = next(x for x in devices.splitlines() if x.strip().startswith(f"{name}:"))
    return int(line.partition(":")[2].split()[0])


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """End the block on SIGTERM (of a time limit) as on Ctrl-C, so that it is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def network(folder: Path, link: int = LINK) -> Iterator[Bed]:
    """Create namespaces and links of `link` Mbit/s; `folder` gets the mount points."""
    nodes = [
        Node(label, f"thn{label}{os.getpid()}", f"10.99.8.{11 + i}", folder / f"mount{label}")
        for i, label in enumerate(LABELS)
    ]
    bed = Bed(nodes, f"thhead{os.getpid()}", folder)
    for mount in (bed.mount, *(node.mount for node in nodes)):
        mount.mkdir(mode=0o777)
    try:
        with terminated_as_interrupted():
            _links(bed, link)
            yield bed
    finally:
        for mount in (bed.mount, *(node.mount for node in nodes)):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        for space in (bed.space, *(node.space for node in nodes)):
            subprocess.run(["ip", "netns", "del", space], capture_output=True)


def _links(bed: Bed, link: int) -> None:
    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    ip("netns", "add", bed.space)
    ip("-n", bed.space, "link", "add", "br0", "type", "bridge")
    ip("-n", bed.space, "addr", "add", f"{HEAD}/24", "dev", "br0")
    for device in ("lo", "br0"):
        ip("-n", bed.space, "link", "set", device, "up")
    for node in bed.nodes:
        port = f"v{node.label}"
        ip("netns", "add", node.space)
        ip(
            "-n",
            bed.space,
            "link",
            "add",
            port,
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            node.space,
        )
        ip("-n", bed.space, "link", "set", port, "master", "br0", "up")
        ip("-n", node.space, "addr", "add", f"{node.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", node.space, "link", "set", device, "up")
        for space, device in ((bed.space, port), (node.space, "eth0")):
            shape = ["root", "tbf", "rate", f"{link}mbit", "burst", "256k", "latency", "50ms"]
            ip("netns", "exec", space, "tc", "qdisc", "add", "dev", device, *shape)
