"""Threads and a memory limit affect the resources of an analysis, not its result."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import inside
from tests.support.spark_runs import ALONE, RUNS
from tracehint.analyzer.analyze import analyze_at
from tracehint.analyzer.dataflow import partitions
from tracehint.analyzer.execution import local
from tracehint.analyzer.execution.resources import Resources, temporary_folder
from tracehint.analyzer.model import Options
from tracehint.analyzer.output import json_text
from tracehint.analyzer.output.json import write_json
from tracehint.errors import BundleError, TracehintError

pytestmark = pytest.mark.slow


def json_of(bundle: Path, resources: Resources | None = None) -> bytes:
    return b"".join(write_json(analyze_at(str(bundle), Options(), "local", None, resources)))


# Runs with a single damage are left to full runs: `damaged` has all damages at once.
WHOLE = [pytest.param(n, marks=[pytest.mark.full] * (n in ALONE)) for n in RUNS]


@pytest.mark.parametrize("name", WHOLE)
def test_spilled_extents_give_the_same_json(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS[name](tmp_path / "b.trace")
    whole = json_of(bundle)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(local, "BATCH", 7)
    monkeypatch.setattr(partitions.divide, "__defaults__", (20,))
    assert json_of(bundle, Resources(threads=3, memory=0, folder=folder)) == whole
    monkeypatch.setattr(local, "LARGE_PARTITION", 1000)
    assert json_of(bundle, Resources(threads=3, memory=0, folder=folder)) == whole
    assert not list(folder.iterdir())


def test_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = RUNS["mixed"](tmp_path / "b.trace")
    whole = json_of(bundle)
    monkeypatch.setattr(partitions.divide, "__defaults__", (5,))
    assert json_of(bundle, Resources(threads=4)) == whole


def test_temporary_files_are_gone_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")

    def fails(path: Path) -> None:
        assert path.parent.parent == tmp_path
        raise RuntimeError("out of luck")

    monkeypatch.setattr(local, "read_rows", fails)
    with pytest.raises(RuntimeError, match="luck"):
        json_of(bundle, Resources(memory=0, folder=tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["b.trace"]


def test_too_little_temporary_space_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(local.shutil, "disk_usage", lambda _: usage._replace(free=0))
    with pytest.raises(BundleError, match="temporary space"):
        json_of(bundle, Resources(memory=0, folder=tmp_path))


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    """A write fails although enough space was free before: another program used it."""
    bundle = RUNS["generated"](tmp_path / "b.trace")
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from tracehint.analyzer.analyze import analyze_at\n"
        "from tracehint.analyzer.execution.resources import Resources\n"
        "from tracehint.analyzer.model import Options\n"
        "from tracehint.errors import BundleError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "try:\n"
        "    given = Resources(memory=0, folder=Path(sys.argv[2]))\n"
        "    analyze_at(sys.argv[1], Options(), resources=given)\n"
        "except BundleError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, bundle, tmp_path], capture_output=True, text=True, check=True
    )
    assert f"{tmp_path}: 0.0 GiB of temporary space needed: File too large" in done.stdout
    assert "TMPDIR" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["b.trace"]


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from tracehint.analyzer.execution.resources import temporary_folder\n"
        "with temporary_folder('tracehint-x-', Path(sys.argv[1])) as folder:\n"
        "    (folder / 'data').write_bytes(b'x' * 1000)\n"
        "    print(folder, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    (tmp_path / "tracehint-x-link").symlink_to(tmp_path)
    (tmp_path / "tracehint-x-other").mkdir()  # without a lock: not tracehint's
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, **pipes) as alive:
        assert killed.stdout is not None and alive.stdout is not None
        left, used = (Path(p.stdout.readline().strip()) for p in (killed, alive))
        killed.kill()
        killed.wait()
        assert (left / "data").exists()
        with temporary_folder("tracehint-x-", tmp_path) as mine:
            assert not left.exists()
            assert (used / "data").exists() and mine.stat().st_mode & 0o777 == 0o700
        alive.communicate("")
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["tracehint-x-link", "tracehint-x-other"]


def test_no_place_for_temporary_files_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(TracehintError, match="cannot create temporary files") as caught,
        temporary_folder("tracehint-x-", tmp_path / "nothing"),
    ):
        pass
    assert "TMPDIR" in str(caught.value)


def test_stages_are_told(tmp_path: Path) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    told: list[tuple[str, int, int, str]] = []
    json_of(bundle, Resources(tell=lambda *what: told.append(what)))
    assert {stage for stage, *_ in told} >= {"computing the data flow"}
    assert all(done <= total for _, done, total, _ in told if total)


def test_blocks_and_threads_do_not_show_in_the_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = analyze_at(str(RUNS["hostile"](tmp_path / "b.trace")), Options())
    whole = b"".join(write_json(analysis))
    monkeypatch.setattr(json_text, "BLOCK", 3)
    assert b"".join(write_json(analysis)) == whole
    assert b"".join(write_json(analysis, threads=3)) == whole


def test_the_old_name_of_the_backend_still_works(tmp_path: Path) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    words = ["analyze", bundle, "--format", "json"]
    wanted = inside(*words, "--backend", "local", cwd=tmp_path)
    found = inside(*words, "--engine", "duckdb", cwd=tmp_path)
    assert found.returncode == 0 and found.stdout == wanted.stdout
    shown = inside("analyze", "--help-thresholds", cwd=tmp_path).stdout
    assert "--backend [local|spark]" in shown and "--engine" not in shown
    assert inside(*words, "--engine", "other", cwd=tmp_path).returncode == 2
