"""The command is waited for and receives signals, whatever other threads of this process do."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

# Signals arrive while the main thread does not wait for them. The other thread, which a library may
# have started and which blocks no signal, receives them.
UNLUCKY = """
import os, signal, sys, threading, time
from tracehint.collectors import run

ended, waitpid, first = threading.Event(), os.waitpid, [True]
threading.Thread(target=ended.wait, daemon=True).start()

def await_file(name):
    while not os.path.exists(name):
        time.sleep(0.01)

def send(number):
    os.kill(os.getpid(), number)

def unlucky(pid, flags):
    found = waitpid(pid, flags)
    if first and not found[0]:
        first.clear()
        if sys.argv[1] == "CHLD":
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        else:
            await_file("ready")
            send(signal.Signals["SIG" + sys.argv[1]])
    return found

os.waitpid = unlucky
signals = [signal.getsignal(n) for n in run._FORWARD]
result = run.run_child(sys.argv[2:], os.environ)
assert signals == [signal.getsignal(n) for n in run._FORWARD]
print(result.status, result.signal)
"""


def unlucky(folder: Path, name: str, script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", UNLUCKY, name, "sh", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout


def test_the_end_of_the_command_is_seen(tmp_path: Path) -> None:
    assert unlucky(tmp_path, "CHLD", "sleep 0.3; exit 3") == "3 None\n"


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP", "USR1"])
def test_a_signal_reaches_the_command(tmp_path: Path, name: str) -> None:
    script = f"trap 'exit 4' {name}; touch ready; while :; do sleep 0.1; done"
    assert unlucky(tmp_path, name, script) == "4 None\n"


COUNT = (
    "hits=0; trap 'hits=$((hits+1)); touch hit' INT; touch ready; echo ready;"
    "while [ $hits = 0 ]; do sleep 0.1; done; sleep 0.5; echo hits $hits"
)
STARTER = """
import os, sys
from tracehint.adapters.place import starter
print(starter.wait_for(sys.argv[2], sys.argv[2:], os.environ, []), None)
"""


LATE = COUNT.replace("echo ready", "kill -STOP $PPID; echo ready").replace(
    "touch hit", "kill -CONT $PPID"
)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "script"), [(UNLUCKY, COUNT), (STARTER, LATE)])
def test_a_key_of_the_terminal_reaches_the_command_once(
    tmp_path: Path, program: str, script: str
) -> None:
    """The terminal sends it to the command itself, whichever thread receives ours and when."""
    program = program.replace("os.getpid(), number)", "0, number); await_file('hit')")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [sys.executable, "-c", program, "INT", "sh", "-c", script])
    seen = b""
    with contextlib.suppress(OSError):  # the terminal closes with its last process
        while data := os.read(terminal, 1000):
            seen += data
            if script == LATE and b"ready" in data:
                os.write(terminal, b"\x03")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert seen.replace(b"^C", b"").split() == [b"ready", b"hits", b"1", b"0", b"None"]


CHILDREN = """
import os, subprocess
from tracehint.collectors.preload.record import _children, _run_command

other = subprocess.Popen(["sleep", "600"])
try:
    _, end = _run_command(("sh", "-c", "exit 3"), os.environ, linger_s=600.0)
    print(end["exit_status"], end["outlived"])
    _, end = _run_command(("sh", "-c", "sleep 600 &"), os.environ, linger_s=0.0)
    print(end["exit_status"], end["outlived"])
finally:
    for pid in _children():
        os.kill(pid, 9)
"""


def test_children_from_before_the_command_did_not_outlive_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILDREN],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S / 2,
        check=True,
    )
    assert done.stdout == "3 0\n0 1\n"
