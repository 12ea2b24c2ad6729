"""Folders on a mount without a page cache: their files cannot be shared through memory."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tracehint.schemas.store import read_bundle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="FUSE is mounted by root"),
]


@contextmanager
def mirror(folder: Path, *options: str) -> Iterator[Path]:
    """Mount a separate FUSE file system (bindfs); skip if that is impossible."""
    behind, where = folder / "behind", folder / "m"
    behind.mkdir()
    where.mkdir()
    if shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("not there: bindfs, /dev/fuse")
    if subprocess.run(["bindfs", *options, behind, where], capture_output=True).returncode:
        pytest.skip("FUSE cannot be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder on bindfs without a page cache."""
    with mirror(tmp_path, "-o", "direct_io") as mount:
        yield mount


def test_what_was_set_is_counted(folder: Path, tmp_path: Path) -> None:
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    words = ("run", "--hints", hints, "--store", "xattr", "--no-record", "--")
    done = tracehint(*words, "sh", "-c", "echo 1 >a.txt; echo 1 >b.txt; echo 1 >c", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "hints set on 2 of 2 matching files" in done.stderr
    assert os.getxattr(folder / "a.txt", "user.DP") == b"local"
    assert not list((folder / ".tracehint").iterdir())


def test_hints_of_another_node_are_read_back(folder: Path, tmp_path: Path) -> None:
    """Its journal is empty; the attributes of the files decide."""
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    words = ("run", "--hints", hints, "--store", "xattr", "--collector", "strace")
    script = "unshare --uts sh -c 'hostname elsewhere; echo 1 >a.txt'; echo 1 >b.txt"
    trace = tmp_path / "r.trace"
    done = tracehint(*words, "-o", trace, "--", "sh", "-c", script, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "hints set on 2 of 2 matching files" in done.stderr
    rows = read_bundle(trace).tables["settings"].to_pylist()
    assert {(Path(os.fsdecode(row["path"])).name, row["state"]) for row in rows} == {
        ("a.txt", "set"),
        ("b.txt", "set"),
    }


def test_a_recording_there_is_complete(folder: Path) -> None:
    """The programs' shared buffer is on this node; the bundle gets tables at the end."""
    words = ("record", "--collector", "preload", "-o", "r.trace", "--", "sh", "-c", "echo 1 >a.txt")
    assert tracehint(*words, cwd=folder).returncode == 0
    run = read_bundle(folder / "r.trace")
    names = {os.fsdecode(name) for name in run.tables["names"].column("path").to_pylist() if name}
    assert str(folder.resolve() / "a.txt") in names
    assert not run.problems
