"""A real Confuga on the bed of shaped links: a head, and five storage nodes that run the jobs."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.bed import HEAD, Bed, Node, network
from tests.support.needs import missing_for
from tests.support.patience import PATIENCE_S

TOOLS = (
    "catalog_server", "chirp_server", "confuga_adm", "chirp", "makeflow", "setpriv", "ip", "tc",
)  # fmt: skip  # a table
CATALOG_PORT, HEAD_PORT, NODE_PORT = 9097, 9000, 9001
NOBODY = 65534
HEAD_S = 120.0  # until a new head answers, on a busy machine


def missing() -> str:
    """Return the missing requirements; empty if a Confuga can run."""
    return missing_for(TOOLS)


@dataclass
class Confuga:
    """The running store. Its servers refuse to run as root, so `nobody` owns all of it."""

    bed: Bed
    folder: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def server(self) -> str:
        """The address for clients."""
        return f"{HEAD}:{HEAD_PORT}"

    def _as(self, node: Node | None, *words: str | Path) -> list[str | Path]:
        drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        return (node or self.bed).command(*drop, *words)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),  # Makeflow's MPI creates a directory there
            "CATALOG_HOST": HEAD,
            "CATALOG_PORT": str(CATALOG_PORT),
        }

    def start(self, name: str, *words: str | Path, node: Node | None = None) -> None:
        """Start a server in its own directory, on the head or on a node."""
        folder = self.own(name)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                self._as(node, *words),
                cwd=folder,
                env=self._environment(),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.running.append(process)

    def own(self, name: str) -> Path:
        """Create a directory that the store's user may write to."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        os.chown(path, NOBODY, NOBODY)
        return path

    def run(
        self, *words: str | Path, cwd: Path | None = None, patience: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a client on the head and wait."""
        return subprocess.run(
            self._as(None, *words),
            cwd=cwd or self.folder,
            env=self._environment(),
            text=True,
            capture_output=True,
            timeout=patience,
        )

    def chirp(self, *words: str) -> str:
        """Run a command of the chirp client and return its output."""
        done = self.run("chirp", "-t", "200", "-a", "unix", self.server, *words)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def put(self, source: Path, name: str) -> None:
        """Copy a file into the store."""
        mine = self.own("upload") / "file"
        shutil.copyfile(source, mine)
        mine.chmod(0o755)
        self.chirp("put", str(mine), name)

    def head(self, options: str) -> None:
        """Start the head with these options in its URI, instead of a running one.

        Occasionally a head never answers after its start: it is started again.
        """
        # a client that connects during the server's start may never be answered
        ask = ("chirp", "-t", "5", "-a", "unix", self.server, "ls", "/")
        for last in (False, False, True):
            self._start_head(options)
            try:
                _wait(lambda: self.run(*ask, patience=15).returncode == 0, HEAD_S)
            except AssertionError as error:
                if last:
                    log = (self.folder / "headcwd" / "log").read_text(errors="replace")
                    raise AssertionError(f"{error}: {log[-1000:]}") from None
            else:
                return

    def _start_head(self, options: str) -> None:
        servers = 1 + len(self.bed.nodes)
        for old in self.running[servers:]:
            _stop(old)
        del self.running[servers:]
        self.start(
            "headcwd",
            "chirp_server",
            f"--advertise={HEAD}",
            f"--catalog-name={HEAD}",
            "--catalog-update=2s",
            f"--interface={HEAD}",
            f"--port={HEAD_PORT}",
            "--jobs",
            f"--transient={self.folder}/headcwd",
            f"--root=confuga://{self.folder}/head/?auth=unix{options}",
        )

    def makeflow(self, folder: Path, workflow: str, store: str = "/wf", jobs: int = 20) -> None:
        """Run a workflow on the store's nodes, with at most `jobs` submitted at a time."""
        with suppress(FileNotFoundError):
            (folder / f"{workflow}.makeflowlog").unlink()
        done = self.run(
            "makeflow",
            "-T",
            "chirp",
            f"--working-dir=chirp://{self.server}{store}",
            "-J",
            str(jobs),
            "--skip-file-check",
            workflow,
            cwd=folder,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def moved(self) -> int:
        """Return the bytes that all jobs so far caused to be transferred to their nodes.

        A job's repl_bytes were on the node before it started: not counted.
        """
        pulled = "SELECT coalesce(sum(pull_bytes), 0) FROM ConfugaJob"
        kept = "SELECT coalesce(sum(size), 0) FROM TransferJob JOIN File ON fid = File.id"
        return self.ask("headcwd/.__job.db", pulled) + self.ask("head/confuga.db", kept)

    def replicas(self, size: int) -> int:
        """Return the number of replicas of the only file of that size."""
        return self.ask(
            "head/confuga.db",
            f"SELECT count(*) FROM Replica JOIN File ON fid = id WHERE size = {int(size)}",
        )

    def ask(self, database: str, question: str) -> int:
        """Return the first number of a query's result from one of the store's databases."""
        uri = f"file:{self.folder / database}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=PATIENCE_S)) as con:
            return int(con.execute(question).fetchone()[0])


@contextmanager
def confuga(folder: Path, options: str = "") -> Iterator[Confuga]:
    """Start everything, wait until all nodes are known, and stop it at the end."""
    _open(folder)
    with network(folder) as bed:
        store = Confuga(bed, folder)
        try:
            _start(store, options)
            yield store
        finally:
            for process in reversed(store.running):
                _stop(process)


def _start(store: Confuga, options: str) -> None:
    folder = store.own(".")
    store.start(
        "catalog",
        "catalog_server",
        f"--history={folder}/catalog/history",
        f"--update-log={folder}/catalog/updates",
        f"--interface={HEAD}",
        f"--port={CATALOG_PORT}",
    )
    for node in store.bed.nodes:
        own = store.own(f"n{node.label}")
        store.start(
            own.name,
            "chirp_server",
            f"--advertise={HEAD}",
            f"--catalog-name={node.address}",
            "--catalog-update=2s",
            f"--interface={node.address}",
            f"--port={NODE_PORT}",
            "--jobs",
            "--job-concurrency=4",
            f"--root={own}/root",
            f"--transient={own}/transient",
            "--project-name=P",
            "--auth=ticket",
            "--auth=unix",
            "--auth=hostname",
            "--auth=address",
            node=node,
        )
    root = f"confuga://{folder}/head/"
    for node in store.bed.nodes:
        address = f"{node.address}:{NODE_PORT}"
        words = ("confuga_adm", root, "sn-add", "address", address)
        _wait(lambda words=words: store.run(*words).returncode == 0)
    store.head(options)
    active = "SELECT count(*) FROM StorageNodeActive"
    _wait(lambda: store.ask("head/confuga.db", active) == len(store.bed.nodes))
    store.chirp("mkdir", "/wf")


def _open(folder: Path) -> None:
    """Let another user reach the folder: pytest's folders are closed."""
    for path in (folder, *folder.parents):
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server and what it started: a head's scheduler outlives it and works on its URI."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(3)


def _wait(ready: Callable[[], bool], patience: float = PATIENCE_S) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        with suppress(sqlite3.Error, subprocess.TimeoutExpired):
            if ready():
                return
        time.sleep(0.3)
    raise AssertionError("Confuga did not come up")
