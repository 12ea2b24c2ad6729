"""Work Queue: a worker with four cores on each node; the manager, and all files, on the head."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.gain_stores.flow import Flow
from scripts.bench.gain_stores.learned import PLANNED, copy_inputs, learned
from scripts.bench.gain_stores.results import Moved
from scripts.bench.gain_stores.table import Task
from tests.support.bed import HEAD, Bed, network
from tests.support.needs import missing_for

COLUMNS = {
    "default": "default",
    "hand": "by hand: `-W files`",
    "planned": "planned: lists of a recorded run, `-W files`",
}
OPTIONS = {"default": (), "hand": ("-W", "files"), "planned": ("-W", "files")}
PORT, CORES = "9123", "4"


def missing() -> str:
    """What is needed and not there; empty: it can run."""
    return missing_for(("makeflow", "work_queue_worker", "ip", "tc", "strace"))


@dataclass(frozen=True)
class Workers:
    """The nodes, each with a worker that waits for a manager."""

    bed: Bed

    def run(self, task: Task, column: str) -> Moved:
        """One run from nothing."""
        flow = task.flow()
        folder = self.bed.folder / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        copy_inputs(flow, folder)
        source = flow.folder / "w.makeflow"
        if column == "planned":
            source = learned(flow, "work-queue").folder / PLANNED
        shutil.copyfile(source, folder / "w.makeflow")
        sent, back, began = self.bed.received(), self.bed.returned(), time.monotonic()
        words = ["sh", "-c", 'cd "$0" && exec makeflow -T wq --port "$@"', folder, PORT]
        done = self.bed.head(*words, *OPTIONS[column], "w.makeflow")
        seconds = time.monotonic() - began
        if done.returncode != 0:
            raise RuntimeError(f"makeflow: {done.stdout[-1000:]}{done.stderr[-1000:]}")
        moved = (0, self.bed.received() - sent), (self.bed.returned() - back,)
        check(flow, folder)
        return Moved(column, *moved[0], None, moved[1][0], seconds)


def check(flow: Flow, folder: Path) -> None:
    """Raises RuntimeError where a result is not as large as it has to be."""
    wrong = [n for n, size in flow.results.items() if (folder / n).stat().st_size != size]
    if wrong:
        raise RuntimeError(f"not what the workflow writes: {', '.join(wrong[:5])}")


@contextmanager
def started(folder: Path) -> Iterator[Workers]:
    """The bed with its workers, for as long as they are needed."""
    with network(folder) as bed:
        workers = []
        for node in bed.nodes:
            own = folder / f"worker{node.label}"
            own.mkdir()
            words = ["work_queue_worker", f"--cores={CORES}", "-t", "900", "-s", own, HEAD, PORT]
            with (folder / f"worker{node.label}.log").open("wb") as log:
                workers.append(subprocess.Popen(node.command(*words), stdout=log, stderr=log))
        try:
            yield Workers(bed)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
