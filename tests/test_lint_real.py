"""After `hints` and `emit` have applied what lint asks for, lint reports nothing more."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.e2e.support import tracehint
from tests.e2e.test_demo import recording
from tests.support.recordings import usual

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> Path:
    base = tmp_path_factory.mktemp("loop")
    if not shutil.which("setfattr"):
        pytest.skip("no setfattr (apt install attr)")
    try:
        os.setxattr(base, "user.tracehint", b"1")
    except OSError:
        pytest.skip("the temporary directory takes no attributes")
    shutil.copytree(demo, base / "second")
    shutil.copytree(recording(tmp_path_factory, "shell", usual()).bundle, base / "first.trace")
    tracehint("hints", "first.trace", "-o", "h.json", cwd=base)
    every_file = ("--like", "first.trace", "--create")
    tracehint("emit", "h.json", "--store", "xattr", *every_file, "-o", "hints.sh", cwd=base)
    make = 'test "$1" = S && exit; mkdir -p "$(dirname "$2")"; test -e "$2" || touch "$2"'
    one = f'{make}; setfattr -n "$3" -v "$4" "$2"'
    both = f"xargs -0 -n 5 sh -c '{one}' set <../hints.sh.data && sh run.sh"
    tracehint("record", "-o", base / "second.trace", "--", "sh", "-c", both, cwd=base / "second")
    return base


def codes(bundle: Path, *options: str) -> set[str]:
    done = tracehint("lint", bundle, "--format", "json", "--nodes", "8", *options, ok=(0, 1))
    return {f["code"] for f in json.loads(done.stdout)["findings"]}


def test_first_run_has_placement_findings(folder: Path) -> None:
    assert {"TP001", "TP002", "TP003", "TP004"} <= codes(folder / "first.trace")


def test_the_mend_of_a_finding_is_a_command_that_runs(folder: Path, tmp_path: Path) -> None:
    bundle = folder / "first.trace"
    done = tracehint("lint", bundle, "--format", "json", "--select", "TP", ok=(1,))
    for command in json.loads(done.stdout)["findings"][0]["fix"].split("&&"):
        words = shlex.split(command)
        assert words[0] == "tracehint"
        tracehint(*words[1:], cwd=tmp_path)
    assert (tmp_path / "hints.sh").is_file()


def test_run_with_the_hints_set_has_none(folder: Path) -> None:
    assert codes(folder / "second.trace", "--select", "TP") == set()


def test_hints_may_be_stated_instead_of_seen(folder: Path) -> None:
    stated = ("--select", "TP", "--hints-in-force", str(folder / "h.json"))
    assert codes(folder / "first.trace", *stated) == set()
