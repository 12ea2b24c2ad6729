"""Processor time of tasks from what engines measure themselves: Snakemake's benchmarks and the
summaries of Makeflow's and Work Queue's resource monitor, from real runs."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.engines import engine
from tests.support.needs import missing_for
from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines import makeflow_graph, makeflow_monitor, snakemake_graph
from tracehint.adapters.engines.graph_base import DeclaredGraph

SPIN = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
SNAKEFILE = f"""
rule all:
    input: "all.txt"
rule part:
    output: "parts/{{n}}.txt", "more/{{n}}.txt"
    benchmark: "bench/{{n}}.tsv"
    shell: "{SPIN}; sleep 1; echo {{wildcards.n}} | tee {{output}}"
rule join:
    input: expand("parts/{{n}}.txt", n=[1, 2])
    output: "all.txt"
    shell: "cat {{input}} > {{output}}"
"""
TABLE = "s\th:m:s\tmax_rss\tcpu_time\n"
BLOCK = "rule a:\n    output: out/x, out/y\n    jobid: 1\n    benchmark: {}\n"


def times(graph: DeclaredGraph) -> dict[str, int | None]:
    rows = graph.tasks.to_pylist()
    return {row["name"]: row["cpu_ns"] for row in rows}


@pytest.mark.slow
@pytest.mark.engine
def test_snakemake_says_what_its_jobs_took(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    program = engine("snakemake-9.27.1/bin/snakemake")
    subprocess.run([program, "-j2"], cwd=tmp_path, check=True, timeout=PATIENCE_S)
    found = times(snakemake_graph.read(tmp_path))
    table = (tmp_path / "bench" / "1.tsv").read_text().splitlines()[1].split("\t")
    assert found["more/1.txt"] == round(float(table[9]) * 1e9) > 0
    assert found["more/2.txt"] and found["all.txt"] is None


def records(folder: Path, *outputs: str) -> Path:
    """A workflow's records of one job, as Snakemake writes them."""
    for name in outputs:
        file = folder / ".snakemake" / "metadata" / base64.b64encode(name.encode()).decode()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"rule": "a", "shellcmd": "x", "job_hash": 1, "input": []}')
    (folder / ".snakemake" / "log").mkdir()
    return folder


def logged(folder: Path, benchmark: str) -> int | None:
    """The processor time of the job whose log names that benchmark."""
    log = folder / ".snakemake" / "log" / "1.snakemake.log"
    log.write_text(BLOCK.format(benchmark))
    return times(snakemake_graph.read(folder))["out/x"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1.5\t0:00:01\t3\t0.5\n", 500_000_000),
        ("1\t0:0:1\t3\t0.5\n1\t0:0:1\t3\t0.25\n", 750_000_000),  # repeated
        ("1\t0:0:1\t3\t0.00\n", None),  # never seen at work
        ("1\t0:0:1\t3\tNA\n", None),
        ("1\t0:0:1\t3\tinf\n", None),
        ("1\t0:0:1\t3\t-1\n", None),
        ("1\n", None),
        ("", None),
    ],
)
def test_a_benchmark_says_seconds_or_nothing(rows: str, said: int | None, tmp_path: Path) -> None:
    (tmp_path / "b.tsv").write_text(TABLE + rows)
    assert logged(records(tmp_path, "out/x", "out/y"), "b.tsv") == said


def test_nothing_outside_the_workflow_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "b.tsv").write_text(TABLE + "1\t0:0:1\t3\t0.5\n")
    (inside / "link.tsv").symlink_to("../b.tsv")
    records(inside, "out/x")
    for name in ("../b.tsv", str(tmp_path / "b.tsv"), "link.tsv", "", "a\0b", "."):
        assert logged(inside, name) is None


@pytest.mark.slow
def test_makeflow_s_monitor_says_what_its_rules_took(tmp_path: Path) -> None:
    if why := missing_for(("makeflow", "resource_monitor")):
        pytest.skip(why)
    (tmp_path / "work.sh").write_text(f"{SPIN}; sleep 1; echo a >$1\n")
    text = "a.txt: work.sh\n\tsh work.sh a.txt\nb.txt: a.txt\n\tsleep 1; cat a.txt >b.txt\n"
    (tmp_path / "wf.makeflow").write_text(text)
    words = ["makeflow", "-T", "local", "--monitor=mon", "wf.makeflow"]
    subprocess.run(words, cwd=tmp_path, check=True, timeout=PATIENCE_S, capture_output=True)
    found = times(makeflow_graph.read(tmp_path / "wf.makeflow"))
    summary = json.loads((tmp_path / "mon" / "resource-rule-0.summary").read_text())
    assert found["a.txt"] == round(summary["cpu_time"][0] * 1e9) > (found["b.txt"] or 0)
    again = times(makeflow_graph.read(tmp_path / "wf.makeflow.makeflowlog"))
    assert list(again.values()) == list(found.values())


def test_a_summary_of_another_run_does_not_count(tmp_path: Path) -> None:
    folder = tmp_path / "mon"
    folder.mkdir()
    good = {"start": [100.0, "s"], "cpu_time": [0.5, "s"]}
    (folder / "resource-rule-3.summary").write_text(json.dumps(good))
    for number, bad in enumerate(("", "[]", '{"start": 1}', '{"start": ["x", "s"]}', "{" * 9999)):
        (folder / f"resource-rule-{number + 10}.summary").write_text(bad)
    notes: list[str] = []
    found = makeflow_monitor.summaries(tmp_path, notes)
    assert set(found) == {3} and len(notes) == 5
    assert makeflow_monitor.used(found[3], 101_000_000) == 500_000_000
    assert makeflow_monitor.used(found[3], 200_000_000) is None
    assert makeflow_monitor.used(found[3], None) is None
