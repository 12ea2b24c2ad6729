"""Work Queue on real workers behind shaped links: network traffic of the planned start."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.bed import HEAD, Bed, network
from tests.support.cli import tracehint
from tests.support.needs import missing_for

MIB = 1 << 20
CHAINS, SIZE, PORT = 5, 8 * MIB, 9123
WORKFLOW = "".join(
    f"a_{i}.bin: seed.txt unused.bin\n"
    f"\thead -c {SIZE} /dev/urandom > a_{i}.bin; cat seed.txt; sleep 2\n"
    f"b_{i}.txt: a_{i}.bin\n\tsleep 1; wc -c < a_{i}.bin > b_{i}.txt\n"
    for i in range(CHAINS)
)


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """The nodes with a worker on each."""
    lost = missing_for(("makeflow", "work_queue_worker", "ip", "tc"))
    if lost:
        pytest.skip(lost)
    folder = tmp_path_factory.mktemp("wq")
    with network(folder) as made:
        workers = []
        for node in made.nodes:
            own = folder / f"worker{node.label}"
            own.mkdir()
            words = ("work_queue_worker", "--cores=1", "-t", "600", "-s", own, HEAD, str(PORT))
            with (folder / f"worker{node.label}.log").open("wb") as log:
                workers.append(subprocess.Popen(node.command(*words), stdout=log, stderr=log))
        try:
            yield made
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the workflow and the files that `emit` makes from it and a recorded run."""
    if missing_for(("makeflow",)):
        pytest.skip("not installed: makeflow")
    folder = tmp_path_factory.mktemp("planned")
    (folder / "seed.txt").write_text("seed\n")
    (folder / "unused.bin").write_bytes(os.urandom(SIZE))
    (folder / "w.makeflow").write_text(WORKFLOW)
    words = ["emit", "h.json", "--workflow-engine", "work-queue", "w.makeflow", "--like", "r.trace"]
    record = ["record", "--collector", "strace", "-o", "r.trace", "--"]
    for command in (
        [*record, "makeflow", "-j", "5", "w.makeflow"],
        ["hints", "r.trace", "-o", "h.json"],
        [*words, "-o", "planned.makeflow"],
    ):
        done = tracehint(*command, cwd=folder)
        assert done.returncode == 0, done.stderr
    assert "makeflow -T wq -W files planned.makeflow" in done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.engine
def test_only_the_input_that_nobody_reads_is_gone(planned: Path) -> None:
    assert (planned / "planned.makeflow").read_text() == WORKFLOW.replace(" unused.bin", "")


def _run(bed: Bed, folder: Path, *options: str) -> int:
    """Return the bytes that the nodes received in one run from a clean state."""
    for old in [*folder.glob("a_*"), *folder.glob("b_*"), *folder.glob("*.makeflowlog")]:
        old.unlink()
    before = bed.received()
    done = bed.head(
        "sh", "-c", 'cd "$0" && exec makeflow -T wq --port "$@"', folder, str(PORT), *options
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert all((folder / f"b_{i}.txt").read_text().strip() == str(SIZE) for i in range(CHAINS))
    return bed.received() - before


@pytest.mark.slow
@pytest.mark.store
def test_the_planned_start_sends_no_intermediate_again(bed: Bed, planned: Path) -> None:
    """Without the plan, the manager sends the unread input to every worker."""
    time.sleep(2)
    plain = _run(bed, planned, "-W", "fcfs", "w.makeflow")
    told = _run(bed, planned, "-W", "files", "planned.makeflow")
    assert plain > SIZE, "the input that nobody reads goes to the workers"
    assert told < SIZE // 2, "no intermediate and no unread input is sent"
