"""`--nodes`, accepted wherever savings or values are computed, is stored and limits copies."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tracehint.adapters.paths import run_paths
from tracehint.cli import COMMANDS, cli
from tracehint.hintgen.hints.hintfile import load
from tracehint.hintgen.match.match import Matcher

pytestmark = pytest.mark.slow

MB = 1 << 20
COUNTING = (
    "profile", "analyze", "hints", "lint", "report", "graph", "diff", "export", "emit", "apply",
    "verify",
)  # fmt: skip  # a table


def shared(folder: Path, readers: int = 60) -> Path:
    """Save a run with one table for many readers, two of them at a time."""
    run = RunBuilder(cwd="/proj")
    make = run.process(["make"], start=0.0, end=999.0)
    table = run.file("/proj/table")
    run.write(run.process(["prepare"], parent=make, start=0.0, end=5.0), table, 0, 8 * MB, at=1.0)
    for k in range(readers):
        at = 10.0 + 10 * (k // 2)
        use = run.process(["use", str(k)], parent=make, start=at, end=at + 9)
        run.read(use, table, 0, 8 * MB, at=at + 1)
        run.write(use, run.file(f"/proj/out_{k}"), 0, MB, at=at + 2)
    return run.save(folder / "run.trace")


@pytest.mark.parametrize("name", COUNTING)
def test_every_command_that_counts_takes_nodes(name: str) -> None:
    assert name in COMMANDS
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    (option,) = [p for p in command.params if "--nodes" in p.opts]
    assert isinstance(option.type, click.IntRange) and option.type.max == 1_000_000


def test_the_number_is_kept_and_says_where_it_is_from(tmp_path: Path) -> None:
    bundle = shared(tmp_path)
    plain = json.loads(inside("analyze", bundle, "--format", "json", cwd=tmp_path).stdout)
    assert (plain["run"]["nodes"], plain["run"]["nodes_from"]) == (2, "tasks")
    words = ("analyze", bundle, "--nodes", "16", "--format", "json", "-o", "run.json")
    assert inside(*words, cwd=tmp_path).returncode == 0
    told = json.loads((tmp_path / "run.json").read_text())["run"]
    assert (told["nodes"], told["nodes_from"]) == (16, "given")


def test_an_analysis_is_not_counted_again_in_silence(tmp_path: Path) -> None:
    """JSON already contains its savings: another number of nodes needs the bundle."""
    bundle = shared(tmp_path)
    words = ("analyze", bundle, "--nodes", "16", "--format", "json", "-o", "run.json")
    assert inside(*words, cwd=tmp_path).returncode == 0
    for command in ("lint", "graph"):
        assert inside(command, "run.json", "--nodes", "16", cwd=tmp_path).returncode in (0, 1)
        done = inside(command, "run.json", "--nodes", "5", cwd=tmp_path)
        assert done.returncode == 2
        assert "analyzed for nodes 16, not 5" in done.stderr and "--nodes 5" in done.stderr


def learned(folder: Path, *words: str) -> None:
    """Learn h.json without a limit on the space for replicas."""
    words = ("hints", "run.trace", "-o", "h.json", "--replica-budget", "0", *words)
    assert inside(*words, cwd=folder).returncode == 0


def replication(folder: Path, nodes: int | None = None) -> int:
    """Return the replication hint for the table of a run like this one."""
    run = run_paths(folder / "run.trace")
    found = Matcher(load(folder / "h.json")).match(run.files, run.known, nodes)
    return int({match.path: match.values for match in found}[b"table"]["Replication"])


def test_no_hint_asks_for_more_copies_than_there_are_nodes(tmp_path: Path) -> None:
    shared(tmp_path)
    learned(tmp_path, "--nodes", "5")
    kept = json.loads((tmp_path / "h.json").read_text())["parameters"]
    assert (kept["nodes"], kept["nodes_given"]) == (5, True)
    assert replication(tmp_path) == 5  # 60 readers would ask for 20
    assert replication(tmp_path, 3) == 3
    assert replication(tmp_path, 16) == 16  # the next run's number takes precedence


def test_a_number_that_was_derived_holds_until_one_is_given(tmp_path: Path) -> None:
    """Two tasks at a time on a laptop: two copies, and more if the next run has more nodes."""
    shared(tmp_path)
    learned(tmp_path)
    rules = json.loads((tmp_path / "h.json").read_text())["rules"]
    values = [h["value"] for r in rules for h in r["hints"] if h["name"] == "Replication"]
    assert values[0] == "2"
    assert replication(tmp_path) == 2
    assert replication(tmp_path, 16) == 16


@pytest.mark.parametrize("wrong", [0, -1, 2.5, 10**7, "5", None, True])
def test_a_hint_file_with_another_number_is_refused(tmp_path: Path, wrong: object) -> None:
    shared(tmp_path)
    learned(tmp_path, "--nodes", "5")
    data = json.loads((tmp_path / "h.json").read_text())
    data["parameters"]["nodes"] = wrong
    (tmp_path / "h.json").write_text(json.dumps(data))
    done = inside("emit", "h.json", "--store", "xattr", cwd=tmp_path)
    assert done.returncode == 2 and "'nodes'" in done.stderr
