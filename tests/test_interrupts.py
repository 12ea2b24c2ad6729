"""Ctrl-C at any moment: exit code 130, one line, and no partial output."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from datasets.synthetic import write

from tests.support.cli import TRACEHINT
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.slow

COMMANDS = {
    "analyze": "analyze run.trace --format parquet -o out --force",
    "hints": "hints run.trace -o out --force",
    "lint": "lint run.trace -o out --force",
    "report": "report run.trace -o out --force",
    "graph": "graph run.trace -o out.dot --force",
    "import": "import run.wf -o out --force",
    "merge": "merge run.trace -o out --force --quiet",
    "anonymize": "anonymize run.trace -o out --key k --force",
    "wfformat": "export run.trace --to wfformat -o out --force",
    "parquet": "export run.trace --to parquet -o out --force",
}
WAYS = ("hints", "report", "analyze", "merge")  # a file, a long one, a directory, a bundle
TIMES = int(os.environ.get("TRACEHINT_INTERRUPTS", "1"))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of every file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def started(words: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*TRACEHINT, *words.split()], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.full] * (n not in WAYS)) for n in COMMANDS]
)
def test_nothing_is_left_half_written(name: str, tmp_path: Path) -> None:
    write(tmp_path / "run.trace", 20)
    if "run.wf" in COMMANDS[name]:
        assert started("export run.trace --to wfformat -o run.wf", tmp_path).wait() == 0
    began = time.monotonic()
    whole = started(COMMANDS[name], tmp_path)
    _, error = whole.communicate()
    assert whole.returncode in (0, 1), error
    took, after = time.monotonic() - began, contents(tmp_path)
    chance = random.Random(name)
    for _ in range(TIMES):
        process = started(COMMANDS[name], tmp_path)
        time.sleep(chance.uniform(0.02, 1.0) * took)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE_S)
        # before tracehint's first line, Python itself prints a traceback
        if b"Traceback" in error and b"tracehint/cli.py" not in error:
            error = b""
        assert process.returncode in (130, -signal.SIGINT, 0, 1), error
        assert b"Traceback" not in error, error
        if process.returncode == 130:
            assert error.splitlines()[-1] == b"tracehint: interrupted", error
        # the old output or the same again, and no other files
        assert contents(tmp_path).keys() == after.keys()
        unlike = [path for path, data in contents(tmp_path).items() if data != after[path]]
        assert all(path.endswith(("manifest.json", ".parquet")) for path in unlike), unlike
        for path in unlike:
            assert (tmp_path / path).stat().st_size > 0


def test_a_thread_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    """For example one that waits for a module whose import was interrupted in another thread."""
    program = """
import threading
from tracehint import __main__ as program

def interrupted():
    threading.Thread(target=threading.Event().wait).start()
    return 130

program.main = interrupted
program.run()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 130
