"""`place` under adverse conditions: the command runs; the exit code is its own or 125 to 127."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S
from tests.test_record_unlucky import CLOSED, LOOK, TRACEHINT, shell

pytestmark = pytest.mark.slow

STARTS = {"template": '["env", "NODE={host}", "{argv}"]', "here": '"here"'}


@pytest.fixture(params=STARTS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The command line up to the command, with a host file of one node."""
    hosts = f'start = {STARTS[request.param]}\n[[host]]\nname = "n1"\n'
    (tmp_path / "hosts.toml").write_text(hosts)
    store = 'name = "fake"\nlocation = "user.where"\n[hints."DP=local"]\nattribute = "user.dp"\n'
    (tmp_path / "store.toml").write_text(store)
    files = f"--hosts {tmp_path}/hosts.toml --store {tmp_path}/store.toml {tmp_path}/input"
    (tmp_path / "input").write_bytes(b"x" * 5000)
    return f"{TRACEHINT} place {files} --"


def test_closed_streams_are_the_commands_own(place: str, tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text(LOOK)
    for closed in CLOSED:
        streams = "exec </dev/zero >out 2>err"
        alone = shell(f"{streams}; {sys.executable} look.py {closed}", tmp_path)
        wanted = (tmp_path / "seen").read_text()
        done = shell(f"{streams}; {place} {sys.executable} look.py {closed}", tmp_path)
        assert (alone.returncode, done.returncode) == (7, 7), closed
        assert (tmp_path / "seen").read_text() == wanted, closed
        assert "Traceback" not in (tmp_path / "err").read_text()


@pytest.mark.parametrize(
    ("start", "command", "code"),
    [
        ("", "sh -c 'exit 7'", 7),
        ("", "/nonexistent/program", 127),
        ("", "./input", 126),
        ("", "sh -c 'kill -TERM $$'", 128 + signal.SIGTERM),
        ("ulimit -n 6;", "sh -c 'exit 7'", 7),
        ("mkdir x; cd x; rmdir ../x;", "sh -c 'exit 7'", 7),
        ("", "sh -c 'exit 7' 2>/dev/full", 7),
        ("", "sh -c 'exit 7' >/dev/full", 7),
    ],
)
def test_exit_codes(place: str, tmp_path: Path, start: str, command: str, code: int) -> None:
    assert shell(f"{start} {place} {command}; exit $?", tmp_path).returncode == code


def test_wrong_options_run_nothing(place: str, tmp_path: Path) -> None:
    wrong = place.replace(" place ", " place --nonsense ")
    assert shell(f"{wrong} touch ran", tmp_path).returncode == 125
    assert not (tmp_path / "ran").exists()


def test_a_signal_reaches_the_command(place: str, tmp_path: Path) -> None:
    script = "trap 'exit 9' USR1; touch ready; while :; do sleep 0.05; done"
    words = [*place.split(), "sh", "-c", script]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "ready").exists() and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGUSR1)
        assert process.wait(PATIENCE_S) == 9
