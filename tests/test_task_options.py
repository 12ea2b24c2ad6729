"""--split, --whole and --ranks are options of every command that analyzes a bundle."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import click
import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tests.support.trees import P, grow

COMMANDS = ("analyze", "profile", "hints", "lint", "report", "graph", "export", "diff")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_analyzes_has_them(name: str) -> None:
    command = importlib.import_module(f"tracehint.commands.{name}").command
    assert isinstance(command, click.Command)
    given = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
    assert {"--split", "--whole", "--ranks", "--no-ranks"} <= given


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A script with a copy, and a driver whose two programs pass a file from one to the other."""
    run = RunBuilder()
    first, second, copy = P(["gen", "a"]), P(["use", "a"]), P(["cp", "c", "d"])
    grow(run, P(["bash", "w.sh"], copy, P(["python3", "wf.py"], first, second)))
    run.write(copy.procs[-1], run.file("/data/d"), 0, 1 << 20, at=0.5)
    made = run.file("/data/a")
    run.write(first.procs[-1], made, 0, 1 << 20, at=1.0)
    run.read(second.procs[-1], made, 0, 1 << 20, at=2.0)
    run.write(second.procs[-1], run.file("/data/b"), 0, 1 << 20, at=3.0)
    run.save(tmp_path / "run.trace")
    return tmp_path / "run.trace"


def types(text: str) -> list[str]:
    return [t["type"] for t in json.loads(text)["tasks"] if not t["engine"]]


@pytest.mark.slow
def test_they_decide_what_is_a_task(bundle: Path) -> None:
    words = ("analyze", bundle, "--format", "json")
    assert types(inside(*words, cwd=bundle.parent).stdout) == ["cp", "wf.py"]
    split = inside(*words, "--split", "wf.py", cwd=bundle.parent)
    assert types(split.stdout) == ["cp", "gen", "use"]
    assert json.loads(split.stdout)["run"]["parameters"]["split"] == ["wf.py"]
    drawn = [
        inside("graph", bundle, *more, cwd=bundle.parent) for more in ((), ("--split", "wf.py"))
    ]
    assert ["use" in d.stdout for d in drawn] == [False, True]
    found = [inside("hints", bundle, "--format", "json", *more, cwd=bundle.parent)
             for more in ((), ("--split", "wf.py"))]  # fmt: skip  # a table
    assert ["gen" in f.stdout for f in found] == [False, True]


def test_a_name_that_is_not_there_is_an_error_with_a_remedy(bundle: Path) -> None:
    done = inside("lint", bundle, "--split", "nix", cwd=bundle.parent)
    assert done.returncode == 2
    assert "--split nix" in done.stderr and "tracehint analyze" in done.stderr


def test_what_is_made_already_cannot_be_cut_otherwise(bundle: Path) -> None:
    folder = bundle.parent
    inside("analyze", bundle, "--format", "json", "-o", "run.json", cwd=folder)
    inside("hints", bundle, "-o", "hints.json", cwd=folder)
    for words in (("graph", "run.json", "--split", "wf.py"), ("hints", "run.json", "--ranks"),
                  ("hints", "hints.json", "--whole", "wf.py")):  # fmt: skip  # a table
        done = inside(*words, cwd=folder)
        assert done.returncode == 2
        assert "Give" in done.stderr
