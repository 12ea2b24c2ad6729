"""What engines report of their tasks' resources: Snakemake's logs and benchmarks, Nextflow's trace,
Makeflow's files, and the summaries of its and Work Queue's resource monitor."""

from __future__ import annotations

import base64
import io
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.engines import engine
from tests.support.needs import missing_for
from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines.graph_base import DeclaredGraph
from tracehint.adapters.engines.graphs import import_graphs
from tracehint.adapters.engines.makeflow import graph as makeflow_graph
from tracehint.adapters.engines.snakemake import graph as snakemake_graph
from tracehint.analyzer.analyze import analyze
from tracehint.hintgen.lint.formats import Info, render_text
from tracehint.hintgen.summary.console import console_for
from tracehint.hintgen.summary.gain import Simulation, built_in
from tracehint.hintgen.summary.summary import print_summary
from tracehint.schemas.store import read_bundle

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
    """Write a workflow's metadata of one job, as Snakemake does."""
    for name in outputs:
        file = folder / ".snakemake" / "metadata" / base64.b64encode(name.encode()).decode()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"rule": "a", "shellcmd": "x", "job_hash": 1, "input": []}')
    (folder / ".snakemake" / "log").mkdir()
    return folder


def logged(folder: Path, benchmark: str) -> int | None:
    """Return the processor time of a job whose log names this benchmark."""
    log = folder / ".snakemake" / "log" / "1.snakemake.log"
    log.write_text(BLOCK.format(benchmark))
    return times(snakemake_graph.read(folder))["out/x"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1.5\t0:00:01\t3\t0.5\n", 500_000_000),
        ("1\t0:0:1\t3\t0.5\n1\t0:0:1\t3\t0.25\n", 750_000_000),  # two repetitions
        ("1\t0:0:1\t3\t0.00\n", None),  # no activity measured
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


@pytest.mark.parametrize(
    ("fields", "cores", "memory"),
    [
        ("threads: 4\n    resources: tmpdir=/tmp, mem_mb=2000, mem_mib=1908\n", 4, 1908 << 20),
        ("resources: mem_mb=2000, tmpdir=/tmp\n", 1, 2_000_000_000),
        ("resources: tmpdir=<TBD>, other_mem_mb=7\n", 1, None),
        (f"threads: {'9' * 5000}\n", None, None),
    ],
)
def test_the_log_of_snakemake_states_what_jobs_request(
    fields: str, cores: int | None, memory: int | None, tmp_path: Path
) -> None:
    folder = records(tmp_path, "out/x", "out/y")
    (folder / "b.tsv").write_text(TABLE + "1\t0:0:1\t3.5\t0.5\n")
    log = folder / ".snakemake" / "log" / "1.snakemake.log"
    log.write_text(BLOCK.format("b.tsv") + "    " + fields)
    (row,) = snakemake_graph.read(folder).tasks.to_pylist()
    assert (row["cores"], row["memory_bytes"]) == (cores, memory)
    assert row["peak_bytes"] == 3.5 * (1 << 20)


CLASSIC = """CORES=2
MEMORY=512
a: b
\tmake_a
CATEGORY=large
CORES=8
c: a
\tmake_c
d: a
@CORES=3
\tmake_d
"""
JX = {"rules": [{"command": "x", "outputs": ["a"], "resources": {"cores": 2, "memory": 512}}]}


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        (CLASSIC, {"make_a": (2, 512), "make_c": (8, 512), "make_d": (3, 512)}),
        (json.dumps(JX), {"x": (2, 512)}),
        ("a: b\n\tmake_a\n", {"make_a": (None, None)}),
    ],
)
def test_makeflow_requests_by_rule_and_category(
    text: str, requested: dict[str, tuple[int | None, int | None]], tmp_path: Path
) -> None:
    (tmp_path / "wf.makeflow").write_text(text)
    rows = makeflow_graph.read(tmp_path / "wf.makeflow").tasks.to_pylist()
    found = {row["type"]: (row["cores"], row["memory_bytes"]) for row in rows}
    assert found == {k: (c, m and m << 20) for k, (c, m) in requested.items()}


def test_the_columns_of_what_is_requested_are_absent_where_no_engine_states_it(
    tmp_path: Path,
) -> None:
    head = "task_id\thash\tprocess\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tpeak_rss"
    row = "1\tab/123456\tP\tP (1)\tCOMPLETED\t0\t2024-01-31 12:00:00.000\t2s\t2s\t50%\t3 MB"
    wanted = {"cores": 4, "memory_bytes": 2 << 30, "peak_bytes": 3 << 20}
    for more, stated in (("", {"peak_bytes": 3 << 20}), ("\t4\t2 GB", wanted)):
        names = "\tcpus\tmemory" if more else ""
        (tmp_path / "trace.txt").write_text(f"{head}{names}\n{row}{more}\n")
        import_graphs([tmp_path / "trace.txt"], tmp_path / "run.trace", force=True)
        analysis = analyze(read_bundle(tmp_path / "run.trace"))
        assert analysis.run["requested"] == {"P": stated}
        out = io.StringIO()
        print_summary(analysis, console_for(out))
        assert ("cores requested" in out.getvalue()) == bool(more)
        assert "3 MiB" in out.getvalue()
        simulation = Simulation(analysis, built_in())
        text = render_text([], Info(tool="t", subject="s", simulation=simulation))
        assert ("cores requested" in text) == bool(more)
        assert "3 MiB" in text


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
    found = makeflow_graph.summaries(tmp_path, notes)
    assert set(found) == {3} and len(notes) == 5
    assert makeflow_graph.find_usage(found[3], 101_000_000) == (500_000_000, None)
    assert makeflow_graph.find_usage(found[3], 200_000_000) == (None, None)
    assert makeflow_graph.find_usage(found[3], None) == (None, None)
