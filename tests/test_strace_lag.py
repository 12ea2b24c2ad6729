"""A machine so busy that strace still writes after every process has ended: nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S, until
from tracehint.collectors.strace import drain, live

pytestmark = pytest.mark.slow
LINGER_S = 0.3
HELD = 'while [ ! -e "$0.end" ]; do sleep 0.1; done'


def strace_like(folder: Path, script: str) -> tuple[subprocess.Popen[bytes], Path]:
    """Start a process named strace that writes to a FIFO as the script says, with its drain."""
    fifo, program = folder / "fifo", folder / "strace"
    os.mkfifo(fifo)
    program.symlink_to(shutil.which("sh") or "/bin/sh")
    drainer = subprocess.Popen(
        [sys.executable, "-I", "-S", drain.__file__, fifo, folder / "log"], stdout=subprocess.PIPE
    )
    subprocess.Popen([program, "-c", f'exec >"$0"; {script}', fifo])
    return drainer, fifo


def test_what_strace_still_writes_is_waited_for(tmp_path: Path) -> None:
    drainer, fifo = strace_like(tmp_path, "echo one; sleep 2; echo two; exit")
    with drainer:
        assert live._wait_for(drainer, str(fifo), LINGER_S) == (0, False)
    assert (tmp_path / "log").read_text() == "one\ntwo\n"


def test_a_strace_that_hangs_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LAG_S", 1.5)
    drainer, fifo = strace_like(tmp_path, f"echo one; {HELD}; exit")
    began = time.monotonic()
    with drainer:
        assert live._wait_for(drainer, str(fifo), 0.0) == (0, True)
        assert time.monotonic() - began < 80
        drainer.kill()
    Path(f"{fifo}.end").touch()


def test_a_log_that_is_stopped_ends_with_a_whole_line(tmp_path: Path) -> None:
    drainer, fifo = strace_like(tmp_path, f"printf 'one\\ntw'; {HELD}; echo o; exit")
    with drainer:
        log = tmp_path / "log"
        until(lambda: log.exists() and log.stat().st_size, "the first line")
        assert log.read_text() == "one\n", "a line that is not whole waits"
        drainer.send_signal(drain.STOP)
        Path(f"{fifo}.end").touch()
        out, _ = drainer.communicate(timeout=PATIENCE_S)
    assert (tmp_path / "log").read_text() == "one\n"
    assert out == b"1\n"


def test_all_is_written_where_the_end_has_no_newline(tmp_path: Path) -> None:
    drainer, _ = strace_like(tmp_path, "printf 'one\\ntwo'; exit")
    with drainer:
        assert drainer.communicate(timeout=PATIENCE_S)[0] == b"0\n"
    assert (tmp_path / "log").read_text() == "one\ntwo"
