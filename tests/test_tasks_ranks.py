"""Ranks of MPI programs: one task, or with `--ranks` tasks of one group."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.answers import ENGINES, Answer, analyzed, answer
from tests.support.bundles import RunBuilder
from tests.support.trees import P, grow, labelled
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Analysis, Options
from tracehint.commands import import_
from tracehint.schemas.manifest import RecordingHost

pytestmark = pytest.mark.slow

PART = 1 << 20
PYTHON = "/usr/bin/python3"  # Debian's mpi4py is built for the system's Python
SOLVE = f"""
import sys
from mpi4py import MPI

data, at = bytearray({PART}), MPI.COMM_WORLD.rank * {PART}
source = MPI.File.Open(MPI.COMM_WORLD, sys.argv[1], MPI.MODE_RDONLY)
source.Read_at(at, data)
source.Close()
target = MPI.File.Open(MPI.COMM_WORLD, sys.argv[2], MPI.MODE_CREATE | MPI.MODE_WRONLY)
target.Write_at(at, data)
target.Close()
"""
SCRIPT = f"""
head -c {4 * PART} /dev/urandom > in.bin
mpirun --allow-run-as-root --oversubscribe -n 4 {PYTHON} solve.py in.bin out.bin
cksum out.bin > sum
"""


def ranks(tasks: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(t["type"], t["rank"]) for t in tasks if t.get("rank") is not None]


@pytest.mark.ebpf
@pytest.mark.parametrize("collector", ENGINES)
def test_ranks_of_a_recorded_program_scatter_and_gather(tmp_path: Path, collector: str) -> None:
    mpi = [PYTHON, "-c", "import mpi4py.MPI"]
    if subprocess.run(mpi, capture_output=True, check=False).returncode:
        pytest.skip("mpi4py is not installed")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "solve.py").write_text(SOLVE)
    one = answer(tmp_path, SCRIPT, collector)
    assert [t["type"] for t in one.data["tasks"] if not t["engine"]] == [
        "head", "solve.py", "cksum",
    ]  # fmt: skip  # a table
    assert one.labels("in.bin") == ["pipeline"] and one.labels("out.bin") == ["pipeline"]
    check_parts(analyzed(tmp_path / "run.trace", "--ranks"))


def check_parts(found: Answer) -> None:
    """Check that each rank accessed its part of both files."""
    tasks = {t["id"]: t for t in found.data["tasks"] if "rank" in t}
    assert ranks(list(tasks.values())) == [("solve.py", n) for n in range(4)]
    assert len({t["group"] for t in tasks.values()}) == 1
    assert [t["name"][-9:] for t in tasks.values()] == [f" [rank {n}]" for n in range(4)]
    sides = (("in.bin", "scatter", "consumers"), ("out.bin", "gather", "producers"))
    for path, label, side in sides:
        rows = [r for r in found.file(path)[side] if r["task"] in tasks]
        parts = {tasks[r["task"]]["rank"]: r["ranges"] for r in rows}
        assert parts == {n: [[n * PART, (n + 1) * PART]] for n in range(4)}
        assert found.labels(path)[0] == label
    launchers = [t for t in found.data["tasks"] if t["name"].startswith("mpirun") and t["engine"]]
    assert len(launchers) == 1


def solver(n: int) -> P:
    return P(["./solve"], env={"OMPI_COMM_WORLD_RANK": str(n)}, label=f"r{n}")


def with_parts(tree: P, run: RunBuilder) -> RunBuilder:
    """Let every labelled process read its part of one file and write its part of another."""
    found = labelled(grow(run, tree))
    source = run.file("/data/in", existed=True, size=len(found) * PART)
    target = run.file("/data/out", size=len(found) * PART)
    for n, process in enumerate(found.values()):
        run.read(process.procs[-1], source, n * PART, (n + 1) * PART, at=1.0)
        run.write(process.procs[-1], target, n * PART, (n + 1) * PART, at=2.0)
    return run


def analysis(tmp_path: Path, run: RunBuilder, wanted: bool | None = True) -> Analysis:
    return analyze(run.bundle(tmp_path), Options(ranks=wanted))


def test_the_default_is_one_task_on_one_host(tmp_path: Path) -> None:
    tree = P(["mpirun", "-n", "3", "./solve"], *(solver(n) for n in range(3)))
    run = with_parts(tree, RunBuilder())
    for wanted in (None, False):
        tasks = analysis(tmp_path / str(wanted), run, wanted).tasks.to_pylist()
        assert [(t["type"], t["rank"], t["engine"]) for t in tasks] == [("solve", None, False)]
    tasks = analysis(tmp_path / "ranks", run).tasks.to_pylist()
    assert [(t["rank"], t["group"], t["engine"]) for t in tasks] == [
        (None, None, True), (0, 0, False), (1, 0, False), (2, 0, False),
    ]  # fmt: skip  # a table


def test_two_programs_are_two_groups(tmp_path: Path) -> None:
    runs = [P(["mpirun", "-n", "2", "./solve"], solver(0), solver(1)) for _ in range(2)]
    for k, process in enumerate(kid for one in runs for kid in one.kids):
        process.label = f"p{k}"
    tree = P(["sh", "-c", "mpirun ./solve; mpirun ./solve"], *runs)
    rule = P(["makeflow", "w.mf"], tree)
    tasks = analysis(tmp_path, with_parts(rule, RunBuilder())).tasks.to_pylist()
    assert [(t["group"], t["rank"]) for t in tasks if t["rank"] is not None] == [
        (0, 0), (1, 0), (0, 1), (1, 1),
    ]  # fmt: skip  # a table


def test_ranks_on_several_hosts_are_tasks_without_being_asked_for(tmp_path: Path) -> None:
    run = RunBuilder(host="node1")
    run.manifest.hosts.append(RecordingHost(name="node2", mounts=run.manifest.hosts[0].mounts))
    tree = P(["mpirun", "-n", "3", "./solve"], solver(0), solver(1))
    found = labelled(grow(run, tree))
    run.host = "node2"
    there = P(["orted", "-mca", "x"], solver(2))
    found |= labelled(grow(run, there))
    for n, process in enumerate(found.values()):
        run.write(process.procs[-1], run.file(f"/data/out{n}"), 0, PART, at=1.0)
    tasks = analysis(tmp_path, run, None).tasks.to_pylist()
    of_ranks = [(t["rank"], t["group"], t["host"]) for t in tasks if t["rank"] is not None]
    assert sorted(of_ranks) == [(0, 0, "node1"), (1, 0, "node1"), (2, 0, "node2")]
    none = analysis(tmp_path / "no", run, False).tasks.to_pylist()
    assert [t["rank"] for t in none] == [None] * len(none)


def imported(tmp_path: Path, *logs: Path) -> Path:
    words = [*map(str, logs), "-o", str(tmp_path / "run.trace")]
    import_.command.main(words, standalone_mode=False)
    return tmp_path / "run.trace"


def sample(name: str) -> Path:
    path = Path(os.environ.get("TRACEHINT_DATA") or "/nonexistent") / "io-samples/darshan" / name
    if not path.exists():
        pytest.skip("TRACEHINT_DATA does not name a folder with io-samples/")
    return path


def test_ranks_of_a_darshan_log_have_the_ranges_that_they_wrote(tmp_path: Path) -> None:
    """IOR, 4 ranks: rank k wrote 1 MiB starting at 2048 + k MiB (the log's known answer)."""
    found = analyzed(imported(tmp_path, sample("ior_hdf5_example.darshan")), "--ranks")
    tasks = {t["id"]: t["rank"] for t in found.data["tasks"] if "rank" in t}
    (file,) = found.data["files"]
    wrote = {tasks[p["task"]]: p["ranges"][-1] for p in file["producers"]}
    assert wrote == {k: [2048 + k * PART, 2048 + (k + 1) * PART] for k in range(4)}
    assert [t["engine"] for t in found.data["tasks"] if "rank" not in t] == [True]
    one = analyzed(tmp_path / "run.trace")
    (file,) = one.data["files"]
    assert [p["bytes"] for p in file["producers"]] == [4195800]  # segments, counters: counted once


def test_ranks_of_a_darshan_log_read_what_they_read(tmp_path: Path) -> None:
    """A was read by ranks 1 and 3, B by ranks 0 and 2 (known answers of the log)."""
    logs = sorted(sample("darshan-graph").glob("*.darshan"))
    found = analyzed(imported(tmp_path, *logs), "--ranks")
    tasks = {t["id"]: t.get("rank") for t in found.data["tasks"]}
    for path, version, readers in (("A", 1, [1, 3]), ("B", 0, [0, 2])):
        assert [tasks[c["task"]] for c in found.file(path, version)["consumers"]] == readers
        assert found.labels(path, version)[0] == "broadcast"
