"""Confuga: a head, and five storage nodes that run the jobs. Inputs are brought in by the head."""

from __future__ import annotations

import itertools
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from scripts.bench.gain_stores.flow import Flow, fill
from scripts.bench.gain_stores.learned import PLANNED, learned
from scripts.bench.gain_stores.results import Moved
from scripts.bench.gain_stores.rows import NODES
from scripts.bench.gain_stores.table import Task
from tests.support import confuga as store
from tests.support.needs import missing_for

COLUMNS = {
    "default": "default",
    "hand": "by hand: `setrep` of what all read",
    "planned": "planned: lists of a recorded run, `pull-threshold`, `-J`",
}
JOBS = 20  # that Makeflow sends at one time
PATIENCE_S = 150  # copies are made at a health pass, up to a minute later


def missing() -> str:
    """What is needed and not there; empty: it can run."""
    return store.missing() or missing_for(("strace",))


@dataclass
class Running:
    """The store; each run has a directory and inputs of its own, with content of their own."""

    store: store.Confuga
    number: Iterator[int] = field(default_factory=itertools.count)

    def run(self, task: Task, column: str) -> Moved:
        """A first run, and the same again."""
        flow, jobs, options = task.flow(), JOBS, ""
        source = flow.folder / "w.makeflow"
        if column == "planned":
            told = learned(flow, "confuga")
            source, options = told.folder / PLANNED, _options(told.remarks)
            jobs = int(re.findall(r"chirp -J (\d+)", told.remarks)[0])
        self.store.head(options)
        where = f"/run{next(self.number)}"
        own = self._upload(flow, where)
        shutil.copyfile(source, own / "w.makeflow")
        before = self.store.bed.received()
        if column == "hand":
            self._copies(flow, where)
        setup = self.store.bed.received() - before
        first, seconds = self._once(own, where, jobs)
        later, _ = self._once(own, where, jobs)
        self._check(flow, where)
        self.store.chirp("rm", where)
        return Moved(column, setup, first, later, 0, seconds)

    def _once(self, own: Path, where: str, jobs: int) -> tuple[int, float]:
        before, began = self.store.bed.received(), time.monotonic()
        self.store.makeflow(own, "w.makeflow", where, jobs)
        return self.store.bed.received() - before, time.monotonic() - began

    def _upload(self, flow: Flow, where: str) -> Path:
        self.store.chirp("mkdir", where)
        own, fresh = self.store.own(where.strip("/")), self.store.folder / "fresh"
        for name, size in flow.inputs.items():
            fill(fresh, size)
            self.store.put(fresh, f"{where}/{name}")
        return own

    def _copies(self, flow: Flow, where: str) -> None:
        """A copy on each node of what all read, and wait for it."""
        held = "SELECT count(*) FROM Replica"
        wanted = self.store.ask("head/confuga.db", held) + (NODES - 1) * len(flow.widely)
        for name in flow.widely:
            self.store.chirp("setrep", f"{where}/{name}", str(NODES))
        end = time.monotonic() + PATIENCE_S
        while self.store.ask("head/confuga.db", held) < wanted:
            if time.monotonic() > end:
                raise RuntimeError("Confuga did not make the copies")
            time.sleep(1)

    def _check(self, flow: Flow, where: str) -> None:
        listed = self.store.chirp("ls", "-l", where)
        for name, size in flow.results.items():
            if not re.search(rf"\b{size}\b.*\b{re.escape(name)}$", listed, re.MULTILINE):
                raise RuntimeError(f"{name}: not what the workflow writes")


def _options(remarks: str) -> str:
    """What `emit` said about the head's URI, as options of it."""
    found = re.search(r"confuga://ROOT\?(\S+?)[;\s]", remarks + "\n")
    return f"&{found[1]}" if found else ""


@contextmanager
def started(folder: Path) -> Iterator[Running]:
    """The store, for as long as it is needed."""
    with store.confuga(folder) as running:
        yield Running(running)
