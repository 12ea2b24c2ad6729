"""Processor time of tasks, their waiting for files, and its use in predictions."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder
from tests.support.cli import tracehint as tracehint_command
from tests.support.ebpf import require_ebpf
from tests.support.predicting import need_engine
from tests.support.slow_reads import slow_reads
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Analysis
from tracehint.analyzer.output.json import from_json
from tracehint.analyzer.predict.learning import learn_times
from tracehint.analyzer.predict.model import COMPUTE, READ
from tracehint.analyzer.predict.workload import from_analysis
from tracehint.analyzer.tasks import activity
from tracehint.analyzer.tasks.activity import _union
from tracehint.schemas.store import read_bundle
from tracehint.schemas.tables import ADDED

MB = 1_000_000


def one_task(**process: Any) -> tuple[RunBuilder, int]:
    """Build a shell that starts one task of 10 s; return the run and the task's epoch."""
    build = RunBuilder()
    driver = build.process(["sh", "wf.sh"], end=12, cpu=0.01)
    build.process(["other"], parent=driver, start=10.5, end=11, cpu=0.5)
    return build, build.process(["work"], parent=driver, start=0, end=10, **process)


def task(found: Analysis, kind: str = "work") -> dict[str, Any]:
    return next(row for row in found.tasks.to_pylist() if row["type"] == kind)


def test_a_task_that_reads_and_runs_on_no_processor_waits(tmp_path: Path) -> None:
    build, work = one_task(cpu=1.2)
    source = build.file("/data/in", existed=True, size=500 * MB)
    build.read(work, source, 0, 500 * MB, at=0.2, until=8.5, opened=0.1, ops=500)
    found = task(analyze(build.bundle(tmp_path)))
    assert (found["cpu_s"], found["io_wait_s"]) == (1.2, pytest.approx(8.4))


