"""Logs of Pegasus (kickstart), Swift/K and Swift/T, and Snakemake's --d3dag."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.patience import PATIENCE_S
from tests.test_engine_graphs import PEGASUS, files, save, tasks
from tracehint.adapters.engines.graphs import import_graphs, read_graph, sniff
from tracehint.errors import InputError, MissingDependencyError
from tracehint.schemas.store import read_bundle

RECORD = """- invocation: True
  version: 3.0
  start: 2025-03-12T12:39:36.752-07:00
  duration: 30.310
  transformation: "ns::mAdd:1.0"
  derivation: "{task}"
  hostaddr: 10.0.0.7
  pid: 400
  umask: 0o0022
  mainjob:
    start: 2025-03-12T12:39:36.754-07:00
    duration: 2.500
    pid: {pid}
    status:
      raw: 0
      {status}
    executable:
      file_name: /opt/bin/mAdd
      size: 773
    argument_vector:
      - "-p"
      - "a b"
    procs:
  cwd: /scratch/dir_1
  machine:
    uname_nodename: node7
  files:
    b:
      lfn: "b"
      file_name: /scratch/dir_1/b
      size: 61
      output: True
    c:
      lfn: "c"
      size: 5
      output: True
    gone:
      error: 2
    stdout:
      temporary_name: /scratch/ks.out
      size: 54
      data: |
        - invocation is not at the line's start here
"""
OTHER = """---------------pegasus-multipart
- integrity_summary:
    succeeded: 2
