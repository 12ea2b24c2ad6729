"""The benchmark of hints, without a store: rows, hints by hand, results that go on, the archive."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from scripts.bench.hints.archive import FETCH, PUT
from scripts.bench.hints.results import Run, differing, load, ratios, table
from scripts.bench.hints.row import Row
from scripts.bench.hints.rows import ROWS
from scripts.bench.hints.settings import archive
from scripts.bench.page import into_page

from tests.support.needs import missing_for
from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines.workflow import read_workflow
from tracehint.hintgen.hints.vocabulary import valid

pytestmark = pytest.mark.slow

SYNTHETIC = [row for row in ROWS.values() if not row.name.startswith("montage")]


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_hints_by_hand_are_hints_of_files_that_tasks_use(row: Row, tmp_path: Path) -> None:
    if missing_for(row.programs):
        pytest.skip(missing_for(row.programs))
    (tmp_path / "w.mf").write_text(row.make(tmp_path, min(row.size, row.small)))
    tasks = read_workflow(tmp_path / "w.mf").tasks
    used = {os.fsdecode(p) for t in tasks for p in (*t.targets, *t.sources)}
    hints = row.by_hand()
    assert hints
    assert set(hints) <= used
    assert all(valid(n, v) for values in hints.values() for n, v in values.items())


# Real programs: tests/e2e/test_real.py runs them as well, as other workflows.
LARGE = ("bwa", "blast")
RUNNING = [
    pytest.param(row, id=row.name, marks=[pytest.mark.full] * (row.name in LARGE))
    for row in SYNTHETIC
]


@pytest.mark.parametrize("row", RUNNING)
def test_a_row_is_a_workflow_that_runs(row: Row, tmp_path: Path) -> None:
    if missing_for(["makeflow", *row.programs]):
        pytest.skip(missing_for(["makeflow", *row.programs]))
    (tmp_path / "w.mf").write_text(row.make(tmp_path, 5 << 20))
    with archive("127.0.0.1", row):
        done = subprocess.run(
            ["makeflow", "-T", "local", "-j", "5", "w.mf"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    sums = [p.read_text() for p in sorted(tmp_path.glob("sum_*.txt"))]
    assert len(set(sums)) == len(sums), "every chain or reader has data of its own"


def test_what_goes_to_the_archive_is_what_arrives(tmp_path: Path) -> None:
    row = ROWS["pipeline-staged"]
    (tmp_path / "fetch").write_text(FETCH)
    (tmp_path / "put").write_text(PUT)
    with archive("127.0.0.1", row):
        run = ["bash", "-c", "bash ./fetch in_3.dat && head -c 1000 in_3.dat >x && bash ./put x"]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (tmp_path / "in_3.dat").stat().st_size == row.size
    told = hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest()
    assert (done.returncode, done.stdout.strip()) == (0, told)


def test_a_table_goes_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x: 1 -->\nold\n<!-- end -->\nb\n<!-- x: 2 -->\nkept\n<!-- end -->\n")
    into_page(page, "x: 1", "new\n")
    assert page.read_text().split("\n")[:5] == ["a", "<!-- x: 1 -->", "new", "<!-- end -->", "b"]
    assert "kept" in page.read_text()
    before = page.read_text()
    with pytest.raises(ValueError, match="no place"):
        into_page(page, "x: 3", "lost")
    assert page.read_text() == before


def run(setting: str, number: int, seconds: float, **sums: str) -> Run:
    """A run with plain figures."""
    return Run(setting, number, 1_000_000 * number, seconds, sums or {"out": "x"})


def test_a_broken_off_benchmark_goes_on(tmp_path: Path) -> None:
    results = load(tmp_path, "s", "r", 10, fresh=False)
    assert results.missing("ours", 3) == [0, 1, 2]
    results.add(run("ours", 1, 2.0))
    again = load(tmp_path, "s", "r", 10, fresh=False)
    assert again.missing("ours", 3) == [0, 2]
    assert again.missing("default", 1) == [0]
    assert load(tmp_path, "s", "r", 11, fresh=False).runs == [], "other files, other results"
    assert load(tmp_path, "s", "r", 10, fresh=True).runs == []


def test_the_table_compares_pair_by_pair(tmp_path: Path) -> None:
    results = load(tmp_path, "s", "r", 10, fresh=False)
    for number, (default, ours) in enumerate([(2.0, 1.0), (4.0, 1.0), (9.0, 9.0)]):
        results.add(run("default", number, default))
        results.add(run("ours", number, ours))
    assert ratios(results) == [0.5, 0.25, 1.0]
    text = table([("the row", results)])
    assert "| the row | 3 | 0.50 (0.25 to 1.00) | identical |" in text
    assert "| the row | 1.0 (0.0 to 2.0) | 1.0 (0.0 to 2.0) |" in text, "bytes, in MB"
    assert "by hand" not in text, "a setting without a run has no column"
    results.add(run("ours", 3, 1.0, out="y"))
    assert differing(results) == ["out"]
    assert "differ: out" in table([("the row", results)])