@pytest.mark.parametrize("block", [1, 2, 100])
def test_uses_that_overlap_count_once_in_blocks_of_any_size(
    block: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(activity, "BLOCK", block)
    build, work = one_task(cpu=0.5)
    source = build.file("/data/in", existed=True, size=500 * MB)
    for start, end in ((1, 4), (2, 6), (8, 9)):
        build.read(work, source, 0, 500 * MB, at=start, until=end, ops=500)
    build.read(work, source, 0, MB, at=9.5, until=9.505, ops=1)
    assert task(analyze(build.bundle(tmp_path)))["io_wait_s"] == pytest.approx(6.005)


def test_processor_time_bounds_the_waiting(tmp_path: Path) -> None:
    build, work = one_task(cpu=9.5)
    source = build.file("/data/in", existed=True, size=500 * MB)
    build.read(work, source, 0, 500 * MB, at=0, until=10, ops=500)
    assert task(analyze(build.bundle(tmp_path)))["io_wait_s"] == pytest.approx(0.5)


def test_sleeping_is_no_waiting_for_files(tmp_path: Path) -> None:
    """No file is in use, or one for which no store would take that long."""
    build, work = one_task(cpu=0.1)
    log = build.file("/data/log.txt", existed=False, size=100)
    build.write(work, log, 0, 100, at=1, until=9, close=10, ops=4)
    assert task(analyze(build.bundle(tmp_path)))["io_wait_s"] == pytest.approx(0.5, abs=0.01)
    assert task(analyze(read_bundle(tmp_path / "run.trace")), "other")["io_wait_s"] == 0


def test_what_was_measured_goes_before_the_estimate(tmp_path: Path) -> None:
    build, work = one_task(io=3.0)
    source = build.file("/data/in", existed=True, size=500 * MB)
    build.read(work, source, 0, 500 * MB, at=0, until=9, ops=500)
    found = task(analyze(build.bundle(tmp_path)))
    assert (found["cpu_s"], found["io_wait_s"]) == (None, 3.0)


def test_side_by_side_processes_share_what_was_measured(tmp_path: Path) -> None:
    build = RunBuilder()
    driver = build.process(["sh", "wf.sh"], end=12)
    work = build.process(["work"], parent=driver, start=0, end=10, io=6.0)
    build.process([], parent=work, start=0, end=10, io=6.0)
    found = task(analyze(build.bundle(tmp_path)))
    assert (found["processes"], found["io_wait_s"]) == (2, pytest.approx(6.0))


def test_a_long_process_without_processor_time_makes_it_unknown(tmp_path: Path) -> None:
    build, work = one_task(cpu=1.0)
    build.process(["helper"], parent=work, start=1, end=9)
    found = task(analyze(build.bundle(tmp_path)))
    assert (found["cpu_s"], found["io_wait_s"]) == (None, None)


@pytest.mark.parametrize(("last_use", "end"), [(None, 10), (8, 10), (11.5, 11.5)])
def test_a_loop_that_a_wrapper_leaves_behind_hides_neither_end_nor_waiting(
    last_use: float | None, end: float, tmp_path: Path
) -> None:
    """As in Makeflow's script for Slurm: a subshell is killed, but its `sleep` continues."""
    build, work = one_task(cpu=0.1)
    loop = build.process([], parent=work, start=0.1, end=9.9, exit_code=None, signal=15)
    left = build.process(["sleep", "30"], parent=loop, start=0.2, end=None, exit_code=None)
    copy = build.process(["cp"], parent=work, start=0.1, end=9.8, cpu=1.1)
    source = build.file("/data/in", existed=True, size=500 * MB)
    build.read(copy, source, 0, 500 * MB, at=0.2, until=8.5, opened=0.1, ops=500)
    if last_use is not None:
        build.read(left, source, 0, 10, at=last_use)
    found = task(analyze(build.bundle(tmp_path)))
    assert (found["processes"], found["end_s"]) == (4, end)
    assert (found["cpu_s"], found["io_wait_s"]) == (None, pytest.approx(8.4))


def test_a_child_that_waited_for_its_exec_computed_nothing(tmp_path: Path) -> None:
    build, work = one_task(cpu=1.0)
    child = build.process(["work"], parent=work, start=1, end=9, exit_code=None)
    build.process(["helper"], parent=work, prev=child, start=9, end=9.5, cpu=0.25)
    assert task(analyze(build.bundle(tmp_path)))["cpu_s"] == 1.25


def test_bundles_from_before_are_read(tmp_path: Path) -> None:
    build, _ = one_task(cpu=1.0)
    build.save(tmp_path / "old.trace")
    for name, columns in ADDED.items():
        for path in (tmp_path / "old.trace" / name).rglob("*.parquet"):
            pq.write_table(pq.read_table(path).drop_columns(list(columns)), path)
    bundle = read_bundle(tmp_path / "old.trace")
    compact = read_bundle(tmp_path / "old.trace", {"processes": ("uid",)})
    assert not bundle.problems and not compact.problems
    for table in (bundle.tables["processes"], compact.tables["processes"]):
        assert table.column_names[-2:] == ["cpu_ns", "io_ns"]
        assert table.column("cpu_ns").null_count == table.num_rows == 3
    assert task(analyze(bundle))["cpu_s"] is None


def test_the_json_has_what_is_known_and_gives_it_back(tmp_path: Path) -> None:
    from tracehint.analyzer.output.json import to_json

    build, work = one_task(cpu=1.25)
    build.process(["late"], parent=None, start=11, end=12)
    build.read(work, build.file("/data/in", existed=True, size=9), 0, 9, at=1)
    found = analyze(build.bundle(tmp_path))
    data = to_json(found)
    rows = {row["type"]: row for row in data["tasks"]}
    assert (rows["work"]["cpu_s"], rows["work"]["io_wait_s"]) == (1.25, 0.0)
    assert "cpu_s" not in rows["late"]
    assert task(from_json(data))["cpu_s"] == 1.25


intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 15)), max_size=12
)


@given(intervals)
def test_union_is_that_of_every_moment(rows: list[tuple[int, int, int]]) -> None:
    unit = 1_000_000
    of, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    found = _union(of, 5 * unit + start * unit, 5 * unit + (start + length) * unit, 3)
    moments = [{t for o, s, n in rows if o == k for t in range(s, s + n)} for k in range(3)]
    assert found.tolist() == [len(some) * unit for some in moments]


def computing(found: Analysis) -> tuple[float, list[str]]:
    """Return the seconds that the tasks of a run compute in a simulation, and the notes."""
    work = from_analysis(found)
    return float(work.op_seconds[work.of_kind(COMPUTE)].sum()), work.notes


def test_a_simulation_computes_what_was_no_waiting(tmp_path: Path) -> None:
    build, work = one_task(cpu=1.2)
    source = build.file("/data/in", existed=True, size=500 * MB)
    build.read(work, source, 0, 500 * MB, at=0.2, until=8.5, opened=0.1, ops=500)
    seconds, notes = computing(analyze(build.bundle(tmp_path)))
    assert seconds == pytest.approx(10 - 8.4 + 0.5)
    assert any("of all tasks the time in which" in note for note in notes)
    assert not any("not known" in note for note in notes)


