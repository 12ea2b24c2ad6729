"""README's table of engines says what the tables in the code say, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracehint.adapters.engines.registry import EMITTERS, READERS
from tracehint.analyzer.tasks.engine_processes import ENGINES

README = Path(__file__).parent.parent / "README.md"
# name in the code -> word of the table
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
NO_ENGINES = {"program", "plumbing"}  # how single programs and what stands around them are cut
OTHERS = {"Slurm arrays"}  # told by variables of the environment: analyzer/tasks/batch.py


def cells(row: str) -> list[str]:
    """The cells of a row without its head."""
    (line,) = re.findall(rf"^\| {row} \|(.*)\|$", README.read_text(encoding="utf-8"), re.M)
    return [cell.strip() for cell in line.split("|")]


def named(cell: str) -> set[str]:
    """The engines of a cell: the longest word first, what is left names none."""
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
    assert named(reads) == logs - recorded - {WORDS["cwl"]}  # of cwltool, which is recorded