"""


def record(task: str, pid: int, status: str = "regular_exitcode: 0") -> str:
    return RECORD.format(task=task, pid=pid, status=status)


def test_kickstart_records_join_the_workflow(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    flow = save(tmp_path, "workflow.yml", PEGASUS)
    save(tmp_path, "00/00/mAdd_ID1.out.000", record("ID1", 7, "signal_number: 9"))
    late = record("ID1", 8).replace("12:39:36", "12:49:36")
    save(tmp_path, "00/00/mAdd_ID1.out.001", "[some text of a wrapper]\n" + late + OTHER)
    save(tmp_path, "00/00/stage_in.out.000", record("stage_in_1", 9))
    save(tmp_path, "00/00/bad.out.000", "- invocation: True\n  [oops\n")
    graph = read_graph(flow)
    killed, good, view, staging = tasks(graph)
    assert (killed["pid"], killed["exit_status"], killed["attempt"]) == (7, 137, 1)
    assert (good["task"], good["pid"], good["exit_status"], good["attempt"]) == ("ID1", 8, 0, 2)
    assert good["end_ns"] - good["start_ns"] == 2_500_000_000
    assert good["start_ns"] == 1741808976_754000000
    assert (good["host"], good["workdir"]) == ("node7", b"/scratch/dir_1")
    assert (good["command"], good["type"]) == (b"/opt/bin/mAdd -p a b", "mAdd")
    assert (view["task"], view["start_ns"], view["parents"]) == ("ID2", None, ["ID1"])
    assert staging["task"] == "stage_in_1" and staging["type"] == "mAdd"
    assert files(graph, "ID1", "out") == [b"b", b"c"] and files(graph, "ID1", "in") == [b"a"]
    sizes = {
        r["path"].rpartition(b"/")[2]: r["size_bytes"]
        for r in graph.io.to_pylist()
        if r["task"] == "ID1"
    }
    assert sizes == {b"a": 7, b"b": 61, b"c": 5}
    assert any("bad.out.000" in note for note in graph.notes)
    assert any("1 recorded job not in the workflow" in note for note in graph.notes)


def test_a_submit_directory_and_a_record_alone(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    save(tmp_path, "run/flow.yml", PEGASUS)
    save(tmp_path, "run/braindump.yml", "user: me\n")
    two = save(tmp_path, "run/merged.out.000", record("ID1", 7) + record("ID2", 8))
    for source in (tmp_path / "run", two):
        assert sniff(source) == "pegasus"
        assert [(t["task"], t["pid"]) for t in tasks(read_graph(source))] == [
            ("ID1", 7),
            ("ID2", 8),
        ]
    alone = save(tmp_path, "alone/x.out.000", record("", 7))
    (task,) = tasks(read_graph(alone))
    assert (task["task"], task["type"]) == ("x", "mAdd")
    import_graphs([tmp_path / "run"], tmp_path / "b.trace")
    rows = read_bundle(tmp_path / "b.trace").tables["declared_tasks"]
    assert rows.column("pid").to_pylist() == [7, 8]


def test_links_to_records_are_not_followed(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    outside = save(tmp_path, "elsewhere/y.out.000", record("ID1", 7))
    flow = save(tmp_path, "run/workflow.yml", PEGASUS)
    (tmp_path / "run" / "y.out.000").symlink_to(outside)
    (tmp_path / "run" / "folder").symlink_to(outside.parent)
    assert [t["pid"] for t in tasks(read_graph(flow))] == [None, None]


@pytest.mark.parametrize(
    "text",
    [
        "pegasus: 5\njobs:\n- &a {id: x}\n- *a\n",
        "pegasus: 5\njobs: " + "[" * 100_000,
        "pegasus: 5\njobs:\n" + "".join(" " * i + "- a:\n" for i in range(400)),
        "pegasus: 5\njobs: !!python/object/apply:os.system ['true']\n",
        "pegasus: 5\njobs: 3\n",
        "pegasus: 5\njobs: [" + "9" * 5000 + ", 2025-99-99, {[]: 3}]\n",
    ],
)
def test_hostile_yaml(tmp_path: Path, text: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(InputError):
        read_graph(save(tmp_path, "w.yml", text), "pegasus")


def test_without_pyyaml_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path, "workflow.yml", PEGASUS)
    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError) as error:
        read_graph(path, "pegasus")
    assert "tracehint[pegasus]" in str(error.value)


SWIFT_K = """2015-06-01 12:00:00,100-0500 INFO  Loader JAVA: 1.7
2015-06-01 12:00:01,000-0500 DEBUG swift THREAD_ASSOCIATION jobid=cat-a1 thread=0-1 host=n1 replicationGroup=x
2015-06-01 12:00:01,100-0500 INFO  swift START jobid=cat-a1 - Staging in files [file://localhost/in/x.txt, y.txt]
2015-06-01 12:00:01,200-0500 DEBUG swift FILE_STAGE_IN_START file=x.txt srchost=localhost srcdir=in
2015-06-01 12:00:01,500-0500 DEBUG swift JOB_START jobid=cat-a1 tr=cat arguments=[-n, x.txt] tmpdir=w/jobs/a/cat-a1 host=n1
2015-06-01 12:00:03,000-0500 DEBUG swift FILE_STAGE_OUT_START srcname=o.txt srcdir=w/shared/out srchost=n1 destdir=out desthost=localhost provider=file jobid=cat-a1
2015-06-01 12:00:03,500-0500 DEBUG swift JOB_END jobid=cat-a1
2015-06-01 12:00:04,000-0500 DEBUG swift JOB_START jobid=wc-b2 tr=wc arguments=[o.txt] tmpdir=w/jobs/b/wc-b2
2015-06-01 12:00:05,000-0500 DEBUG swift APPLICATION_EXCEPTION jobid=wc-b2 - Application exception: no
    at some.java.Class
"""  # noqa: E501
SWIFT_INFO = """Progress  2015-06-01 12:00:10.123456789-0500  LOG_START

        Wrapper (_swiftwrap)
PWD=/w
EXEC=/usr/bin/sort
STDOUT=s.txt
DIRS=out
INF=out/o.txt|y.txt
OUTF=out/s.txt
ARGS=-a -r out/o.txt
Progress  2015-06-01 12:00:11.000000000-0500  EXECUTE
Progress  2015-06-01 12:00:12.500000000-0500  EXECUTE_DONE
"""


def test_swift_k_log_and_wrapper_logs(tmp_path: Path) -> None:
    log = save(tmp_path, "flow-run001.log", SWIFT_K)
    save(tmp_path, "flow-run001.d/sort-c3-info", SWIFT_INFO)
    assert sniff(log) == "swift-k" and sniff(tmp_path / "flow-run001.d") == "swift-k"
    graph = read_graph(log)
    cat, wc, sort = tasks(graph)
    assert (cat["type"], cat["command"], cat["host"]) == ("cat", b"cat -n x.txt", "n1")
    assert (cat["end_ns"] - cat["start_ns"], cat["exit_status"]) == (2_000_000_000, 0)
    assert wc["exit_status"] == 1
    assert (sort["command"], sort["exit_status"]) == (b"/usr/bin/sort -r out/o.txt", 0)
    assert sort["end_ns"] - sort["start_ns"] == 1_500_000_000
    assert files(graph, "cat-a1", "in") == [b"in/x.txt", b"y.txt"]
    assert files(graph, "cat-a1", "out") == [b"out/o.txt"] and files(graph, "wc-b2", "in") == []
    assert files(graph, "sort-c3", "in") == [b"out/o.txt", b"y.txt"]
    assert files(graph, "sort-c3", "out") == [b"out/s.txt"]
    (only,) = tasks(read_graph(tmp_path / "flow-run001.d"))
    assert only["task"] == "sort-c3"


def test_swift_k_wrapper_logs_that_are_links_are_left(tmp_path: Path) -> None:
    log = save(tmp_path, "f-run001.log", SWIFT_K)
    other = save(tmp_path, "else/z-info", SWIFT_INFO)
    (tmp_path / "f-run001.d").symlink_to(other.parent)
    assert [t["task"] for t in tasks(read_graph(log))] == ["cat-a1", "wc-b2"]


def test_swift_t_log(tmp_path: Path) -> None:
    log = save(
        tmp_path,
        "turbine.log",
        "some output\n[0]  0.010 turbine started\n"
        "[1]  2.000 2024-01-31 12:00:02 app: 1:1 io=stdin a.txt stdout b.txt : sort -r\n"
        "[1]  2.001 hostname: n1\n[1]  2.001 exec: sort -r\n"
        "[2]  2.500 2024-01-31 12:00:02 app: 2:1 : wc b.txt\n"
        "[1]  3.250 duration: 1.250\n[2]  9.000 duration: 6.500\n",
    )
    assert sniff(log) == "swift-t"
    graph = read_graph(log)
    sort, wc = tasks(graph)
    zero = int(datetime(2024, 1, 31, 12, 0, 0).timestamp()) * 10**9
    assert (sort["start_ns"], sort["end_ns"]) == (zero + 2 * 10**9, zero + 3_250_000_000)
    assert (sort["host"], sort["type"], wc["command"]) == ("n1", "sort", b"wc b.txt")
    assert wc["end_ns"] - wc["start_ns"] == 6_500_000_000
    assert files(graph, "a0", "in") == [b"a.txt"] and files(graph, "a0", "out") == [b"b.txt"]


def test_swift_t_log_without_ranks(tmp_path: Path) -> None:
    log = save(
        tmp_path,
        "t.log",
        " 1.000 shell: cp a b stdout o.txt\n 2.000 shell command duration: 1.000\n"
        " 3.000 shell: cp c d\n 3.100 shell: cp e f\n 4.000 shell command duration: 0.900\n",
    )
    graph = read_graph(log)
    assert [t["command"] for t in tasks(graph)] == [b"cp a b", b"cp c d", b"cp e f"]
    assert [t["start_ns"] for t in tasks(graph)] == [None] * 3  # no line has a date
    assert files(graph, "a0", "out") == [b"o.txt"]
    assert graph.notes == ("1 duration of several possible commands: set TURBINE_LOG_RANKS=1",)


def test_snakemake_d3dag(tmp_path: Path) -> None:
    graph = {
        "nodes": [
            {"id": 0, "value": {"jobid": 0, "label": "all", "rule": "all"}},
            {"id": 1, "value": {"jobid": 1, "label": "part\nn: 3", "rule": "part"}},
            7,
        ],
        "edges": [{"u": 1, "v": 0}, "x"],
    }
    path = save(tmp_path, "d3.json", json.dumps(graph))
    assert sniff(path) == "snakemake"
    assert [(t["task"], t["name"], t["type"], t["parents"]) for t in tasks(read_graph(path))] == [
        ("s0", "all", "all", ["s1"]),
        ("s1", "part n: 3", "part", []),
    ]


SNAKEFILE = """
rule all:
    input: "total.txt"
rule part:
    output: "p_{n}.txt"
    shell: "echo {wildcards.n} > {output}"
rule total:
    input: expand("p_{n}.txt", n=range(3))
    output: "total.txt"
    shell: "cat {input} > {output}"
"""


@pytest.mark.slow
@pytest.mark.engine
def test_d3dag_of_the_real_snakemake(tmp_path: Path) -> None:
    snakemake = Path(sys.executable).parent / "snakemake"
    if not snakemake.exists():
        pytest.skip("snakemake is not installed")
    save(tmp_path, "Snakefile", SNAKEFILE)
    done = subprocess.run(
        [snakemake, "--d3dag"], cwd=tmp_path, capture_output=True, check=True, timeout=PATIENCE_S
    )
    graph = read_graph(save(tmp_path, "d3.json", done.stdout))
    kinds = {t["task"]: t["type"] for t in tasks(graph)}
    assert sorted(kinds.values()) == ["all", "part", "part", "part", "total"]
    above = {t["type"]: sorted(kinds[p] for p in t["parents"]) for t in tasks(graph)}
    assert above == {"all": ["total"], "total": ["part"] * 3, "part": []}