@pytest.mark.parametrize(("pieces", "overlap"), [(1, 4.0), (8, 4.0), (9, 0.0)])
def test_computing_overlaps_reads_but_of_many_places(
    pieces: int, overlap: float, tmp_path: Path
) -> None:
    build, work = one_task(cpu=10.0)
    source = build.file("/data/in", existed=True, size=500 * MB)
    for start in range(0, pieces * 50 * MB, 50 * MB):
        build.read(work, source, start, start + MB, at=1, until=5, opened=1)
    simulated = from_analysis(analyze(build.bundle(tmp_path)))
    found = simulated.op_seconds[simulated.of_kind(READ)]
    assert len(found) == (pieces if overlap else 1)
    assert found.sum() == pytest.approx(overlap)


def test_what_is_not_known_is_said_once(tmp_path: Path) -> None:
    build, work = one_task()
    build.read(work, build.file("/data/in", existed=True, size=9), 0, 9, at=1)
    seconds, notes = computing(analyze(build.bundle(tmp_path)))
    assert seconds == pytest.approx(10.5)
    assert len([note for note in notes if "1 of 2 tasks count as computing" in note]) == 1


def test_what_others_waited_is_not_learned(tmp_path: Path) -> None:
    build, work = one_task(cpu=1.2)
    source = build.file("/data/in", existed=True, size=500 * MB)
    build.read(work, source, 0, 500 * MB, at=0.2, until=8.5, opened=0.1, ops=500)
    graph, _ = one_task()
    for row in graph.rows["processes"]:
        row["end_ns"] = None
    seen = analyze(build.bundle(tmp_path / "a"))
    found, _ = learn_times(analyze(graph.bundle(tmp_path / "b")), [seen])
    seconds, notes = computing(found)
    assert seconds == pytest.approx(10 - 8.4 + 0.5)
    assert not any("not known" in note for note in notes)


TRACE = (
    "task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tstart\tcomplete\tduration\trealtime\t%cpu\n"
    "1\tab/cdef01\t77\tMAKE\tCOMPLETED\t0\t0\t1000\t11000\t10s\t8s\t150.0%\n"
)
INSTANCE = {
    "name": "w", "schemaVersion": "1.5",
    "workflow": {
        "specification": {"tasks": [{"name": "MAKE", "id": "MAKE", "parents": [], "children": [],
                                     "inputFiles": [], "outputFiles": []}], "files": []},
        "execution": {"makespanInSeconds": 8, "executedAt": "2026-01-01T00:00:00Z",
                      "tasks": [{"id": "MAKE", "runtimeInSeconds": 8, "avgCPU": 150.0}]},
    },
}  # fmt: skip  # a table


@pytest.mark.parametrize(
    ("name", "text"), [("trace.txt", TRACE), ("instance.json", json.dumps(INSTANCE))]
)
def test_logs_of_engines_tell_processor_time(name: str, text: str, tmp_path: Path) -> None:
    from tracehint.adapters.engines.graphs import import_graphs

    (tmp_path / name).write_text(text)
    import_graphs([tmp_path / name], tmp_path / "graph.trace")
    found = task(analyze(read_bundle(tmp_path / "graph.trace")), "MAKE")
    assert (found["cpu_s"], found["io_wait_s"]) == (12.0, None)


PROGRAM = """
import sys, time
source = open("in.bin", "rb", buffering=0)
while source.read(1 << 20): pass
source.close()
began = time.process_time()
while time.process_time() - began < 0.3: pass
time.sleep(float(sys.argv[1]))
open("out.txt", "w").write("done")
"""
READS, PAUSE = 24, 0.05


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["ebpf", "preload"])
def test_a_run_on_a_slow_store_predicts_a_fast_one(collector: str, tmp_path: Path) -> None:
    """The waiting for 24 slow reads disappears; computing and sleeping remain."""
    need_engine()
    if os.geteuid() != 0:
        pytest.skip("needs root: fanotify, to make a store slow")
    if collector == "ebpf":
        require_ebpf()
    (tmp_path / "in.bin").write_bytes(bytes(READS << 20))
    (tmp_path / "work.py").write_text(PROGRAM)
    with slow_reads(tmp_path, PAUSE):
        done = tracehint_command(
            "record", "--collector", collector, "-o", "run.trace", "--",
            sys.executable, "-S", "work.py", "0.5", cwd=tmp_path,
        )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    found = analyze(read_bundle(tmp_path / "run.trace"))
    (row,) = found.tasks.to_pylist()
    lasted, wait = row["end_s"] - row["start_s"], READS * PAUSE
    assert 0.3 <= row["cpu_s"] <= lasted - wait
    assert row["io_wait_s"] >= 0.95 * wait
    seconds, _ = computing(found)
    assert 0.8 <= seconds <= lasted - 0.95 * wait
