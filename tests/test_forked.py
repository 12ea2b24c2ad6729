"""What the fork server starts is what a process of its own is."""

from __future__ import annotations

import os
import re
import shlex
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


def _shells(words: list[str], folder: Path) -> dict[str, tuple[int, str, str]]:
    """What a shell sees of a command that it starts, by how `tracehint` on its PATH is begun."""
    found = {}
    script = f"{forked.NAME_ITSELF}{shlex.join(['tracehint', *words])}; exit $?"
    for how in ("forked", "begun"):
        (folder / how).mkdir()
        forked.program(folder / how)
        if how == "begun":
            program = [sys.executable, "-m", "tracehint"]
            (folder / how / "tracehint").write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n')
        done = subprocess.run(
            ["bash", "-c", script], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
            env={**os.environ, "PATH": f"{folder / how}:{os.environ['PATH']}", "COLUMNS": "70"},
        )  # fmt: skip  # a table
        said = re.sub(r"\d+ Killed", "Killed", done.stderr.decode())
        found[how] = (done.returncode, done.stdout.decode(), said)
    return found


@pytest.mark.parametrize("name", [n for n in LINES if n != "a command of the user's"])
def test_a_shell_sees_the_same(name: str, folder: Path) -> None:
    found = _shells(LINES[name], folder)
    assert found["forked"] == found["begun"]


def test_what_a_shell_starts_is_forked_and_what_its_children_start_is_not(folder: Path) -> None:
    """Within a recording a process of the server would not be seen."""
    forked.program(folder)
    (folder / "say.sh").write_text("tracehint task t -- sh -c 'echo $PPID'\n")
    say = ". ./say.sh"
    lines = (say, "sh -c '. ./say.sh; :'", "export TZ=UTC+3", say, "unset TZ")
    done = subprocess.run(
        ["bash", "-c", forked.NAME_ITSELF + "\n".join(["echo $$", *lines])], cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip  # a table
    assert not done.stderr
    shell, by_shell, by_child, other_start = map(int, done.stdout.split())
    assert by_shell == forked.server_process() and by_child not in (by_shell, shell)
    assert other_start == shell


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


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A command inside this process, before the fixture that keeps the environment of a test."""
    folder = tmp_path_factory.mktemp("said")
    scatter_gather.build().save(folder / "run.trace")
    return cli.inside("analyze", "run.trace", cwd=folder).stdout


def test_the_next_test_begins_as_all_did(said: str) -> None:
    assert said
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
