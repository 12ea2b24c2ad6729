"""Folders on a mount without a page cache: no file there can be shared through memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.fanotify import mirror
from tests.support.hints import rule, save
from tracehint.adapters.creation.ways import answers
from tracehint.schemas.store import read_bundle

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="FUSE is mounted by root"),
]  # fmt: skip  # a table


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """On bindfs without a page cache."""
    with mirror(tmp_path, "-o", "direct_io") as mount:
        yield mount


@pytest.mark.parametrize("via", [answer.name for answer in answers() if answer.usable])
def test_what_was_set_is_counted(folder: Path, tmp_path: Path, via: str) -> None:
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    words = ("run", "--via", via, "--hints", hints, "--store", "xattr", "--no-record", "--")
    done = tracehint(*words, "sh", "-c", "echo 1 >a.txt; echo 1 >b.txt; echo 1 >c", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 files that a rule is for got their hints" in done.stderr
    assert os.getxattr(folder / "a.txt", "user.DP") == b"local"
    assert not list((folder / ".tracehint").iterdir())


def test_hints_of_another_node_are_read_back(folder: Path, tmp_path: Path) -> None:
    """Its journal is an empty one; what the files say counts."""
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    words = ("run", "--hints", hints, "--store", "xattr", "--collector", "strace")
    script = "unshare --uts sh -c 'hostname elsewhere; echo 1 >a.txt'; echo 1 >b.txt"
    trace = tmp_path / "r.trace"
    done = tracehint(*words, "-o", trace, "--", "sh", "-c", script, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 files that a rule is for got their hints" in done.stderr
    rows = read_bundle(trace).tables["settings"].to_pylist()
    assert {(Path(os.fsdecode(row["path"])).name, row["state"]) for row in rows} == {
        ("a.txt", "set"), ("b.txt", "set"),
    }  # fmt: skip  # a table


def test_a_recording_there_is_not_empty(folder: Path) -> None:
    """The library's programs would find no arena: another collector takes over, or it is told."""
    done = tracehint("record", "--collector", "preload", "-o", "r.trace", "--", "true", cwd=folder)
    assert done.returncode == 125
    assert "cannot be made: No such device" in done.stderr
    assert not (folder / "r.trace").exists()
