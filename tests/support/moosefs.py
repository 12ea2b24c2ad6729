"""A small real MooseFS in a network namespace: one master, chunk servers A, B, C, one mount.

    with cluster(folder) as store:
        store.run("mfsgetgoal", "f", cwd=store.mount)

Needs root, /dev/fuse and Debian's moosefs packages; `missing()` names missing requirements.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.bed import ok
from tests.support.needs import missing_for
from tests.support.patience import PATIENCE_S, until

TOOLS = ("mfsmaster", "mfschunkserver", "mfsmount", "mfssetsclass", "nsenter", "ip")
ADDRESS = "10.99.7."
MASTER = f"{ADDRESS}1"
LABELS = "ABC"
_MASTER = """WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = {folder}/master
EXPORTS_FILENAME = {folder}/exports
MATOML_LISTEN_HOST = {master}
MATOCS_LISTEN_HOST = {master}
MATOCL_LISTEN_HOST = {master}
REPLICATIONS_DELAY_INIT = 0
"""
_SERVER = """WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = {folder}/state{label}
HDD_CONF_FILENAME = {folder}/hdd{label}
MASTER_HOST = {master}
BIND_HOST = {address}
CSSERV_LISTEN_HOST = {address}
LABELS = {label}
HDD_LEAVE_SPACE_DEFAULT = 16MiB
"""


def missing() -> str:
    """Return the missing requirements; empty if a cluster can run."""
    return missing_for(TOOLS, fuse=True)


@dataclass(frozen=True)
class Cluster:
    """A running cluster. `servers` maps label to address."""

    space: str
    mount: Path
    servers: dict[str, str]

    def run(
        self, *command: str | Path, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the cluster's network namespace."""
        return subprocess.run(
            ["nsenter", f"--net=/run/netns/{self.space}", *command],
            cwd=cwd,
            text=True,
            capture_output=True,
            timeout=PATIENCE_S,
        )


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Start everything, wait until all chunk servers answer, and stop it at the end."""
    space = f"thm{os.getpid()}"
    servers = {label: f"{ADDRESS}{11 + i}" for i, label in enumerate(LABELS)}
    _network(space, servers.values())
    started = Cluster(space, folder / "mount", servers)
    write_config(folder, MASTER, servers)
    started.mount.mkdir(mode=0o777)
    try:
        ok(started.run("mfsmaster", "-c", folder / "master.cfg", "start"))
        for label in servers:
            ok(started.run("mfschunkserver", "-c", folder / f"server{label}.cfg", "start"))
        ok(started.run("mfsmount", started.mount, "-H", MASTER, "-o", "mfscachemode=DIRECT"))
        wait_for_servers(started.run, started.mount, len(servers))
        for label in servers:
            ok(
                started.run(
                    "mfsscadmin",
                    "create",
                    "-m",
                    "S",
                    "-K",
                    label,
                    f"node_{label}",
                    cwd=started.mount,
                )
            )
        yield started
    finally:
        subprocess.run(["umount", "-l", started.mount], capture_output=True)
        for label in servers:  # an orderly stop takes two seconds
            started.run("mfschunkserver", "-c", folder / f"server{label}.cfg", "kill")
        started.run("mfsmaster", "-c", folder / "master.cfg", "kill")
        subprocess.run(["ip", "netns", "del", space], capture_output=True)


def _network(space: str, addresses: Iterable[str]) -> None:
    commands = [["ip", "netns", "add", space], ["ip", "-n", space, "link", "set", "lo", "up"]]
    commands += [
        ["ip", "-n", space, "addr", "add", f"{address}/24", "dev", "lo"]
        for address in (MASTER, *addresses)
    ]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)


def master_config(folder: Path, master: str) -> str:
    """Return the configuration of a master that listens on that address."""
    return _MASTER.format(folder=folder, master=master)


def write_config(folder: Path, master: str, servers: dict[str, str]) -> None:
    """Write configuration and directories of a master and chunk servers (label -> address)."""
    for name in ("master", *(f"{kind}{x}" for kind in ("state", "disk") for x in servers)):
        (folder / name).mkdir(mode=0o777)
    (folder / "master" / "metadata.mfs").write_text("MFSM NEW")
    (folder / "exports").write_text("* / rw,alldirs,admin,maproot=0:0\n")
    (folder / "master.cfg").write_text(master_config(folder, master))
    for label, address in servers.items():
        (folder / f"hdd{label}").write_text(f"{folder}/disk{label}\n")
        text = _SERVER.format(folder=folder, label=label, address=address, master=master)
        (folder / f"server{label}.cfg").write_text(text)


def wait_for_servers(
    run: Callable[..., subprocess.CompletedProcess[str]], mount: Path, servers: int
) -> None:
    """Wait until a file with as many copies as there are servers has all of them."""
    probe = mount / "probe"

    def copied() -> bool:
        probe.write_bytes(b"")
        run("mfssetgoal", str(servers), probe)
        with suppress(OSError):
            probe.write_bytes(b"x" * 65536)
        done = run("mfsfileinfo", probe)
        probe.unlink()
        return done.stdout.count("VALID") == servers

    until(copied, "the chunk servers come up", every_s=0.5)
