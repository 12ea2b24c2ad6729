"""Ten minutes of churn: the recorder's memory must not grow. Part of `make test-full`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S
from tracehint.collectors.ebpf.collector import LOADER

pytestmark = [pytest.mark.ebpf, pytest.mark.full]

SECONDS = float(os.environ.get("TRACEHINT_SOAK_SECONDS", "600"))
CHURN = """
i=0
while :; do
    i=$((i + 1))
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13; do echo $i > f$i.$n; done
    cat f$i.* > sum; mv sum last; rm f$i.*
done
"""


def _rss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1])


def test_memory_does_not_grow(tmp_path: Path) -> None:
    require_ebpf()
    spool, work = tmp_path / "spool", tmp_path / "work"
    spool.mkdir()
    work.mkdir()
    recorder = subprocess.Popen([LOADER, "-o", spool, "--", "sh", "-c", CHURN], cwd=work)
    try:
        time.sleep(min(30, SECONDS / 4))
        early = _rss_kib(recorder.pid)
        time.sleep(SECONDS)
        late = _rss_kib(recorder.pid)
    finally:
        recorder.send_signal(signal.SIGTERM)
        assert recorder.wait(timeout=PATIENCE_S) == 128 + signal.SIGTERM
    assert late < 64 << 10
    assert late - early < 4 << 10, f"{early} KiB became {late} KiB"
