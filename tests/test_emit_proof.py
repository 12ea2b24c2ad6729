"""Proof: the real Makeflow runs the demo workflow without hints and with the emitted file.

Outputs are identical, and every hinted file has its attribute before its first write, as an
independent strace log of the whole second run shows.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.test_demo import recording
from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tests.support.patience import PATIENCE_S
from tests.support.recordings import usual
from tests.support.tagger import build
from tracehint.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.engine]

RULES = (
    rule("records.bin", producer="simulate.py", consumers=("calibrate.py",),
         DP="scatter|8", BlockSize=65536),
    rule("calibration.tbl", producer="calibration.py", consumers=("calibrate.py",),
         Replication=3, ReplicationSemantics="optimistic"),
    rule("calibrated_{n}.bin", producer="calibrate.py", consumers=("smooth.py",), DP="local"),
    rule("field.bin", producer="smooth.py", consumers=("split.py",), BlockSize=524288),
    rule("daily_{n}.csv", producer="smooth.py", consumers=("summarize.py",), DP="collocation|sum"),
    rule("{word}.bin", producer="split.py", consumers=("extremes.py",), DP="distribute|split"),
    rule("extremes_{word}.txt", producer="extremes.py", consumers=("sort",), DP="collocation|x"),
)  # fmt: skip  # a table
HINTED = {
    "records.bin",
    "calibration.tbl",
    "field.bin",
    *(f"calibrated_{i}.bin" for i in range(8)),
    *(f"daily_{i}.csv" for i in range(8)),
    *(f"{s}.bin" for s in ("winter", "spring", "summer", "autumn")),
    *(f"extremes_{s}.txt" for s in ("winter", "spring", "summer", "autumn")),
}
CALLS = (
    "setxattr,lsetxattr,fsetxattr,write,pwrite64,writev,copy_file_range,sendfile,rename,renameat2"
)


def contents(folder: Path) -> dict[str, str]:
    """Return checksums of all files that belong to the workflow itself."""
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.iterdir()
        if p.is_file() and not p.name.startswith(("hinted", "demo.makeflow", "strace"))
    }


def run(folder: Path, *command: str) -> None:
    """Run an engine in a folder."""
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE_S)


def order_of_calls(log: Path, name: str) -> list[str]:
    """Return `set` and `write` in the order of these calls on a file."""
    found = []
    for line in log.read_text(errors="replace").splitlines():
        call = re.match(r"\d+ +(?:<\.\.\. )?(\w+)", line)
        here = f"/{name}>" in line or f'("./{name}"' in line
        if call and here and " = -1" not in line:
            found.append("set" if "setxattr" in call[1] else "write")
    return found


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use tracehint-tag built from these sources."""
    found = build(tmp_path)
    monkeypatch.setattr("tracehint.adapters.engines.tag_table.find_tagger", lambda: found)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workflow's folder after an unhinted run; the recording run.trace is next to it."""
    missing = [t for t in ("makeflow", "strace", "setfattr") if shutil.which(t) is None]
    if missing:
        pytest.skip(f"not installed: {missing}")
    return recording(tmp_path_factory, "makeflow", usual()).work


def hinted_run(hints: Path, demo: Path, second: Path, way: str = "annotated") -> Path:
    """Emit for the workflow, run it in a fresh folder under strace, and return the log."""
    shutil.copytree(demo, second)
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(demo / "demo.makeflow")]
    command.append("--precreate")
    assert main([*command, "-o", str(second / "hinted.mf")]) == 0
    log = second / "strace.log"
    engine: Sequence[str] = ("makeflow", "-T", "local", "-j", "2")
    if way == "annotated":
        engine = (*engine, "hinted.mf")
    else:
        engine = (*engine, "--wrapper", "./hinted.mf.tracehint/tag %%", "demo.makeflow")
    strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-s", "64", "-e", f"trace={CALLS}"]
    run(second, *strace, "-o", str(log), *engine)
    return log


def check_order(log: Path, folder: Path, hinted: set[str]) -> None:
    """Check that exactly these files are tagged, each before its first write."""
    for name in sorted(hinted):
        assert os.listxattr(folder / name), f"{name} has no attribute at the end"
        calls = order_of_calls(log, name)
        assert {"set", "write"} <= set(calls), f"{name}: {calls[:5]}"
        assert calls.index("set") < calls.index("write"), f"{name} was written before"
    assert {p.name for p in folder.iterdir() if p.is_file() and os.listxattr(p)} == hinted


@pytest.mark.parametrize("way", ["annotated", "wrapper"])
def test_the_second_run_is_hinted_before_the_first_write(
    tmp_path: Path, demo: Path, first: Path, way: str
) -> None:
    second = tmp_path / "second"
    log = hinted_run(save(tmp_path, *RULES), demo, second, way)
    assert contents(second) == contents(first)
    assert all(os.listxattr(first / name) == [] for name in HINTED)
    check_order(log, second, HINTED)


def test_from_a_recorded_run_to_a_hinted_one(tmp_path: Path, demo: Path, first: Path) -> None:
    """The whole sequence: record, learn, emit, run again; nothing is written by hand."""
    second, hints = tmp_path / "second", tmp_path / "hints.json"
    done = tracehint("hints", "run.trace", "-o", hints, cwd=first.parent)
    assert done.returncode == 0, done.stderr
    log = hinted_run(hints, demo, second)
    assert contents(second) == contents(first)
    tagged = {p.name for p in second.iterdir() if p.is_file() and os.listxattr(p)}
    wanted = {"records.bin", "field.bin", *(f"calibrated_{i}.bin" for i in range(8)),
              *(f"daily_{i}.csv" for i in range(8)), "winter.bin", "spring.bin", "summer.bin",
              "autumn.bin"}  # fmt: skip  # a table
    assert wanted <= tagged
    written = {name for name in tagged if "write" in order_of_calls(log, name)}
    assert wanted <= written
    for name in written:
        calls = order_of_calls(log, name)
        assert calls.index("set") < calls.index("write"), name
    assert os.getxattr(second / "calibrated_3.bin", "user.DP") == b"local"
    assert os.getxattr(second / "daily_3.csv", "user.DP").startswith(b"collocation|")
