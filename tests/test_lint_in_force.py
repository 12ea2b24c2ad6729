"""Placement rules treat a hint as in force however it was set: by a recorded command, by `tracehint
run`, or as read from the file afterwards."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.support.runs import parse_run
from tests.test_lint_rules import examples
from tracehint.hintgen.lint import run_rules
from tracehint.hintgen.lint.context import Context
from tracehint.schemas.store import Bundle, table_from_rows

_SET = re.compile(r"^setfattr (\S+) (\S+) (\S+).*\n", re.MULTILINE)
# examples in which a hint suppresses the finding or changes it
CASES = [
    (code, run)
    for code, _, run, _ in examples()
    if re.match("TP00[1-6]", code) and _SET.search(run)
]


def bundle_of(run: str, table: str, state: str = "set") -> tuple[Bundle, Context]:
    """Return the run with its setfattr commands converted to rows of that table."""
    model = parse_run(_SET.sub("", run))
    bundle, analysis = model.bundle(), model.analysis()
    rows = []
    files = analysis.files.to_pylist()
    root = analysis.run["data_roots"][0]
    for path, name, value in _SET.findall(run):
        glob = re.sub(r"{.*?}", "*", path)
        names = [(f["path"].decode(), f) for f in files]
        fitting = [f for name, f in names if fnmatch(name, glob) or name.startswith(f"{path}/")]
        for file in fitting:
            if table == "attributes":
                rows.append({"file": file["file"], "name": f"user.{name}", "value": value})
            else:
                place = root.encode() + b"/" + file["path"]
                rows.append(
                    {"t_ns": bundle.manifest.started_ns, "pid": 1, "path": place, "rule": "r",
                     "pattern": "", "hint": f"{name}={value}", "key": f"user.{name}",
                     "value": value.encode(), "state": state, "error": None, "why": "", "host": "h"}
                )  # fmt: skip  # a table
    assert rows
    known = table_from_rows(table, rows)
    changed = Bundle(Path("run.trace"), bundle.manifest, {**bundle.tables, table: known})
    return changed, Context(analysis, changed)


@pytest.mark.slow
@pytest.mark.parametrize(("code", "run"), CASES)
def test_a_hint_counts_however_it_is_known(code: str, run: str) -> None:
    model = parse_run(run)
    expected = run_rules(Context(model.analysis(), model.bundle()), [code])
    for table in ("settings", "attributes"):
        found = run_rules(bundle_of(run, table)[1], [code])
        assert [(f.files, f.bytes) for f in found] == [(f.files, f.bytes) for f in expected], table


@pytest.mark.slow
@pytest.mark.parametrize(("code", "run"), CASES)
def test_a_hint_that_was_lost_does_not_count(code: str, run: str) -> None:
    model = parse_run(_SET.sub("", run))
    expected = run_rules(Context(model.analysis(), model.bundle()), [code])
    _, context = bundle_of(run, "settings", state="lost")
    assert len(run_rules(context, [code])) == len(expected)
