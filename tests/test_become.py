"""Commands that end as another program: task, place, record --node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

BECOME = "from tracehint.collectors.run import become, runnable; become(runnable(sys.argv[1:]))"
NODE = (
    "from tracehint.commands.record import _exec_command; "
    "_exec_command(tuple(sys.argv[2:]), [sys.argv[1], '-x'])"
)


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import sys; {code}", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_script_without_a_first_line_runs_in_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "plain"
    script.write_text('echo "ran $1"\nexit 7\n')
    script.chmod(0o755)
    done = python(BECOME, str(script), "a b")
    assert (done.returncode, done.stdout) == (7, "ran a b\n")


def test_signals_that_python_ignores_have_their_effect_again() -> None:
    done = python(BECOME, "sh", "-c", "kill -PIPE $$; echo survived")
    assert (done.returncode, done.stdout) == (-13, "")


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_task_runs_although_the_program_that_joins_is_not_there(
    tmp_path: Path, mode: int | None
) -> None:
    joins = tmp_path / "joins"
    if mode is not None:
        joins.write_text("#!/bin/sh\nexit 99\n")
        joins.chmod(mode)
    done = python(NODE, str(joins), "sh", "-c", "echo ran; exit 3")
    assert (done.returncode, done.stdout) == (3, "ran\n")
    assert done.stderr.startswith(f"tracehint: not recorded: {joins}: ")
