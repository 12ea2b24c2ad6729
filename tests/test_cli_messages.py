"""What the command line says to someone who mistyped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import tracehint


def test_a_command_that_nearly_fits_is_suggested(tmp_path: Path) -> None:
    done = tracehint("analyse", "x.trace", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'analyse'. Did you mean 'analyze'?" in done.stderr
    assert "Did you mean" not in tracehint("xyzzy", cwd=tmp_path).stderr


@pytest.mark.parametrize("command", ["analyze", "lint", "graph", "report", "hints"])
def test_a_bundle_that_is_not_there_is_told_from_a_directory_without_one(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    gone = tracehint(command, "nope.trace", cwd=tmp_path)
    other = tracehint(command, "data", cwd=tmp_path)
    assert gone.returncode == other.returncode == 2
    assert "nope.trace:" in gone.stderr and "no such bundle" in gone.stderr
    assert "data: not a trace bundle (no manifest.json)" in other.stderr
