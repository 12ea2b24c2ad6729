"""A tracer of another version than the Python code is rejected before the command starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.ebpf import require_ebpf
from tracehint.cli import main
from tracehint.collectors.ebpf import collector
from tracehint.collectors.ebpf.collector import EbpfCollector
from tracehint.schemas.spool.constants import VERSION

# program text -> expected message
OTHERS = {
    "echo 2": "writes version 2",
    "echo usage >&2; exit 125": "older than this program",
    "kill -9 $$": "older than this program",
    "echo 3; exit 1": "older than this program",
}


@pytest.fixture
def stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    program = tmp_path / "tracehint-rec"
    program.write_text(f"#!/bin/sh\n{request.param}\n")
    program.chmod(0o755)
    monkeypatch.setattr(collector, "LOADER", program)
    monkeypatch.chdir(tmp_path)
    return OTHERS[request.param]


@pytest.mark.parametrize("stale", OTHERS, indirect=True)
@pytest.mark.parametrize("how", [("record",), ("profile",), ("record", "--collector", "ebpf")])
def test_nothing_runs_and_the_remedy_is_told(
    stale: str, how: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*how, "--", "touch", "ran"]) == 125
    said = capsys.readouterr().err
    assert stale in said and "make tracer" in said and "--collector strace" in said
    assert [path.name for path in tmp_path.iterdir()] == ["tracehint-rec"]


@pytest.mark.parametrize("stale", ["echo 2"], indirect=True)
def test_doctor_does_not_say_that_auto_takes_the_next_one(
    stale: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert stale in said and "<- auto" not in said


def test_a_spool_of_another_version_is_an_error_not_an_empty_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool = tmp_path / "b.trace" / "spool"
    spool.mkdir(parents=True)
    (spool / "start.json").write_text('{"version": 2, "command": 1}')
    (spool.parent / "manifest.json").write_text('{"format": "tracehint.bundle/1"}')
    for command in ("analyze", "lint", "hints", "report"):
        assert main([command, str(spool.parent)]) == 2
        assert "version 2, this program reads" in capsys.readouterr().err


@pytest.mark.ebpf
def test_the_built_tracer_tells_its_version() -> None:
    require_ebpf()
    done = collector._ask_loader("--version", seconds=5)
    assert not isinstance(done, str)
    assert (done.returncode, done.stdout) == (0, f"{VERSION}\n")
    assert not EbpfCollector().conditions().broken
