"""Lint on real workflows: every finding was judged once by reading the workflow.

`lint_judged.tsv` has one line per finding: rule, workflow (tests/support/lint_runs.py), files (the
template, `*` for anything: cwltool's directories have random names), true or false, and the reason.
A finding without a line fails the test with its name: judge it, then add its line. A finding is
true if its statement holds and its remedy is right for this workflow.
"""

from __future__ import annotations

import csv
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.support.lint_runs import RUNS, LintRun, findings
from tracehint.hintgen.lint.registry import RULES

TABLE = Path(__file__).parent / "lint_judged.tsv"
PRECISION = 0.9


def judged() -> list[dict[str, str]]:
    with TABLE.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_each_rule_is_right_nine_times_in_ten() -> None:
    right, all_ = Counter[str](), Counter[str]()
    for row in judged():
        assert row["finding"] in ("true", "false") and row["why"], row
        assert row["rule"] in RULES and row["workflow"] in {run.name for run in RUNS}, row
        all_[row["rule"]] += 1
        right[row["rule"]] += row["finding"] == "true"
    assert {rule: right[rule] / n for rule, n in all_.items() if right[rule] < PRECISION * n} == {}


def test_no_finding_is_judged_twice() -> None:
    rows = [(row["rule"], row["workflow"], row["files"]) for row in judged()]
    assert len(rows) == len(set(rows))


@pytest.mark.slow
@pytest.mark.ebpf
@pytest.mark.engine
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_finding_was_judged(
    run: LintRun, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    known = [(row["rule"], row["files"]) for row in judged() if row["workflow"] == run.name]
    found = findings(run, tmp_path, tmp_path_factory)
    new = [
        f"{f['code']} {f['template']}: {f['message']}"
        for f in found
        if not any(f["code"] == rule and fnmatchcase(f["template"], files) for rule, files in known)
    ]
    assert new == []
    assert found, "a workflow without findings judges nothing"
