"""The benchmark of stores reached by commands: its rows, results that go on, and the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.bench.gain_stores.__main__ import CLUSTER, PAGE
from scripts.bench.gain_stores.flow import UNREAD, flow_of
from scripts.bench.gain_stores.page import ratio, table
from scripts.bench.gain_stores.results import Moved, Results
from scripts.bench.gain_stores.rows import ROWS, Row, case_of, pipelines, readers
from scripts.bench.gain_stores.table import STORES

from tracehint.adapters.engines.workflow import read_workflow
from tracehint.analyzer.predict.cluster_file import read_cluster

MB = 1_000_000


def _moved(column: str, first: int, later: int | None = None, setup: int = 0) -> Moved:
    return Moved(column, setup, first, later, 0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipeline", "broadcast"])
def test_a_row_becomes_a_workflow_with_its_inputs(tmp_path: Path, kind: str) -> None:
    made = {
        "pipeline": lambda: pipelines(chains=2, size=4000),
        "broadcast": lambda: readers(count=6, size=5000),
    }
    row = Row(name=kind, title=kind, instance=made[kind], hand=ROWS[kind].hand, unread=77)
    case = case_of(row, tmp_path / "none", tmp_path / "out", read_cluster(CLUSTER))
    flow = flow_of(case, tmp_path / "flow", row.unread, 5)
    workflow = read_workflow(flow.folder / "w.makeflow")
    assert len(workflow.tasks) == case.work.tasks == 6
    assert all(UNREAD.encode() in task.sources for task in workflow.tasks)
    for name, size in flow.inputs.items():
        assert (flow.folder / name).stat().st_size == size
    assert flow.inputs[UNREAD] == 77
    assert flow.widely == (("db.dat",) if kind == "broadcast" else ())
    results = {"pipeline": 2, "broadcast": 6}[kind]
    assert set(flow.results.values()) == {100}
    assert len(flow.results) == results


def test_results_go_on_where_they_were(tmp_path: Path) -> None:
    first = Results(tmp_path / "new" / "s-r.json")
    first.add(_moved("default", 5 * MB, 4 * MB, setup=MB))
    again = Results(tmp_path / "new" / "s-r.json")
    assert again.of("default") == first.runs
    assert again.of("planned") == []
    assert again.of("default")[0].once == 6 * MB


def test_the_table_has_first_runs_with_their_set_up_and_later_ones(tmp_path: Path) -> None:
    results = Results(tmp_path / "r.json")
    for run in (
        _moved("default", 40 * MB, 30 * MB), _moved("default", 50 * MB, 30 * MB),
        _moved("hand", 10 * MB, 0, setup=10 * MB), _moved("planned", 10 * MB, 0),
    ):  # fmt: skip  # a table
        results.add(run)
    text = table(STORES["confuga"], {"Row": results, "Empty": Results(tmp_path / "e.json")})
    lines = text.splitlines()
    assert lines[2] == "| Row: first run | 45 (40 to 50) | 20 | 10 | 0.50 |"
    assert lines[3] == "| Row: later runs | 30 | 0 | 0 | +0.0 MB |"
    assert len(lines) == 4


def test_a_column_that_is_missing_is_no_ratio() -> None:
    assert ratio({"default": [_moved("default", MB)], "planned": []}, ": first run") == "-"


def test_the_page_has_a_table_for_every_store() -> None:
    """What is stored is there: three rows and all columns, and planned is at most 1.02 of any."""
    text = PAGE.read_text()
    for store in STORES.values():
        part = text.partition(f"<!-- measured: {store.name} -->")[2].partition("<!-- end -->")[0]
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines()[3:]]
        firsts = [row for row in rows if row[0].endswith(": first run")]
        assert len(firsts) == len(ROWS) - (not store.lists), store.name
        for row in rows:
            assert len(row) == len(store.bench().COLUMNS) + 2
            assert "-" not in row[1:]
            held = re.fullmatch(r"([0-9.]+)|([+-][0-9.]+) MB", row[-1])
            assert held, row
            assert float(held[1] or 0) <= 1.02, row
            assert float(held[2] or 0) <= 1.0, row
