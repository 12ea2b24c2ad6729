"""`verify` resolves hints as they were set: without changes it reports no difference."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import cli

DEMO = Path(__file__).parent.parent / "datasets" / "demo"
pytestmark = pytest.mark.slow


def tracehint(folder: Path, *words: str | Path, status: int = 0) -> str:
    """Run the command line and return its standard output."""
    done = cli.tracehint(*words, cwd=folder)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return shutil.copytree(DEMO, folder)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hints of the demo, as `profile` writes them."""
    work = fresh(tmp_path_factory.mktemp("learned") / "w")
    tracehint(work, "profile", "--collector", "preload", "-o", "../r.trace", "--", "sh", "run.sh")
    return work.parent / "r.tracehint" / "hints.json"


def verified(folder: Path, hints: Path, *more: str | Path, status: int = 0) -> dict[str, int]:
    words = ("verify", hints, "--store", "xattr", ".", "--format", "json", *more)
    found: dict[str, int] = json.loads(tracehint(folder, *words, status=status))["settings"]
    return found


def scripts(work: Path, hints: Path) -> None:
    """Run the script of `profile` on existing files."""
    subprocess.run(["sh", "run.sh"], cwd=work, check=True, capture_output=True)
    script = hints.with_name("hints.sh")
    subprocess.run(["sh", script, "."], cwd=work, check=True, capture_output=True)


def emitted(work: Path, hints: Path) -> None:
    """Run the script of `emit` for the files of the next run, which are made beforehand."""
    like = hints.with_name("analysis.json")
    words = ("emit", hints, "--store", "xattr", "--create", "--like", like, "-o", "../e.sh")
    tracehint(work, *words, "--force")
    subprocess.run(["sh", "run.sh"], cwd=work, check=True, capture_output=True)
    subprocess.run(["sh", "../e.sh", "."], cwd=work, check=True, capture_output=True)


def run(work: Path, hints: Path) -> None:
    tracehint(work, "run", "--no-record", "--hints", hints, "--", "sh", "run.sh")


def run_like(work: Path, hints: Path) -> None:
    words = ("run", "--no-record", "--hints", hints, "--like", hints.with_name("analysis.json"))
    tracehint(work, *words, "--", "sh", "run.sh")


# `run_like` covers `run`.
WAYS = [scripts, emitted, run_like, pytest.param(run, marks=pytest.mark.full)]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_different_where_nothing_was_changed(way: object, learned: Path) -> None:
    assert callable(way)
    work = fresh(learned.parent.parent / "next")
    way(work, learned)
    found = verified(work, learned)
    assert (found["differs"], found["missing"]) == (0, 0)
    assert found["ok"] >= 20
    os.setxattr(work / "field.bin", "user.BlockSize", b"1")
    assert verified(work, learned, status=1)["differs"] == 1


def test_what_a_run_set_is_read_back_by_its_recording(learned: Path) -> None:
    work = fresh(learned.parent.parent / "next")
    hints = learned.parent.parent / "alone.json"
    shutil.copy(learned, hints)  # without the analysis next to it
    words = (
        "run",
        "--hints",
        hints,
        "--like",
        learned.with_name("analysis.json"),
        "-o",
        "../n.trace",
    )
    tracehint(work, *words, "--force", "--collector", "preload", "--", "sh", "run.sh")
    assert verified(work, hints, "--run", "../n.trace")["differs"] == 0
