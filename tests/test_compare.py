"""`compare` of two runs: what it says of runs that are not the same work, and in which form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import tracehint


def run(*programs: str) -> RunBuilder:
    """Each program reads what the one before it wrote."""
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
    """As text and as JSON."""
    words = ("compare", before.save(folder / "a.trace"), after.save(folder / "b.trace"))
    text = tracehint(*words)
    assert text.returncode == 0, text.stderr
    return text.stdout, json.loads(tracehint(*words, "--format", "json").stdout)


def test_runs_of_different_workflows_are_not_measured_against_each_other(tmp_path: Path) -> None:
    text, data = compared(tmp_path, run("sort", "uniq"), run("tar", "gzip", "split", "join"))
    first = text.splitlines()[0]
    assert first == data["sentence"]
    assert first.startswith("The runs have no type of task in common")
    assert "in the second run alone: gzip, join, split, and 1 more" in text


def test_one_type_in_common_is_enough(tmp_path: Path) -> None:
    text, _ = compared(tmp_path, run("sort", "uniq"), run("sort", "wc"))
    assert text.startswith("The run took as long as before")


@pytest.mark.parametrize("measure", ["seconds", "local_bytes", "remote_bytes"])
def test_the_contract_holds_without_any_hint(tmp_path: Path, measure: str) -> None:
    _, data = compared(tmp_path, run("sort"), run("sort"))
    assert set(data[measure]) == {"before", "after", "predicted"}
    assert data["hints"] == {
        "wanted": 0, "in_force": 0, "lost": 0, "impossible": 0, "reasons": [],
    }  # fmt: skip  # a table
