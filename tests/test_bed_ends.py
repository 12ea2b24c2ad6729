"""A bed of name spaces leaves nothing behind, also where a time limit ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
HOLDS = """
import sys, time
from pathlib import Path
from tests.support.bed import network
with network(Path(sys.argv[1])):
    print("ready", flush=True)
    time.sleep(60)
"""

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="name spaces need root"),
]  # fmt: skip  # a table


def spaces() -> set[str]:
    found = Path("/run/netns")
    return {path.name for path in found.iterdir()} if found.is_dir() else set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_bed_that_is_told_to_end(number: signal.Signals, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDS, tmp_path]
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as bed:
        assert bed.stdout is not None and bed.stderr is not None
        said = bed.stdout.readline()
        own = {name for name in spaces() if name.endswith(str(bed.pid))}
        bed.send_signal(number)
        errors = bed.stderr.read()
        bed.wait(PATIENCE_S)
    if "ready" not in said:
        pytest.skip(f"no bed here: {errors[-300:]}")
    assert len(own) == 6
    assert not own & spaces()
