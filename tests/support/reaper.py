"""Run daemons that cannot outlive a test: `reaper.py FOLDER`, until its input ends.

Each command of FOLDER/commands.json is started in the foreground, and again when its number is read
from the input. Its descendants become children of this process when their parent ends (a child
subreaper), so that when standard input closes, however the test ended, the whole tree is found and
killed, and the folder removed.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def _descendants(pid: int) -> list[int]:
    """Return all processes below pid, by /proc."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            stat = (entry / "stat").read_text(errors="replace")
            below.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        kids = below.get(todo.pop(), [])
        found += kids
        todo += kids
    return found


def _collect() -> None:
    """Wait for children forever: orphans would stay zombies."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.05)


def main(commands: list[list[str]]) -> None:
    """Start all and restart on request until the input ends, then kill all."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    for command in commands:
        _start(command)
    threading.Thread(target=_collect, daemon=True).start()
    for line in sys.stdin:
        _start(commands[int(line)])
    while left := _descendants(os.getpid()):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _start(command: list[str]) -> None:
    """Start a daemon with the default signal handlers."""
    subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_default_signals)


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    main(json.loads((Path(sys.argv[1]) / "commands.json").read_text()))
    shutil.rmtree(sys.argv[1], ignore_errors=True)
