"""What the fork server starts is what a process of its own is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.examples import scatter_gather
from tests.support import cli, forked

pytestmark = pytest.mark.slow
# Says all that a command can see of the process that started it.
SEEN = """
import os, signal, sys
print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')), os.getcwd())
print(sorted(os.environ.items()))
print([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGPIPE, signal.SIGTERM)])
print(open('/proc/self/status').read().split('SigBlk')[1].split('Cpus')[0])
print(repr(sys.stdin.read()), os.umask(0), os.getpgrp(), os.getsid(0))
raise SystemExit(3)
"""
LINES: dict[str, list[str]] = {
    "version": ["--version"],
    "a command of the user's": ["task", "t", "--", sys.executable, "-c", SEEN],
    "ended by a signal": ["task", "t", "--", "sh", "-c", "kill -9 $$"],
    "json": ["analyze", "run.trace", "--format", "json"],
    "text": ["analyze", "run.trace"],
    "lint": ["lint", "run.trace"],
    "no such command": ["analyse"],
    "no such bundle": ["hints", "nowhere"],
    "no words": [],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bundle."""
    scatter_gather.build().save(tmp_path / "run.trace")
    return tmp_path


@pytest.mark.parametrize("name", LINES)
def test_code_and_output_are_the_same(name: str, folder: Path) -> None:
    env = {"TRACEHINT_TASK": "given", "ODD": "\udcff", "COLUMNS": "70"}
    here = cli.tracehint(*LINES[name], cwd=folder, env=env)
    there = cli.process(*LINES[name], cwd=folder, env=env, stdin=subprocess.DEVNULL)
    assert (here.returncode, here.stdout, here.stderr) == (
        there.returncode, there.stdout, there.stderr,
    )  # fmt: skip  # a table


def test_what_is_read_at_the_start_of_a_process_needs_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert forked.fits(dict(os.environ))
    for name in ("LD_PRELOAD", "PYTHONHASHSEED", "LC_ALL", "TZ"):
        assert not forked.fits({**os.environ, name: "other"})

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(forked, "run", never)
    assert cli.tracehint("--version", cwd=folder, env={"TZ": "UTC+3"}).returncode == 0
    assert cli.tracehint("--version", cwd=folder, input="x").returncode == 0


def test_what_another_test_sets_does_not_stay(folder: Path) -> None:
    """In whatever order: a command inside this process, then the next test."""
    assert cli.inside("analyze", folder / "run.trace", cwd=folder).returncode == 0
    assert not forked.fits({**os.environ, "OPENBLAS_NUM_THREADS": "other"})


def test_the_next_test_begins_as_all_did() -> None:
    assert {**os.environ, "PYTEST_CURRENT_TEST": ""} == {
        **forked.usual(),
        "PYTEST_CURRENT_TEST": "",
    }


def test_what_hangs_is_killed(folder: Path) -> None:
    program = shutil.which("sleep") or "sleep"
    with pytest.raises(subprocess.TimeoutExpired):
        forked.run(["task", "t", "--", program, "30"], folder, dict(os.environ), 1.0)
    assert cli.tracehint("--version", cwd=folder).returncode == 0


def test_two_at_once(folder: Path) -> None:
    """One waits for what the other one writes."""
    from concurrent.futures import ThreadPoolExecutor

    os.mkfifo(folder / "between")
    with ThreadPoolExecutor(2) as pool:
        words = ("task", "t", "--", "sh", "-c")
        first = pool.submit(cli.tracehint, *words, "cat between", cwd=folder)
        second = pool.submit(cli.tracehint, *words, "echo through >between", cwd=folder)
        assert (first.result().stdout, second.result().returncode) == ("through\n", 0)
