"""Losses are always counted; what was recorded survives the recorder."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

from tests.support import cli
from tests.support.cli import TRACEHINT, record_words
from tests.support.ebpf import compile_workloads, record, require_ebpf
from tests.support.patience import PATIENCE_S, until
from tracehint.collectors.ebpf.collector import LOADER
from tracehint.errors import BundleError
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.ebpf]

RANDOM_READS = 200_003  # prime


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled workloads."""
    require_ebpf()
    return compile_workloads(tmp_path_factory.mktemp("program"))


def lost(bundle: Bundle) -> Counter[str]:
    """Count lost events by kind."""
    out: Counter[str] = Counter()
    for row in bundle.tables["losses"].to_pylist():
        out[row["kind"]] += row["count"]
    return out


def test_small_ring_accounts_for_every_read(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result, bundle = record(
        tmp_path / "b.trace", program, "random", str(RANDOM_READS), "100003", extents="4096"
    )
    assert result.exit_status == 0
    opens = bundle.tables["opens"]
    ours = opens.filter(pc.equal(opens.column("path"), bytes(tmp_path / "f")))
    assert ours.column("read_ops").to_pylist() == [RANDOM_READS]  # the summary stays exact
    assert ours.column("read_bytes").to_pylist() == [RANDOM_READS * 4096]
    extents = bundle.tables["extents"]
    mine = extents.filter(pc.equal(extents.column("open"), ours.column("open")[0]))
    recorded = pc.sum(mine.filter(pc.equal(mine.column("op"), "read")).column("ops")).as_py()
    assert lost(bundle)["extent_records"] > 0, "the ring was not too small after all"
    assert recorded + lost(bundle)["extent_records"] == RANDOM_READS
    assert result.lost_events == lost(bundle).total()
    proc = {r["proc"] for r in bundle.tables["losses"].to_pylist()}
    assert proc == {ours.column("proc")[0].as_py()}  # the loss names its process


def test_default_rings_lose_nothing(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result, bundle = record(tmp_path / "b.trace", program, "random", str(RANDOM_READS), "100003")
    assert result.lost_events == 0
    opens, extents = bundle.tables["opens"], bundle.tables["extents"]
    ours = opens.filter(pc.equal(opens.column("path"), bytes(tmp_path / "f")))
    reads = extents.filter(pc.equal(extents.column("open"), ours.column("open")[0]))
    reads = reads.filter(pc.equal(reads.column("op"), "read"))
    assert pc.sum(reads.column("ops")).as_py() == RANDOM_READS
    size = sum(p.stat().st_size for p in (tmp_path / "b.trace").rglob("*.parquet"))
    assert size / RANDOM_READS < 16, "bytes of trace per random read"


def test_many_processes(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result, bundle = record(tmp_path / "b.trace", program, "processes", "2003")
    assert (result.exit_status, result.lost_events) == (0, 0)
    assert len(bundle.tables["processes"]) == 2003 + 1
    written = bundle.tables["opens"].to_pylist()
    names = {r["path"] for r in written if r["write_bytes"] == 101}
    assert names == {bytes(tmp_path / f"p{i}") for i in range(2003)}
    assert len({r["proc"] for r in written if r["write_bytes"] == 101}) == 2003


def test_more_processes_than_slots_is_said(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result, bundle = record(tmp_path / "b.trace", program, "processes", "101", processes="11")
    assert result.exit_status == 0
    known = len(bundle.tables["processes"])
    assert known + lost(bundle)["open_table_full"] == 101 + 1
    assert lost(bundle)["open_table_full"] > 0


def test_many_files(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result, bundle = record(tmp_path / "b.trace", program, "files", "100003")
    assert (result.exit_status, result.lost_events) == (0, 0)
    opens = bundle.tables["opens"]
    assert pc.sum(pc.equal(opens.column("write_bytes"), 101)).as_py() == 100_003
    assert len(opens.column("file").unique()) >= 100_003


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Processes to kill after the test, whatever its result."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _start(tmp_path: Path, program: Path) -> tuple[subprocess.Popen[bytes], Path]:
    bundle = tmp_path / "b.trace"
    process = subprocess.Popen(
        [*TRACEHINT, *record_words(str(program), "forever", collector="ebpf", to=str(bundle))],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
    )
    return process, bundle


def _find(words: bytes, parent: int) -> int:
    """Return the pid of a child process, found by a part of its command line."""
    found: list[int] = []

    def there() -> bool:
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_bytes()
                below = int(stat.rpartition(b")")[2].split()[1]) == parent
                if below and words in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return bool(found)

    until(there, f"{words!r} below {parent}")
    return found[0]


def _await_snapshots(bundle: Path) -> None:
    """Wait until the recorder has written its data on the command's file at least once."""
    spool = bundle / SPOOL_DIR
    files = [spool / f"{name}.bin" for name in ("episodes", "extents")]
    until(lambda: all(file.stat().st_size for file in files), "a snapshot")


def test_killed_recorder_leaves_a_bundle_and_the_command_alone(
    program: Path, tmp_path: Path, started: list[int]
) -> None:
    process, bundle = _start(tmp_path, program)
    loader = _find(bytes(LOADER) + b"\0-o", process.pid)
    command = _find(b"workload\0forever", loader)
    started += [process.pid, loader, command]
    _await_snapshots(bundle)
    os.kill(loader, signal.SIGKILL)
    time.sleep(0.2)
    os.kill(command, 0)  # still running
    os.kill(command, signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGTERM
    assert b"recorder was killed" in err
    found = read_bundle(bundle)
    assert lost(found)["killed_recorder"] == 1
    assert not found.manifest.complete
    opens = found.tables["opens"]
    ours = opens.filter(pc.equal(opens.column("path"), bytes(tmp_path / "f")))
    assert len(ours) == 1
    writes = ours.column("write_ops")[0].as_py()
    extents = found.tables["extents"].filter(pc.equal(found.tables["extents"]["op"], "write"))
    assert writes > 0
    # accesses that were still in the rings are known from the file's totals, and counted as lost
    recorded = pc.sum(extents.column("ops")).as_py()
    assert recorded + lost(found)["extent_records"] >= writes
    assert recorded <= writes + 2


def test_killed_recorder_and_wrapper(program: Path, tmp_path: Path, started: list[int]) -> None:
    """Both are killed at once: the spool alone is a readable bundle."""
    process, bundle = _start(tmp_path, program)
    loader = _find(bytes(LOADER) + b"\0-o", process.pid)
    command = _find(b"workload\0forever", loader)
    started += [process.pid, loader, command]
    _await_snapshots(bundle)
    for pid in (process.pid, loader, command):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    found = read_bundle(bundle)
    assert found.problems == []
    assert lost(found)["killed_recorder"] == 1
    assert pc.sum(found.tables["opens"].column("write_ops")).as_py() > 0


def test_full_disk_costs_records_not_the_command(program: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs root to mount a small file system")
    try:
        (tmp_path / "work").mkdir()
        work = (program, "random", "100003", "100003")
        done = cli.record(
            *work, collector="ebpf", to=small / "b.trace", options="", cwd=tmp_path / "work"
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        found = read_bundle(small / "b.trace")
        assert lost(found)["spool_write"] > 0 or "cannot be written" in done.stderr
    finally:
        subprocess.run(["umount", small], check=True)


def test_torn_and_hostile_spools_are_read_or_refused(program: Path, tmp_path: Path) -> None:
    """Truncated and overwritten files: what is readable is read, and no other error is raised."""
    import random
    import shutil

    spool = tmp_path / "b.trace" / "spool"
    spool.mkdir(parents=True)
    subprocess.run(
        [LOADER, "-o", spool, "--", program, "processes", "31"], check=True, cwd=tmp_path
    )
    (tmp_path / "b.trace" / "manifest.json").write_text('{"format": "tracehint.bundle/1"}')
    whole = read_bundle(tmp_path / "b.trace")
    assert len(whole.tables["processes"]) == 32
    rng = random.Random(7)
    for turn in range(40):
        copy = tmp_path / "c.trace"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(tmp_path / "b.trace", copy)
        victim = rng.choice(sorted((copy / "spool").iterdir()))
        data = bytearray(victim.read_bytes())
        if turn % 2 and data:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.randrange(64)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        victim.write_bytes(data)
        with contextlib.suppress(BundleError):  # so damaged that nothing is readable
            read_bundle(copy)
