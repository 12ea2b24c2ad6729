"""Progress of a long analysis: on terminals only, with stage, share and rate."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, tracehint
from tests.support.patience import PATIENCE_S
from tests.support.spark_runs import RUNS
from tracehint import progress as line
from tracehint.progress import Stages

pytestmark = pytest.mark.slow

SCRIPT = """
import sys, time
from tracehint import progress as line
line.FIRST_S = line.EVERY_S = 0.05
with line.stages() as seen:
    for i in range(5):
        seen.tell("computing the data flow", i, 4, "partitions")
        time.sleep(0.1)
print("over")
"""


def test_a_line_has_stage_share_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(line.time, "monotonic", lambda: now[0])
    seen = Stages()
    now[0] = 103.0
    assert seen.line() == "tracehint: 3 s  reading"
    seen.tell("computing the data flow", 0, 8, "partitions")
    now[0] = 105.0
    seen.tell("computing the data flow", 2, 8, "partitions")
    assert seen.line() == (
        "tracehint: 5 s  computing the data flow  [#####...............] 25%  1.0 partitions/s"
    )
    seen.tell("writing", 300, 0, "MiB")
    now[0] = 106.0
    assert seen.line() == "tracehint: 6 s  writing  300 MiB/s"


def test_it_is_written_over_and_gone_at_the_end() -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stderr=slave, stdout=subprocess.PIPE)
    os.close(slave)
    seen = bytearray()
    try:
        while data := os.read(master, 4096):
            seen += data
    except OSError:  # the other end is closed
        pass
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert out == b"over\n"
    text = seen.decode()
    assert re.search(r"computing the data flow  \[#+\.*\] \d+%", text)
    assert "\n" not in text and text.endswith("\r\x1b[K")


def test_without_a_terminal_nothing_is_said(tmp_path: Path) -> None:
    bundle = RUNS["generated"](tmp_path / "b.trace")
    command = [*TRACEHINT, "analyze", bundle, "--format", "json"]
    done = subprocess.run([*command, "--threads", "2"], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0 and not done.stderr
    small = subprocess.run(
        [*command, "--memory-limit", "1"], capture_output=True, timeout=PATIENCE_S
    )
    assert small.stdout == done.stdout and not small.stderr


def test_limits_are_for_this_process() -> None:
    done = tracehint("analyze", "x", "--backend", "spark", "--threads", "2")
    assert done.returncode == 2 and "--threads" in done.stderr
