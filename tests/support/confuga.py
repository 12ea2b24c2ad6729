"""A real Confuga on loopback addresses: a head and five storage nodes, which also run the jobs."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

CATALOG = "127.0.0.1"
NODES = 5
TOOLS = ("catalog_server", "chirp_server", "confuga_adm", "chirp", "makeflow", "setpriv")
NOBODY = 65534
PATIENCE_S = 60


def missing() -> str:
    """What is needed and not there; empty: a Confuga can run."""
    lost = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(lost)} (Debian: coop-computing-tools)" if lost else ""


def free_port(address: str) -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


@dataclass
class Confuga:
    """The running store; servers refuse to run as root, so all of it is `nobody`'s then."""

    folder: Path
    catalog_port: int = field(default_factory=lambda: free_port(CATALOG))
    port: int = field(default_factory=lambda: free_port(CATALOG))
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def server(self) -> str:
        """What clients call."""
        return f"{CATALOG}:{self.port}"

    def _as(self, *words: str | Path) -> list[str | Path]:
        drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        return [*(drop if os.geteuid() == 0 else []), *words]

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),  # Makeflow's MPI makes a directory there
            "CATALOG_HOST": CATALOG,
            "CATALOG_PORT": str(self.catalog_port),
        }

    def start(self, name: str, *words: str | Path) -> subprocess.Popen[bytes]:
        """Start a server in a directory of its own."""
        folder = self.own(name)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                self._as(*words), cwd=folder, env=self._environment(), stdout=log, stderr=log,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.running.append(process)
        return process

    def own(self, name: str) -> Path:
        """A directory that the store's user may write to."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        return path

    def run(self, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a client and wait."""
        return subprocess.run(
            self._as(*words), cwd=cwd or self.folder, env=self._environment(), text=True,
            capture_output=True, timeout=300,
        )  # fmt: skip

    def chirp(self, *words: str) -> str:
        """A command of the chirp client; its answer."""
        done = self.run("chirp", "-a", "unix", self.server, *words)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def put(self, source: Path, name: str) -> None:
        """Bring a file into the store."""
        mine = self.own("upload") / "file"
        shutil.copyfile(source, mine)
        mine.chmod(0o755)
        self.chirp("put", str(mine), name)

    def head(self, options: str) -> None:
        """Start the head with these options in its URI, in place of one that runs."""
        for old in self.running[NODES + 1 :]:
            _stop(old)
        del self.running[NODES + 1 :]
        self.start(
            "headcwd", "chirp_server", f"--advertise={CATALOG}", f"--catalog-name={CATALOG}",
            "--catalog-update=2s", f"--interface={CATALOG}", f"--port={self.port}", "--jobs",
            f"--transient={self.folder}/headcwd",
            f"--root=confuga://{self.folder}/head/?auth=unix{options}",
        )  # fmt: skip
        _wait(lambda: self.run("chirp", "-a", "unix", self.server, "ls", "/").returncode == 0)

    def makeflow(self, folder: Path, workflow: str, store: str = "/wf") -> None:
        """Run a workflow on the store's nodes."""
        with suppress(FileNotFoundError):
            (folder / f"{workflow}.makeflowlog").unlink()
        done = self.run(
            "makeflow", "-T", "chirp", f"--working-dir=chirp://{self.server}{store}", "-J", "20",
            "--skip-file-check", workflow, cwd=folder,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def moved(self) -> int:
        """Bytes that all jobs so far caused to be brought to their nodes.

        A job's repl_bytes are those that lay there when it began: not counted.
        """
        pulled = "SELECT coalesce(sum(pull_bytes), 0) FROM ConfugaJob"
        kept = "SELECT coalesce(sum(size), 0) FROM TransferJob JOIN File ON fid = File.id"
        return self._ask("headcwd/.__job.db", pulled) + self._ask("head/confuga.db", kept)

    def replicas(self, size: int) -> int:
        """Copies of the one file of that size."""
        return self._ask(
            "head/confuga.db",
            f"SELECT count(*) FROM Replica JOIN File ON fid = id WHERE size = {int(size)}",
        )

    def _ask(self, database: str, question: str) -> int:
        uri = f"file:{self.folder / database}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=20)) as con:
            return int(con.execute(question).fetchone()[0])


@contextmanager
def confuga(folder: Path, options: str = "") -> Iterator[Confuga]:
    """Start everything, wait until all nodes are known, and stop it again."""
    _open(folder)
    store = Confuga(folder)
    store.own(".")
    try:
        store.start(
            "catalog", "catalog_server", f"--history={folder}/catalog/history",
            f"--update-log={folder}/catalog/updates", f"--interface={CATALOG}",
            f"--port={store.catalog_port}",
        )  # fmt: skip
        addresses = [f"127.0.0.{11 + number}" for number in range(NODES)]
        ports = [free_port(address) for address in addresses]
        for address, port in zip(addresses, ports, strict=True):
            name = f"n{address[-2:]}"
            store.start(
                name, "chirp_server", f"--advertise={CATALOG}", f"--catalog-name={address}",
                "--catalog-update=2s", f"--interface={address}", f"--port={port}", "--jobs",
                "--job-concurrency=4", f"--root={folder}/{name}/root",
                f"--transient={folder}/{name}/transient", "--project-name=P", "--auth=ticket",
                "--auth=unix", "--auth=hostname", "--auth=address",
            )  # fmt: skip
        root = f"confuga://{folder}/head/"
        for address, port in zip(addresses, ports, strict=True):
            node = f"{address}:{port}"
            _wait(lambda node=node: _ok(store.run("confuga_adm", root, "sn-add", "address", node)))
        store.head(options)
        _wait(
            lambda: store._ask("head/confuga.db", "SELECT count(*) FROM StorageNodeActive") == NODES
        )
        store.chirp("mkdir", "/wf")
        yield store
    finally:
        for process in reversed(store.running):
            _stop(process)


def _open(folder: Path) -> None:
    """Let another user reach the folder: pytest's are closed."""
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)


def _ok(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 0


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(ready: Callable[[], bool], patience: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with suppress(sqlite3.Error):
            if ready():
                return
        time.sleep(0.3)
    raise AssertionError("Confuga did not come up")
