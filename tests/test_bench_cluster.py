"""The cluster benchmark without a cluster: workflows, hand-written hints, and the results table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from scripts.bench.bench_cluster import Measured, table
from scripts.bench.cluster_workflows import WORKFLOWS

from tests.e2e.support import makeflow_rules
from tests.support.needs import missing_for
from tracehint.hintgen.hints.vocabulary import valid

SMALL = {"montage": 60, "montage-batch": 60, "montage-snakemake": 60, "blast": 100_000,
         "blast-batch": 100_000, "bwa": 100_000, "bwa-batch": 100_000}  # fmt: skip  # a table


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKFLOWS)
def test_hints_by_hand_are_hints_of_files_that_tasks_use(name: str, tmp_path: Path) -> None:
    flow = WORKFLOWS[name]
    if missing_for(flow.programs):
        pytest.skip(missing_for(flow.programs))
    flow.make(tmp_path, SMALL[name])
    hints = flow.by_hand()
    assert hints and all(valid(n, v) for values in hints.values() for n, v in values.items())
    if name == "montage-snakemake":
        text = (tmp_path / "Snakefile").read_text()
        assert text.count("\nrule t") == 102 and all(f"'{path}'" in text for path in hints)
        return
    (path,) = tmp_path.glob("*.makeflow")
    tasks = makeflow_rules(path.read_text())
    assert set(hints) <= {name for made, read, _ in tasks for name in (*made, *read)}
    assert any(flow.result in made for made, _, _ in tasks)
    inputs = {name for _, read, _ in tasks for name in read} - {n for m, _, _ in tasks for n in m}
    assert all(os.path.lexists(tmp_path / name) for name in inputs)


def test_seconds_of_a_loaded_machine_are_left_out() -> None:
    def run(setting: str, seconds: float, moved: int, others: float) -> Measured:
        return Measured("blast", setting, seconds, moved, others, ("planned for c: local, 2",), "x")

    text = table("blast", [run("plain", 10, 100_000_000, 0.1), run("plain", 90, 120_000_000, 0.9),
                           run("second run", 5, 11_000_000, 0.0),
                           run("third run", 5, 22_000_000, 0.9)])  # fmt: skip  # a table
    rows = [line.split(" | ") for line in text.splitlines()[2:5]]
    assert [row[1:5] for row in rows] == [
        ["10.0 (10.0 to 10.0)", "1.00", "110 (100 to 120)", "1.00"],
        ["5.0 (5.0 to 5.0)", "0.50", "11 (11 to 11)", "0.10"],
        ["-", "-", "22 (22 to 22)", "0.20"],
    ]
    assert "In 2 of 4 runs" in text and "Planned for c: local" in text
