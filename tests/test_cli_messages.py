"""Messages of the command line to a user who mistyped something."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.small_run import small_run

pytestmark = pytest.mark.slow


def test_a_command_that_nearly_fits_is_suggested(tmp_path: Path) -> None:
    done = tracehint("analyse", "x.trace", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'analyse'. Did you mean 'analyze'?" in done.stderr
    assert "Did you mean" not in tracehint("xyzzy", cwd=tmp_path).stderr


@pytest.mark.parametrize("command", ["analyze", "lint", "graph", "report", "hints"])
def test_a_bundle_that_is_not_there_is_told_from_a_directory_without_one(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    gone = tracehint(command, "nope.trace", cwd=tmp_path)
    other = tracehint(command, "data", cwd=tmp_path)
    assert gone.returncode == other.returncode == 2
    assert "nope.trace:" in gone.stderr and "no such bundle" in gone.stderr
    assert "data: not a trace bundle (no manifest.json)" in other.stderr


def learned(folder: Path, *options: str) -> str:
    """Record a run and learn hints from it; return the messages of the last command."""
    small_run(folder)
    done = tracehint("hints", "run.trace", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("output", ["hints.sh", "hints.json", "my hints.json"])
def test_next_never_writes_over_its_own_input(output: str, tmp_path: Path) -> None:
    said = learned(tmp_path, "-o", output)
    step = shlex.split(next(line for line in said.splitlines() if line.startswith("Next: "))[6:])
    assert step[:3] == ["tracehint", "emit", output]
    assert step[-1] != output
    assert tracehint(*step[1:], "--like", "run.trace", cwd=tmp_path).returncode in (0, 2)


def test_hints_on_standard_output_propose_nothing(tmp_path: Path) -> None:
    assert "Next:" not in learned(tmp_path, "-o", "-")


def test_the_tagged_workflow_is_not_written_over_itself(tmp_path: Path) -> None:
    from tracehint.commands.profile import _annotations

    source = tmp_path / "tagged.makeflow"
    source.write_text("a: b\n\tcp b a\n")
    text = _annotations("makeflow", ["makeflow", str(source)])
    assert text.endswith("-o tagged-again.makeflow")


@pytest.mark.parametrize("given", ["{name}", "./{name}", "{here}/{name}", "sub/../{name}"])
def test_explain_takes_a_file_as_the_shell_names_it(given: str, tmp_path: Path) -> None:
    learned(tmp_path, "-o", "hints.json")
    rules = json.loads((tmp_path / "hints.json").read_text())["rules"]
    name = rules[0]["examples"][0]
    path = given.format(name=name, here=tmp_path)
    done = tracehint("hints", "hints.json", "--explain", path, "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["path"] == name


def test_explain_of_a_file_elsewhere_says_where_names_begin(tmp_path: Path) -> None:
    learned(tmp_path, "-o", "hints.json")
    done = tracehint("hints", "hints.json", "--explain", "/else/where", cwd=tmp_path)
    assert "relative to the data's directory" in done.stderr


def test_a_store_that_cannot_say_it_is_told(tmp_path: Path) -> None:
    learned(tmp_path, "-o", "hints.json")
    emit = ("emit", "hints.json", "--store", "orangefs")
    like = tracehint(*emit, "--like", "run.trace", cwd=tmp_path)
    assert like.returncode == 2
    assert "supports none of their hints" in like.stderr
    assert "--store xattr" in like.stderr


def test_results_that_go_elsewhere_are_announced(tmp_path: Path) -> None:
    (tmp_path / "x.tracehint").mkdir()
    (tmp_path / "x.tracehint" / "mine").touch()
    record = ("profile", "--collector", "strace", "-o", "x.trace", "--", "sh", "-c", "echo a > b")
    done = tracehint(*record, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "x.tracehint exists: results are written to x-2.tracehint" in done.stderr
    assert (tmp_path / "x-2.tracehint" / "hints.json").exists()


@pytest.mark.parametrize(
    ("script", "moves"),
    [
        (["cp", "in", "out"], True),  # one task reads and writes
        (["sh", "-c", "wc -c < in"], False),  # only the engine opens the file
        (["cksum", "in"], True),
        (["sh", "-c", "cp in out; cp out more"], True),
        (["true"], False),
    ],
)
def test_what_is_said_of_a_run_without_edges_agrees_with_its_tables(
    script: list[str], moves: bool, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(b"x" * 100_000)
    done = tracehint(
        "profile", "--collector", "strace", "-o", "x.trace", "--", *script, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    known = json.loads((tmp_path / "x.tracehint" / "analysis.json").read_text())
    engines = {task["id"] for task in known["tasks"] if task["engine"]}
    software = {file["id"] for file in known["files"] if file["role"] == "software"}
    moved = sum(
        user["bytes"]
        for file in known["files"]
        if file["id"] not in software
        for user in [*file["producers"], *file["consumers"]]
        if user["task"] not in engines
    )
    assert (moved > 0) is moves
    text = tracehint("analyze", "x.trace", cwd=tmp_path).stdout
    assert ("stage in" in text) is moves
    assert ("No pattern" in text) is not moves


def test_a_run_with_nothing_to_do_says_how_to_do_it_again(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("a: b\n\tcp b a\n")
    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    done = tracehint("profile", "--collector", "strace", "--", "make", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "there is nothing to learn from this run" in done.stderr
    assert "make -B" in done.stderr
