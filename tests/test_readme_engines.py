"""README's table of engines lists exactly the engines of the tables in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracehint.adapters.engines.registry import EMITTERS, READERS
from tracehint.analyzer.tasks.engine_processes import ENGINES

README = Path(__file__).parent.parent / "README.md"
# name in the code -> name in the table
WORDS = {
    "cwl": "CWL",
    "cwltool": "cwltool",
    "confuga": "Confuga",
    "dask": "Dask",
    "json": "any scheduler (JSON)",
    "make": "make",
    "makeflow": "Makeflow",
    "nextflow": "Nextflow",
    "nextflow-log": "Nextflow",
    "parallel": "GNU parallel",
    "parsl": "Parsl",
    "pegasus": "Pegasus",
    "shell": "shell",
    "slurm": "Slurm",
    "snakemake": "Snakemake",
    "swift": "Swift",
    "swift-k": "Swift/K",
    "swift-t": "Swift/T",
    "taskvine": "TaskVine",
    "work-queue": "Work Queue",
    "xargs": "xargs",
}
NO_ENGINES = {"program", "plumbing"}  # entries for single programs and for processes around engines
OTHERS = {"Slurm arrays"}  # detected by environment variables: analyzer/tasks/batch.py


def cells(row: str) -> list[str]:
    """Return the cells of a row without its first one."""
    (line,) = re.findall(rf"^\| {row} \|(.*)\|$", README.read_text(encoding="utf-8"), re.M)
    return [cell.strip() for cell in line.split("|")]


def named(cell: str) -> set[str]:
    """Return the engines named in a cell, matching the longest names first."""
    found, rest = set(), re.sub(r"\]\([^)]*\)", "]", cell)
    for word in sorted({*WORDS.values(), *OTHERS}, key=len, reverse=True):
        rest, times = re.subn(rf"(?<![\w/]){re.escape(word)}(?![\w/])", "", rest)
        found |= {word} if times else set()
    return found


@pytest.mark.parametrize(("column", "by"), [(0, {"runs"}), (1, {"api", "grammar"})])
def test_hints_are_written_for_these_engines(column: int, by: set[str]) -> None:
    rows = ((name, facts.accepted) for name, facts in EMITTERS.items())
    wanted = {WORDS[name] for name, row in rows if row is not None and row.by in by}
    assert named(cells("hints written for")[column]) == wanted


def test_tasks_are_found_of_these_engines() -> None:
    recorded = {WORDS[engine.name] for engine in ENGINES if engine.name not in NO_ENGINES}
    runs, reads, *_ = cells("recorded, tasks found")
    assert named(runs) == recorded | OTHERS
    logs = {WORDS[name] for name in READERS if name != "wfformat"}
    assert named(reads) == logs - recorded - {WORDS["cwl"]}  # read from cwltool, which is recorded
