"""Threads and a memory limit change what an analysis takes, not what it says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.spark_runs import RUNS
from tracehint.analyzer import jsonlines
from tracehint.analyzer.execution import analyze_at, spilled
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.flow import batches
from tracehint.analyzer.model import Options
from tracehint.analyzer.output import write_json
from tracehint.errors import BundleError


def json_of(bundle: Path, resources: Resources | None = None) -> bytes:
    return b"".join(write_json(analyze_at(str(bundle), Options(), "duckdb", None, resources)))


@pytest.mark.parametrize("name", RUNS)
def test_spilled_extents_give_the_same_json(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS[name](tmp_path / "b.trace")
    whole = json_of(bundle)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(spilled, "BATCH", 7)
    monkeypatch.setattr(batches.divide, "__defaults__", (20,))
    assert json_of(bundle, Resources(threads=3, memory=0, folder=folder)) == whole
    assert not list(folder.iterdir())


def test_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = RUNS["mixed"](tmp_path / "b.trace")
    whole = json_of(bundle)
    monkeypatch.setattr(batches.divide, "__defaults__", (5,))
    assert json_of(bundle, Resources(threads=4)) == whole


def test_temporary_files_are_gone_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")

    def fails(path: Path) -> None:
        assert path.parent.parent == tmp_path
        raise RuntimeError("out of luck")

    monkeypatch.setattr(spilled, "_read", fails)
    with pytest.raises(RuntimeError, match="luck"):
        json_of(bundle, Resources(memory=0, folder=tmp_path))
    assert [p.name for p in tmp_path.iterdir()] == ["b.trace"]


def test_too_little_temporary_space_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(spilled.shutil, "disk_usage", lambda _: usage._replace(free=0))
    with pytest.raises(BundleError, match="temporary space"):
        json_of(bundle, Resources(memory=0, folder=tmp_path))


def test_stages_are_told(tmp_path: Path) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    told: list[tuple[str, int, int, str]] = []
    json_of(bundle, Resources(tell=lambda *what: told.append(what)))
    assert {stage for stage, *_ in told} >= {"following the bytes"}
    assert all(done <= total for _, done, total, _ in told if total)


def test_blocks_and_threads_do_not_show_in_the_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysis = analyze_at(str(RUNS["hostile"](tmp_path / "b.trace")), Options())
    whole = b"".join(write_json(analysis))
    monkeypatch.setattr(jsonlines, "BLOCK", 3)
    assert b"".join(write_json(analysis)) == whole
    assert b"".join(write_json(analysis, threads=3)) == whole
