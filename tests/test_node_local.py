"""Bundles on a network file system are recorded on the node and copied at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracehint.collectors import node_local
from tracehint.collectors.base import RecordRequest
from tracehint.collectors.begin import new_manifest
from tracehint.collectors.ebpf.node import hold_lock
from tracehint.collectors.node_local import is_local, open_node_local, recorded_locally
from tracehint.errors import NotBegunError
from tracehint.schemas.manifest import read_manifest
from tracehint.schemas.writer import BundleWriter


@pytest.fixture
def request_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RecordRequest:
    """A request for a directory treated as a network file system; TMPDIR is on the node."""
    for name in ("net", "local"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "local"))
    net = str(tmp_path / "net")
    monkeypatch.setattr(node_local, "is_local", lambda path: not str(path).startswith(net))
    monkeypatch.setattr(node_local, "is_safe", lambda _: True)
    return RecordRequest(command=("true",), output=tmp_path / "net/r.trace")


def left(request: RecordRequest) -> list[Path]:
    """Return the files remaining on the node."""
    return list((request.output.parents[1] / "local").iterdir())


def record(request: RecordRequest) -> None:
    """Write a bundle as a collector does."""
    writer = BundleWriter(request.output)
    (request.output / "raw").mkdir()
    (request.output / "raw/log").write_text("log\n")
    writer.write_manifest(new_manifest(request, "strace"))


def test_the_bundle_is_copied_when_it_is_whole(request_there: RecordRequest) -> None:
    with recorded_locally(request_there, "strace") as local:
        assert os.listdir(request_there.output) == ["manifest.json"]  # noqa: PTH208
        assert str(local.output) in read_manifest(request_there.output).notes[0]
        record(local)
    assert (request_there.output / "raw/log").read_text() == "log\n"
    assert read_manifest(request_there.output).notes == []
    assert left(request_there) == []


def test_nothing_is_left_where_nothing_was_run(request_there: RecordRequest) -> None:
    with pytest.raises(NotBegunError), recorded_locally(request_there, "strace"):
        raise NotBegunError("no", "Nothing.")
    assert not request_there.output.exists() and left(request_there) == []


def test_a_bundle_that_cannot_be_copied_is_named(
    request_there: RecordRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with recorded_locally(request_there, "strace") as local:
        record(local)
        monkeypatch.setattr(shutil, "copytree", full)
    assert (local.output / "raw/log").is_file()
    said = capsys.readouterr().err
    assert "No space left" in said and str(local.output) in said
    assert str(local.output) in read_manifest(request_there.output).notes[0]


def test_a_local_bundle_is_recorded_in_its_place(tmp_path: Path) -> None:
    request = RecordRequest(command=("true",), output=tmp_path / "r.trace")
    if not is_local(tmp_path):
        pytest.skip("the tests' directory is on no local file system")
    with recorded_locally(request, "strace") as local:
        assert local is request


def test_a_file_of_the_node_has_no_name_and_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    fd, most = open_node_local(1 << 40)
    try:
        assert os.fstat(fd).st_nlink == 0
        assert most < 1 << 40
        assert not list(tmp_path.iterdir())
    finally:
        os.close(fd)


# -- Lock files removed under the lock: at most one holder at a time, and no file remains


WORKERS, TURNS = 4, 101


WORKER = """
import sys
from pathlib import Path
from tracehint.collectors.ebpf.node import hold_lock
lock, count = Path(sys.argv[1]), Path(sys.argv[2])
for turn in range(int(sys.argv[3])):
    with hold_lock(lock):
        count.write_text(str(int(count.read_text()) + 1))
        if turn % 2:
            lock.unlink()
with hold_lock(lock):
    lock.unlink()
"""


@pytest.mark.slow
def test_one_holder_at_a_time_although_the_file_goes(tmp_path: Path) -> None:
    """Read, increment, write: a second holder at the same time would lose an increment."""
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
        hold_lock(lock, shared=True),
        hold_lock(lock, shared=True, wait=False),
        pytest.raises(BlockingIOError),
        hold_lock(lock, wait=False),
    ):
        pass
    with hold_lock(lock, wait=False):
        lock.unlink()
