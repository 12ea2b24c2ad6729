"""A real MooseFS over five nodes behind shaped links (bed.py), with a client on each node.

Goal 1, no trash, no rebalancing: only the workflow causes traffic on the links. The master runs on
the head, which is not a node.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.support.bed import HEAD, LINK, Bed, Node, network, ok
from tests.support.moosefs import TOOLS, master_config, wait_for_servers, write_config
from tests.support.needs import missing_for
from tracehint.adapters.stores.moosefs import copies_of

_QUIET = "CHUNKS_WRITE_REP_LIMIT = 0\nCHUNKS_READ_REP_LIMIT = 0\n"
# Of deleted files; otherwise the disks in memory fill up, as benchmarks write a gigabyte per run.
_DELETING = "CHUNKS_SOFT_DEL_LIMIT = 200\nCHUNKS_HARD_DEL_LIMIT = 500\n"
_PATH = re.compile(r"^(\S.*):$", re.MULTILINE)


def missing() -> str:
    """Return the missing requirements; empty if a cluster can run."""
    return missing_for((*TOOLS, "tc"), fuse=True)


@dataclass(frozen=True)
class MooseBed(Bed):
    """The cluster with MooseFS on it."""

    topology: list[bool] = field(default_factory=lambda: [False])  # current setting of the master

    chunk: ClassVar[int] = 64 << 20  # bytes
    synced: ClassVar[bool] = False  # a client sends its data when a file is closed

    def give(self, folder: Path, place: str) -> None:
        """Place new files of a folder from now on: "1", a number of copies anywhere, "node_A", or
        "node_A_2", one copy on A and another elsewhere: storage classes of these names."""
        label, _, copies = place.removeprefix("node_").partition("_")
        if copies:
            where = ",".join([label, *["*"] * (int(copies) - 1)])
            words = ("create", "-m", "L", "-K", where, place)
            done = self.head("mfsscadmin", self.mount, *words)
            if "already in use" not in done.stdout + done.stderr:
                ok(done)
        ok(self.head("mfssetsclass", place, folder))

    def local_first(self, on: bool) -> None:
        """Set whether new files go to the writing client's own node, for the whole system."""
        if on == self.topology[0]:
            return
        self.topology[0] = on
        text = _master(self.folder) + f"CREATIONS_RESPECT_TOPOLOGY = {int(on)}\n"
        (self.folder / "master.cfg").write_text(text)
        ok(self.head("mfsmaster", "-c", self.folder / "master.cfg", "reload"))
        time.sleep(1)

    def where(self, paths: Sequence[Path]) -> dict[Path, Counter[str]]:
        """Map each path to the label of a node -> number of the file's chunks on that node."""
        if not paths:
            return {}
        text = ok(self.head("mfsfileinfo", *paths))
        labels = {node.address: node.label for node in self.nodes}
        parts = _PATH.split(text)[1:]
        return {
            Path(path): Counter(labels[address] for address in copies_of(said))
            for path, said in zip(parts[::2], parts[1::2], strict=True)
        }


@contextmanager
def shaped_cluster(folder: Path, *, near: bool = False, link: int = LINK) -> Iterator[MooseBed]:
    """Start five nodes with a chunk server and a mount each, and a mount on the head. `near`:
    clients prefer the copy on their own node; `link`: Mbit/s of a node."""
    with network(folder, link) as plain:
        bed = MooseBed(plain.nodes, plain.space, folder)
        write_config(folder, HEAD, {node.label: node.address for node in bed.nodes})
        (folder / "master.cfg").write_text(_master(folder))
        try:
            ok(bed.head("mfsmaster", "-c", folder / "master.cfg", "start"))
            for node in bed.nodes:
                ok(node.run("mfschunkserver", "-c", folder / f"server{node.label}.cfg", "start"))
                option = ["-o", f"mfspreflabels={node.label}"] if near else []
                ok(node.run("mfsmount", node.mount, "-H", HEAD, *option))
            ok(bed.head("mfsmount", bed.mount, "-H", HEAD))
            wait_for_servers(bed.head, bed.mount, len(bed.nodes))
            _make_classes(bed)
            ok(bed.head("mfssetgoal", "1", bed.mount))
            ok(bed.head("mfssettrashtime", "0", bed.mount))
            yield bed
        finally:
            for mount in (bed.mount, *(node.mount for node in bed.nodes)):
                subprocess.run(["umount", "-l", mount], capture_output=True)
            for node in bed.nodes:
                with suppress(subprocess.TimeoutExpired):
                    node.run("mfschunkserver", "-c", folder / f"server{node.label}.cfg", "kill")
            bed.head("mfsmaster", "-c", folder / "master.cfg", "kill")


def _make_classes(bed: MooseBed) -> None:
    """Create a class for each node, and for a node with more copies anywhere."""
    first = bed.nodes[0]
    for node in bed.nodes:
        for copies in range(1, len(bed.nodes) + 1):
            name = f"node_{node.label}" + (f"_{copies}" if copies > 1 else "")
            keep = ",".join([node.label, *["*"] * (copies - 1)])
            words = ("mfsscadmin", "create", "-m", "L", "-K", keep, name)
            ok(first.run(*words, cwd=first.mount))


def _master(folder: Path) -> str:
    return master_config(folder, HEAD) + _QUIET + _DELETING


def on_node(mount: Path, node: Node) -> list[str]:
    """Return words of a host file that start a command on a node, with the node's own mount of the
    store at the head's `mount`."""
    script = f'mount --bind {node.mount} {mount} && hostname {node.label} && exec "$@"'
    space = f"--net=/run/netns/{node.space}"
    return ["nsenter", space, "unshare", "--uts", "--mount", "sh", "-c", script, "sh", "{argv}"]
