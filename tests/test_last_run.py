"""All commands agree on the last run of a directory, made by `run`, `profile` or `record`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.run_model import RunBuilder
from tracehint.adapters.project.state import UNKNOWN_STATUS, KnownRun, add_run, claim, read_state
from tracehint.app.last_runs import last_runs
from tracehint.cli import main
from tracehint.errors import InputError

COMMAND = ("sh", "w.sh")


def recorded(path: Path, status: int | None = 0) -> Path:
    """Save a bundle of COMMAND with this exit status."""
    run = RunBuilder()
    run.process([*COMMAND])
    run.manifest.command = [*COMMAND]
    run.manifest.exit_status = status
    run.save(path)
    return path


@pytest.mark.slow
def test_what_profile_recorded_is_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x" * 5000)
    (tmp_path / "w.sh").write_text("cat in > a.txt\ncp a.txt b.txt\nwc b.txt > c.txt\n")
    done = tracehint("profile", "--collector", "strace", "--", "sh", "w.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (["graph", "-o", "g.json"], ["report", "-o", "r.html"], ["lint"]):
        done = tracehint(*words, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr
        assert "sh.trace: the last run of w.sh" in done.stderr
    done = tracehint("run", "--no-record", "--", "sh", "w.sh", cwd=tmp_path)
    assert "hints from 1 run" in done.stderr, done.stderr


def test_the_newest_of_both_kinds_and_runs_that_failed_do_not_count(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no successful recorded runs; one needed"):
        last_runs(1, tmp_path)
    state, place = claim(tmp_path)
    recorded(Path(place))
    add_run(tmp_path, KnownRun(state.next_number, COMMAND, 0, 1.0, False))
    assert last_runs(1, tmp_path) == [str(Path(place))]
    recorded(tmp_path / "failed.trace", status=1)
    recorded(tmp_path / "unknown.trace", status=None)
    assert last_runs(1, tmp_path) == [str(Path(place))]
    beside = recorded(tmp_path / "sh.trace")
    assert last_runs(2, tmp_path) == [str(Path(place)), str(beside)]


def test_an_unknown_exit_status_teaches_nothing(tmp_path: Path) -> None:
    state, place = claim(tmp_path)
    recorded(Path(place), status=None)
    add_run(tmp_path, KnownRun(state.next_number, COMMAND, UNKNOWN_STATUS, 1.0, False))
    assert read_state(tmp_path).learnable(COMMAND) == []


def test_changes_between_runs_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    from tracehint.hintgen.compare.diff import CHANGES

    for code, (name, _) in CHANGES.items():
        assert main(["explain", code]) == 0
        assert name in capsys.readouterr().out
