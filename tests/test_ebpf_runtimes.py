"""Programs that preloaded libraries miss or see in part: static C, Go, the JVM, Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.built import GO_CACHE
from tests.support.ebpf import WORKLOADS, compile_workloads, observed, record, require_ebpf
from tests.test_ebpf_coverage import CASES, Run, check_case
from tracehint.schemas.store import Bundle

pytestmark = [pytest.mark.ebpf, pytest.mark.slow]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_ebpf()
    monkeypatch.chdir(tmp_path)


def test_static_program_passes_all_cases(tmp_path: Path) -> None:
    program = compile_workloads(tmp_path, "-static")
    (tmp_path / "base").mkdir()
    _, bundle = record(tmp_path / "run.trace", program, "all", tmp_path / "base")
    status = {
        row["argv"][1].decode(): row["exit_code"]
        for row in bundle.tables["processes"].to_pylist()
        if len(row["argv"]) == 2 and row["argv"][0] == bytes(program)
    }
    run = Run(bundle, tmp_path / "base", status)
    for case in CASES:
        check_case(run, case)


def totals(bundle: Bundle, folder: Path) -> dict[bytes, tuple[list[tuple[int, int]], int]]:
    """Return ranges and bytes per file and kind of operation, summed over all processes."""
    out: dict[bytes, tuple[list[tuple[int, int]], int]] = {}
    for (_, path, op, _), seen in observed(bundle, bytes(folder)).items():
        key = path.rpartition(b"/")[2] + b" " + op.encode()
        ranges, moved = out.get(key, ([], 0))
        out[key] = (sorted(ranges + seen.union()), moved + seen.bytes)
    return out


def eight_threads(bundle: Bundle, folder: Path) -> None:
    """Check the accesses that both Threads.java and threads.go make."""
    found = totals(bundle, folder)
    assert found[b"f write"] == ([(0, 80056)], 80056)
    assert found[b"f read"][1] == 80056
    for i in range(8):
        assert found[f"t{i} write".encode()] == ([(0, 10007)], 10007)


def test_go_static(tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None:
        return  # this machine cannot run this part of the matrix, as the page states
    shutil.copy(WORKLOADS / "threads.go", tmp_path)
    env = dict(os.environ, CGO_ENABLED="0", GOCACHE=str(GO_CACHE), GO111MODULE="off")
    subprocess.run([go, "build", "-o", "threads", "threads.go"], check=True, env=env)
    _, bundle = record(tmp_path / "run.trace", tmp_path / "threads")
    eight_threads(bundle, tmp_path)


def test_jvm(tmp_path: Path) -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java")
    shutil.copy(WORKLOADS / "Threads.java", tmp_path)
    result, bundle = record(tmp_path / "run.trace", java, "Threads.java")
    assert result.exit_status == 0
    eight_threads(bundle, tmp_path)


def test_python(tmp_path: Path) -> None:
    script = (
        "import mmap, os, shutil\n"
        "open('f', 'wb').write(bytes(100003))\n"
        "shutil.copyfile('f', 'g')\n"
        "with open('f', 'rb') as f:\n"
        "    m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "    bytes(m)\n"
        "if os.fork() == 0:\n"
        "    with open('g', 'ab') as g:\n"
        "        g.write(b'x' * 211)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    )
    _, bundle = record(tmp_path / "run.trace", sys.executable, "-c", script)
    found = totals(bundle, tmp_path)
    assert found[b"f write"] == ([(0, 100003)], 100003)
    assert found[b"g write"][0][-1][1] == 100214
    assert found[b"g write"][1] == 100003 + 211
    by = {
        key[3]: seen
        for key, seen in observed(bundle, bytes(tmp_path)).items()
        if key[1].endswith(b"/f") and key[2] == "read"
    }
    assert by["mmap"].union() == [(0, 100003)]
    copied = [seen for how, seen in by.items() if how in ("sendfile", "copy_file_range")]
    assert [seen.bytes for seen in copied] == [100003]
