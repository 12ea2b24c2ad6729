"""Lock files that are removed under the lock: at any time one holder, and none left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracehint.collectors.ebpf.node_locks import locked

WORKERS, TURNS = 4, 101
WORKER = """
import sys
from pathlib import Path
from tracehint.collectors.ebpf.node_locks import locked
lock, count = Path(sys.argv[1]), Path(sys.argv[2])
for turn in range(int(sys.argv[3])):
    with locked(lock):
        count.write_text(str(int(count.read_text()) + 1))
        if turn % 2:
            lock.unlink()
with locked(lock):
    lock.unlink()
"""


def test_one_holder_at_a_time_although_the_file_goes(tmp_path: Path) -> None:
    """Read, add one, write: a second holder at the same time would lose a count."""
    lock, count = tmp_path / "lock", tmp_path / "count"
    count.write_text("0")
    command = [sys.executable, "-c", WORKER, lock, count, str(TURNS)]
    workers = [subprocess.Popen(command) for _ in range(WORKERS)]
    assert [worker.wait() for worker in workers] == [0] * WORKERS
    assert int(count.read_text()) == WORKERS * TURNS
    assert not lock.exists()


def test_shared_holders_keep_one_that_wants_it_alone_out(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        locked(lock, shared=True),
        locked(lock, shared=True, wait=False),
        pytest.raises(BlockingIOError),
        locked(lock, wait=False),
    ):
        pass
    with locked(lock, wait=False):
        lock.unlink()
