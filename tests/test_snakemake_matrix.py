"""The emitted Snakefile never breaks a workflow that runs without it: difficult ones, all versions.

Each workflow runs unchanged, and with hints for all its rules and files and a plan: exit codes and
files are the same, both locally and with submitted jobs.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines import SNAKEMAKES, engine
from tests.support.hints import rule
from tests.support.patience import PATIENCE_S
from tests.support.plans import planned, save_plan
from tests.support.snakefiles import CASES, Case
from tracehint.cli import main
from tracehint.hintgen.hints.model import Hint, Rule

pytestmark = [pytest.mark.slow, pytest.mark.engine]

NEWEST = "9.27.1"
SUBMIT = '#!/bin/sh\nnohup sh "$1" >"$1.log" 2>&1 </dev/null &\necho $!\n'
QUEUE = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", "./submit", "-j", "4",
         "--seconds-between-status-checks", "1")  # fmt: skip  # a table
WHERE = {"here": (), "submitted": QUEUE}
OURS = re.compile(r"^(\.snakemake|submit|bench|.*hinted.*|snakejob.*)(/|$)")


def made(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files except those of Snakemake or tracehint."""
    paths = (p for p in sorted(folder.rglob("*")) if p.is_file())
    names = {os.fspath(p.relative_to(folder)): p for p in paths}
    return {n: p.read_bytes() for n, p in names.items() if not OURS.match(n)}


def snakemake(folder: Path, version: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake, with any exit code."""
    program = engine(f"snakemake-{version}/bin/snakemake")
    return subprocess.run(
        [program, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S
    )


def laid_out(folder: Path, case: Case) -> Path:
    """Write the workflow's files and a queue."""
    for name, text in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "submit").write_text(SUBMIT)
    (folder / "submit").chmod(0o755)
    return folder


def all_hints(case: Case, names: list[str]) -> list[Rule]:
    """Return rules that pass every file from every rule to every rule, each with many readers."""
    text = "\n".join(case.files.values())
    rules = re.findall(r"^(?:rule|checkpoint) (\w+):", text, re.MULTILINE)
    rules += [f"other_{name}" for name in rules] + ["made_here"]
    folders = sorted({name.rpartition("/")[0] for name in names})
    found = [
        rule("{name}_{n}.{word}", id=f"{a}-{b}", producer=a, consumers=(b,), DP="local",
             examples=tuple(names[:5]))
        for a in rules for b in rules
    ]  # fmt: skip  # a table
    shared = rule("{word}.txt", id="s", producer=rules[0], consumers=tuple(rules),
                  pattern="broadcast", hints=(Hint("Replication", "3", "create"),),
                  examples=tuple(names[:5]))  # fmt: skip  # a table
    where = [rule(f"{d}/x{{n}}" if d else "x{n}", id=f"d{d}", DP="local") for d in folders]
    return [*found, *where, shared]


def emitted(folder: Path, case: Case, names: list[str]) -> str:
    """Emit beside the workflow; return the output's name relative to the folder."""
    output = str(Path(case.main).with_name("hinted.smk"))
    tasks = {name: number % 2 for number, name in enumerate(names)}
    hints = save_plan(folder.parent, planned(tasks, rules=all_hints(case, names)))
    command = ["emit", str(hints), "--workflow-engine", "snakemake", str(folder / case.main)]
    hosts = str(folder.parent / "hosts.toml")
    assert main([*command, "--hosts", hosts, "-o", str(folder / output), "--force"]) == 0
    return output


def jobs(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the jobs that Snakemake would run, with their counts."""
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"^\w+ +\d+$", done.stdout + done.stderr, re.MULTILINE)


def compare(tmp_path: Path, name: str, version: str, where: str) -> None:
    """Run the workflow unchanged, then with hints; hints must not cause any job to run again."""
    case, queue = CASES[name], WHERE[where]
    plain, folder = laid_out(tmp_path / "plain", case), laid_out(tmp_path / "hinted", case)
    done = snakemake(plain, version, *case.words, *queue)
    assert done.returncode == 0, f"without hints: {done.stdout}{done.stderr}"
    expected = made(plain)
    output = emitted(plain, case, sorted(expected))
    with_hints = snakemake(plain, version, "-s", output, *case.words, "-n")
    assert jobs(with_hints) == jobs(snakemake(plain, version, *case.words, "-n"))
    output = emitted(folder, case, sorted(expected))
    for words in (("-n", "--quiet"), queue):
        done = snakemake(folder, version, "-s", output, *case.words, *words)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    assert made(folder) == expected
    said = [line for line in done.stderr.splitlines() if line.startswith("tracehint: left out")]
    assert not [line for line in said if "access patterns" not in line], done.stderr
    assert not (said and version == NEWEST)


def known_together() -> Iterator[tuple[str, str]]:
    """Yield each workflow with the versions that support its features, except those without support
    for hints."""
    for name, case in CASES.items():
        for version in SNAKEMAKES:
            if version != "8.0.0" and tuple(map(int, version.split(".")[:2])) >= case.least:
                yield name, version


USUAL = ("checkpoints",)  # the others take minutes in all versions


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in USUAL else pytest.mark.full) for n in CASES]
)
def test_a_workflow_runs_with_hints_as_without(tmp_path: Path, name: str) -> None:
    compare(tmp_path, name, NEWEST, "here")


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_workflow_is_submitted_with_hints_as_without(tmp_path: Path, name: str) -> None:
    compare(tmp_path, name, NEWEST, "submitted")


@pytest.mark.full
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("name", "version"), list(known_together()))
def test_other_versions_run_it_as_well(tmp_path: Path, name: str, version: str, where: str) -> None:
    compare(tmp_path, name, version, where)


def test_a_workflow_finds_its_own_from_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Emitted next to the folder `workflow`: scripts, `workflow.basedir`, the profile by name."""
    case = CASES["profile beside"]
    folder = laid_out(tmp_path / "w", case)
    hints = save_plan(
        tmp_path, planned({}, rules=[rule("one_{n}.txt", producer="one", DP="local")])
    )
    command = ["emit", str(hints), "--workflow-engine", "snakemake", str(folder / case.main)]
    assert main([*command, "-o", str(folder / "hinted.smk")]) == 0
    assert "give it as --workflow-profile" in capsys.readouterr().err
    words = ("-s", "hinted.smk", "--workflow-profile", "workflow/profiles/default")
    done = snakemake(folder, NEWEST, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "sum.txt").read_text() == "tool 1\ntool 2\n"
    assert "left out" not in done.stderr
