"""`compare` of two runs: the sentence for runs of different work, and its output formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tracehint.adapters.project.state import KnownRun, add_run, read_state


def run(*programs: str) -> RunBuilder:
    """Return a run in which each program reads what the previous one wrote."""
    built = RunBuilder()
    driver = built.process(["sh", "w.sh"])
    last = built.file("/data/in", existed=True)
    for number, program in enumerate(programs):
        task = built.process([program], parent=driver)
        built.read(task, last, 0, 100, at=number + 0.1)
        last = built.file(f"/data/{program}.out", existed=False)
        built.write(task, last, 0, 100, at=number + 0.2)
    return built


def compared(folder: Path, before: RunBuilder, after: RunBuilder) -> tuple[str, dict[str, Any]]:
    """Compare the two runs; return the output as text and as JSON."""
    words = ("compare", before.save(folder / "a.trace"), after.save(folder / "b.trace"))
    text = inside(*words, cwd=folder)
    assert text.returncode == 0, text.stderr
    return text.stdout, json.loads(inside(*words, "--format", "json", cwd=folder).stdout)


@pytest.mark.slow
def test_runs_of_different_workflows_are_not_measured_against_each_other(tmp_path: Path) -> None:
    text, data = compared(tmp_path, run("sort", "uniq"), run("tar", "gzip", "split", "join"))
    first = text.splitlines()[0]
    assert first == data["sentence"]
    assert first.startswith("The runs have no task type in common")
    assert "in the second run alone: gzip, join, split, and 1 more" in text


@pytest.mark.slow
def test_one_type_in_common_is_enough(tmp_path: Path) -> None:
    text, _ = compared(tmp_path, run("sort", "uniq"), run("sort", "wc"))
    assert text.startswith("The run took as long as before")


@pytest.mark.slow
def test_the_contract_holds_without_any_hint(tmp_path: Path) -> None:
    _, data = compared(tmp_path, run("sort"), run("sort"))
    for measure in ("seconds", "local_bytes", "remote_bytes"):
        assert set(data[measure]) == {"before", "after", "predicted"}
    assert data["hints"] == {"wanted": 0, "in_force": 0, "lost": 0, "impossible": 0, "reasons": []}


def recorded(folder: Path, number: int, program: str, *, status: int = 0) -> None:
    """Save and register a run as `tracehint run` does."""
    made = KnownRun(number, (program,), status, 1.0, hinted=number > 1)
    run("sort").save(read_state(folder).bundle(made))
    add_run(folder, made)


@pytest.mark.slow
def test_without_arguments_the_last_two_runs_here_are_compared(tmp_path: Path) -> None:
    for number, program in enumerate(["make", "sh", "make", "make"], 1):
        recorded(tmp_path, number, program, status=int(number == 4))
    done = inside("compare", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The run took")
    assert ".tracehint/runs/0001.trace and .tracehint/runs/0003.trace" in done.stderr
    named = inside(
        "compare", ".tracehint/runs/0001.trace", ".tracehint/runs/0003.trace", cwd=tmp_path
    )
    assert named.stdout == done.stdout


@pytest.mark.parametrize(
    ("runs", "said"), [(0, "no successful recorded runs"), (1, "1 successful recorded run of sh")]
)
def test_fewer_than_two_runs_are_an_error_that_says_so(
    tmp_path: Path, runs: int, said: str
) -> None:
    for number in range(1, runs + 1):
        recorded(tmp_path, number, "sh")
    done = inside("compare", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr and "tracehint run -- COMMAND" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [["lint"], ["report", "-o", "-"], ["graph"]])
def test_without_a_run_the_last_one_here_is_taken(tmp_path: Path, command: list[str]) -> None:
    for number, program in enumerate(["make", "sh", "make"], 1):
        recorded(tmp_path, number, program, status=int(number == 3))
    done = inside(*command, cwd=tmp_path)
    named = inside(*command, ".tracehint/runs/0001.trace", cwd=tmp_path)
    assert done.stdout == named.stdout and done.stdout
    assert done.returncode == named.returncode
    assert (
        done.stderr
        == f"tracehint: .tracehint/runs/0001.trace: the last run of make\n{named.stderr}"
    )
    (tmp_path / "none").mkdir()
    none = inside(*command, cwd=tmp_path / "none")
    assert none.returncode == 2
    assert "no successful recorded runs; one needed" in none.stderr
    assert "tracehint run -- COMMAND" in none.stderr


def test_one_run_alone_cannot_be_compared(tmp_path: Path) -> None:
    done = inside("compare", "a.trace", cwd=tmp_path)
    assert done.returncode == 2
    assert "one run given" in done.stderr
