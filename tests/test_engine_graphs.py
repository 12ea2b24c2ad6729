"""Readers of engines' graphs and logs: small files of each kind, damaged and hostile ones."""

from __future__ import annotations

import base64
import gzip
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder
from tracehint.adapters.engines.graph_base import DeclaredGraph
from tracehint.adapters.engines.graphs import (
    import_graphs,
    read_graph,
    sniff,
    write_declared_bundle,
)
from tracehint.adapters.engines.run_logs import attach
from tracehint.adapters.engines.wfformat.columns import place
from tracehint.adapters.engines.wfformat.graph import JsonStream, JsonStreamError
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.cli import main
from tracehint.errors import InputError
from tracehint.schemas.store import read_bundle
from tracehint.schemas.tables import DECLARED_IO, DECLARED_TASKS

MAKEFLOW = """# a comment
CATEGORY="one"
IN=data.txt
export HINT=1
b.txt c.txt: ${IN} \\
\tscript.sh
@X=1
\tLOCAL ./script.sh $(IN) > b.txt; cp b.txt c.txt
d.txt: b.txt
\tcat b.txt | sort > d.txt
"""
LOG = (
    "# NODE\t0\tsort data.txt > a.txt\n# PARENTS\t0\n# SOURCES\t0\tdata.txt\n"
    "# TARGETS\t0\tb.txt\ta.txt\n# COMMAND\t0\tsort data.txt > a.txt\n# STARTED 1795168665296645\n"
    "# FILE 1795168665296800 a.txt 1 1073741824\n"
    "1795168665297496 0 1 14325 3 1 0 0 0 4\n1795168665302501 0 3 14325 3 0 1 0 0 4\n"
    "1795168665302600 0 0 14325 3 0 1 0 0 4\n1795168665302700 0 1 14327 3 0 1 0 0 4\n"
    "what is this\n1795168665302800 0 2 14327 3 0 1 0 0 4\n# COMPLETED 1795168665328215\n"
)
DATABASE = """# GNU Make 4.3
# Make data base, printed on Fri Nov 20 10:19:51 2026
CC := cc
COMPILE = $(CC) -c
# Files
# Not a target:
.c.o:
#  recipe to execute (built-in):
\t$(COMPILE) $<

x.o: x.c y.h | dir
#  Implicit rule search has been done.
#  recipe to execute (from 'Makefile', line 3):
\t@$(COMPILE) -o $@ $<
\techo $$HOME >> $@

.PHONY: all
all: x.o
%.a: %.b
\ttouch $@
# Finished Make data base on Fri Nov 20 10:19:51 2026
"""
CHILDREN = """cc -c -o x.o x.c
Putting child 0x5626287a0a80 (x.o) PID 19006 on the chain.
Live child 0x5626287a0a80 (x.o) PID 19006
Reaping winning child 0x5626287a0a80 PID 19006
Live child 0x5626287a0a80 (x.o) PID 19007
make[1]: Entering directory '/w/sub'
Putting child 0x560bec4693b0 (all) PID 19014 on the chain.
make[1]: Leaving directory '/w/sub'
"""
DRY_RUN = """Building DAG of jobs...
Job stats:
job      count
all          1

[Sun Nov 29 00:45:54 2026]
checkpoint sort_it:
    input: a.in
    output: out/a b.srt, p (pipe)
    jobid: 2
    wildcards: name=a b

[Sun Nov 29 00:45:54 2026]
localrule sum:
    input: out/a b.srt, <TBD>
    output: s, t
    jobid: 1

Job 7: Drawing it
Reason: Missing output files: d

rule all:
    input: s
    jobid: 0
This was a dry-run (flag -n). The order of jobs does not reflect the order of execution.
"""
JOBLOG = (
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"
    "2\t:\t1700000000.500\t     1.250\t0\t0\t0\t0\tsort a > b\n"
    "1\tn7\t1700000000.100\t     0.500\t0\t0\t0\t9\tcp 'a b' c\n"
    "1\tn7\t1700000001.100\t     0.500\t0\t0\t3\t0\tcp 'a b' c\nnonsense\n"
)
PEGASUS = """pegasus: 5.0.4
name: w
jobs:
- type: job
  name: mAdd
  id: ID1
  arguments: [-p, 3]
  uses: [{lfn: a, type: input, size: 7}, {lfn: b, type: output}]
- {type: job, name: mView, id: ID2, uses: [{lfn: b, type: inout}]}
jobDependencies:
- {id: ID1, children: [ID2]}
"""


def save(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def tasks(graph: DeclaredGraph) -> list[dict[str, Any]]:
    assert graph.tasks.schema.equals(DECLARED_TASKS) and graph.io.schema.equals(DECLARED_IO)
    return graph.tasks.to_pylist()


def files(graph: DeclaredGraph, task: str, direction: str) -> list[bytes]:
    rows = graph.io.to_pylist()
    prefix = graph.cwd.rstrip(b"/") + b"/"
    return [
        r["path"].removeprefix(prefix)
        for r in rows
        if r["task"] == task and r["direction"] == direction
    ]


def test_makeflow_classic_file(tmp_path: Path) -> None:
    path = save(tmp_path, "w.mf", MAKEFLOW)
    assert sniff(path) == "makeflow"
    graph = read_graph(path)
    first, second = tasks(graph)
    assert (first["name"], first["type"], second["type"]) == ("b.txt", "script.sh", "sort")
    assert first["command"] == b"./script.sh data.txt > b.txt; cp b.txt c.txt"
    assert files(graph, "n0", "in") == [b"data.txt", b"script.sh"]
    assert files(graph, "n0", "out") == [b"b.txt", b"c.txt"]
    assert second["parents"] == ["n0"]


def test_makeflow_log_gives_pids_times_and_attempts(tmp_path: Path) -> None:
    path = save(tmp_path, "w.mf.makeflowlog", LOG)
    graph = read_graph(path)
    failed, good = tasks(graph)
    assert (failed["pid"], failed["exit_status"], failed["attempt"]) == (14325, 1, 1)
    assert (good["pid"], good["exit_status"], good["attempt"]) == (14327, 0, 2)
    assert good["start_ns"] == 1795168665302700_000 and good["end_ns"] == 1795168665302800_000
    assert files(graph, good["task"], "out") == [b"a.txt", b"b.txt"]
    assert files(graph, failed["task"], "out") == []
    assert graph.notes == ("1 line not understood: 12",)


def test_makeflow_file_and_its_log_beside_it_are_joined(tmp_path: Path) -> None:
    save(tmp_path, "w.mf", "a.txt: data.txt\n\tsort data.txt > a.txt\n")
    log = save(tmp_path, "w.mf.makeflowlog", LOG[LOG.index("# STARTED") :])
    for path in (tmp_path / "w.mf", log):
        (_, last) = tasks(read_graph(path))
        assert (last["pid"], last["command"]) == (14327, b"sort data.txt > a.txt")


def test_makeflow_json(tmp_path: Path) -> None:
    rules = [
        {
            "command": "sort a > b",
            "inputs": ["a"],
            "outputs": [{"dag_name": "b", "task_name": "z"}],
        },
        {"workflow": "sub.jx", "inputs": ["b"], "outputs": ["c"], "unknown": {"x": 1}},
    ]
    path = save(tmp_path, "w.json", json.dumps({"rules": rules}))
    graph = read_graph(path)
    assert [t["command"] for t in tasks(graph)] == [b"sort a > b", b"MAKEFLOW sub.jx"]
    assert files(graph, "n0", "out") == [b"b"] and graph.notes


def test_makeflow_json_without_a_list_of_files(tmp_path: Path) -> None:
    path = save(tmp_path, "w.json", json.dumps({"rules": [{"command": "sort", "inputs": "a b"}]}))
    with pytest.raises(InputError, match="`inputs` of rule 0 is not a list"):
        read_graph(path)


def record(folder: Path, output: str, **more: Any) -> None:
    name = base64.b64encode(output.encode()).decode()
    save(folder / ".snakemake" / "metadata", name, json.dumps(more))


def test_snakemake_metadata(tmp_path: Path) -> None:
    job = {
        "rule": "split",
        "input": ["in.txt"],
        "shellcmd": "split in.txt",
        "job_hash": 5,
        "starttime": 1700000000.5,
        "endtime": 1700000001.0,
    }
    record(tmp_path, "p/1", **job)
    # as written by Snakemake 9: the output's times, not the job's
    record(tmp_path, "p/2", **(job | {"starttime": 1700000000.75, "endtime": 1700000002.0}))
    record(tmp_path, "s", rule="sum", input=["p/1", "p/2"], shellcmd=None, starttime=1700000003.0)
    save(tmp_path / ".snakemake" / "metadata", "no base64!", "{}")
    save(tmp_path / ".snakemake" / "metadata", base64.b64encode(b"z").decode(), "{nope")
    assert sniff(tmp_path) == "snakemake"
    graph = read_graph(tmp_path)
    assert [(t["type"], t["name"], t["start_ns"]) for t in tasks(graph)] == [
        ("split", "p/1", 1700000000_500000000),
        ("sum", "s", 1700000003_000000000),
    ]
    assert files(graph, "s0", "out") == [b"p/1", b"p/2"]
    assert tasks(graph)[0]["end_ns"] == 1700000002_000000000
    assert files(graph, "s1", "in") == [b"p/1", b"p/2"] and len(graph.notes) == 2


def test_snakemake_summary(tmp_path: Path) -> None:
    columns = ["output_file", "date", "rule", "log-file(s)", "input-file(s)", "shellcmd", "x", "y"]
    rows = ["a d up - x,y tr~<x ok no", "b d up - x,y tr~<x ok no", "c d plot - a,b - ok no", "bad"]
    lines = ["\t".join(columns), *(r.replace(" ", "\t").replace("~", " ") for r in rows)]
    graph = read_graph(save(tmp_path, "summary.tsv", "\n".join(lines)))
    assert [t["type"] for t in tasks(graph)] == ["up", "plot"]
    assert files(graph, "s0", "out") == [b"a", b"b"] and files(graph, "s1", "in") == [b"a", b"b"]


def test_snakemake_dry_run(tmp_path: Path) -> None:
    """Rules without outputs are no tasks; pipes and names not known yet are no files."""
    graph = read_graph(save(tmp_path, "dry.txt", DRY_RUN))
    assert [(t["type"], t["name"]) for t in tasks(graph)] == [
        ("sort_it", "out/a b.srt"),
        ("sum", "s"),
    ]
    assert files(graph, "s0", "in") == [b"a.in"] and files(graph, "s0", "out") == [b"out/a b.srt"]
    assert files(graph, "s1", "in") == [b"out/a b.srt"] and files(graph, "s1", "out") == [
        b"s",
        b"t",
    ]
    assert graph.notes == ("no files known of 1 job whose rule has a `message:`",)


def test_make_data_base(tmp_path: Path) -> None:
    graph = read_graph(save(tmp_path, "db.txt", DATABASE))
    (task,) = tasks(graph)
    assert (task["name"], task["type"]) == ("x.o", "cc")
    assert task["command"] == b"cc -c -o x.o x.c\necho $HOME >> x.o"
    assert files(graph, task["task"], "in") == [b"x.c", b"y.h"]


def test_make_children_with_and_without_the_data_base(tmp_path: Path) -> None:
    rows = sorted(tasks(read_graph(save(tmp_path, "j.txt", CHILDREN))), key=lambda t: t["name"])
    assert [(t["name"], t["pid"]) for t in rows] == [("all", 19014), ("x.o", 19006), ("x.o", 19007)]
    assert rows[1]["task"] == rows[2]["task"] and rows[0]["task"] == "/w/sub/all"
    both = tasks(read_graph(save(tmp_path, "both.txt", CHILDREN + DATABASE)))
    assert [(t["pid"], t["type"]) for t in both if t["name"] == "x.o"] == [
        (19006, "cc"),
        (19007, "cc"),
    ]


def test_files_of_each_level_of_a_recursive_make(tmp_path: Path) -> None:
    """The log of a real make: a level is left while the level above it still prints."""
    save(tmp_path, "Makefile", "all:\n\t$(MAKE) -C a\n")
    save(
        tmp_path,
        "a/Makefile",
        "all: mid\n\ndeep:\n\t$(MAKE) -C c\nmid: deep c/low\n\tcp c/low mid\n",
    )
    save(tmp_path, "a/c/Makefile", "low: src\n\tcp src low\n")
    save(tmp_path, "a/c/src", "x")
    printed = subprocess.run(["make", "-pn"], cwd=tmp_path, capture_output=True, check=False).stdout
    rows = read_graph(save(tmp_path, "log", printed)).io.to_pylist()
    found = {(r["path"].decode(), r["direction"]) for r in rows if b"/" in r["path"]}
    assert {(f"{tmp_path}/a/c/low", "out"), (f"{tmp_path}/a/c/low", "in")} <= found
    assert (f"{tmp_path}/a/mid", "out") in found and (f"{tmp_path}/mid", "out") not in found


def test_parallel_joblog(tmp_path: Path) -> None:
    graph = read_graph(save(tmp_path, "jobs", JOBLOG))
    rows = {t["task"]: t for t in tasks(graph)}
    assert rows["j2"]["end_ns"] - rows["j2"]["start_ns"] == 1_250_000_000
    assert (rows["j1"]["exit_status"], rows["j1"]["host"]) == (137, "n7")
    assert (rows["j1#2"]["attempt"], rows["j1#2"]["exit_status"]) == (2, 3)
    assert graph.notes == ("1 line not understood: 5",)


def test_nextflow_trace_with_work_directories(tmp_path: Path) -> None:
    one, two = tmp_path / "work/ab/cdef01" / "x", tmp_path / "work/12" / ("34567" + "8" * 25)
    one = tmp_path / "work/ab" / ("cdef01" + "0" * 24)
    save(one, "out.txt", "abc")
    save(one, ".command.sh", "#!/bin/bash -ue\nsplit in.txt")
    save(one, ".command.log", "")
    save(two, "done", "")
    (two / "out.txt").symlink_to(one / "out.txt")
    header = (
        "task_id\thash\tnative_id\tprocess\tname\tstatus\texit\tsubmit\tstart\tcomplete\trchar\n"
    )
    raw = (
        "1\tab/cdef01\t77\tWF:SPLIT\tWF:SPLIT (1)\tCOMPLETED\t0\t"
        "1700000000000\t1700000000500\t1700000001500\t9\n"
        "2\t12/345678\t78\tSUM\tSUM\tCOMPLETED\t1\t2024-01-31 12:00:00.000\t-\t-\t1.5 KB\n"
    )
    path = save(tmp_path, "trace.txt", header + raw)
    assert sniff(path) == "nextflow"
    graph = read_graph(path)
    first, second = tasks(graph)
    assert (first["type"], first["pid"], first["command"]) == ("SPLIT", 77, b"split in.txt")
    assert first["end_ns"] - first["start_ns"] == 1_000_000_000
    assert (second["exit_status"], second["read_bytes"]) == (1, 1536)
    source = b"work/ab/" + one.name.encode() + b"/out.txt"
    assert files(graph, "ab/cdef01", "out") == [source] == files(graph, "12/345678", "in")
    assert first["workdir"] == str(one).encode()


def completed(folder: Path, name: str, *, grid: str = "", more: str = "", code: str = "0") -> str:
    """Return a line of Nextflow's log, as of version 24.10."""
    return (
        "Nov-23 07:35:33.504 [Task monitor] DEBUG n.processor.TaskPollingMonitor - "
        f"Task completed > TaskHandler[{grid}id: 1; name: {name}; status: COMPLETED; exit: {code}; "
        f"error: -; workDir: {folder}{more}]\n"
    )


LAUNCHED = "Nov-23 07:35:31.262 [main] DEBUG nextflow.cli.Launcher - $> nextflow run main.nf\n"


def test_the_log_that_nextflow_always_leaves(tmp_path: Path) -> None:
    base, elsewhere = tmp_path / "w", tmp_path / "elsewhere/ab/cd"
    one, two = base / "work/ab/cdef01", base / "work/12/345678"
    save(one, "out.txt", "abc")
    save(one, ".command.sh", "#!/bin/bash -ue\nsplit in.txt")
    save(two, "done", "")
    (two / "out.txt").symlink_to(one / "out.txt")
    save(elsewhere, "secret", "x")
    (base / "work/99").symlink_to(elsewhere.parent)
    text = (
        LAUNCHED
        + completed(one, "WF:SPLIT (a; status: b)")
        + completed(two, "SUM", grid="jobId: 12; ", more=" started: 17; exited: 2026-11-23; ")
        + completed(elsewhere, "OUTSIDE", code="-")
        + completed(base / "work/99/cd", "LINKED", code="3")
        + "Task completed > TaskHandler[id: x]\n"
    )
    path = save(base, ".nextflow.log", text)
    assert sniff(path) == "nextflow-log"
    graph = read_graph(path)
    rows = tasks(graph)
    assert [(r["name"], r["type"]) for r in rows] == [
        ("WF:SPLIT (a; status: b)", "SPLIT"), ("SUM", "SUM"), ("OUTSIDE", "OUTSIDE"),
        ("LINKED", "LINKED"),
    ]  # fmt: skip  # a table
    assert [r["exit_status"] for r in rows] == [0, 0, None, 3]
    assert (rows[0]["command"], rows[0]["workdir"]) == (b"split in.txt", str(one).encode())
    assert files(graph, "ab/cdef01", "out") == [b"work/ab/cdef01/out.txt"]
    assert files(graph, "12/345678", "in") == [b"work/ab/cdef01/out.txt"]
    assert b"secret" not in b"".join(graph.io.column("path").to_pylist())


@pytest.mark.parametrize("traced", [False, True])
def test_of_a_trace_and_a_log_of_nextflow_one_is_taken(tmp_path: Path, *, traced: bool) -> None:
    folder = tmp_path / "work/ab" / ("cdef01" + "0" * 24)
    save(folder, "out.txt", "abc")
    log = save(tmp_path, ".nextflow.log", LAUNCHED + completed(folder, "SPLIT"))
    trace = save(tmp_path, "trace.txt", "task_id\thash\tprocess\n1\tab/cdef01\tSPLIT\n")
    run = RunBuilder(cwd=str(tmp_path))
    engine = run.process(["nextflow", "run", "main.nf"])
    job = run.process(["bash", "-ue", ".command.run"], parent=engine, cwd=str(folder))
    for path in (log, trace) if traced else (log,):
        run.write(engine, run.file(str(path)), 0, 5, at=1.0)
    run.write(job, run.file(str(folder / "out.txt")), 0, 3, at=1.0)
    graph = attach(run.save(tmp_path / "r.trace"))
    assert graph is not None
    assert [t["type"] for t in tasks(graph)] == ["SPLIT"]
    found = segment_tasks(read_bundle(tmp_path / "r.trace")).tasks.to_pylist()
    assert [t["type"] for t in found if not t["engine"]] == ["SPLIT"]


def test_pegasus_workflow(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    graph = read_graph(save(tmp_path, "workflow.yml", PEGASUS))
    assert [(t["type"], t["parents"]) for t in tasks(graph)] == [("mAdd", []), ("mView", ["ID1"])]
    assert files(graph, "ID2", "in") == files(graph, "ID2", "out") == [b"b"]
    bomb = "pegasus: 5\njobs:\n- &a {id: x}\n- *a\n"
    with pytest.raises(InputError, match="aliases"):
        read_graph(save(tmp_path, "bomb.yml", bomb))


def test_cwl_provenance(tmp_path: Path) -> None:
    def used(activity: str, entity: str) -> dict[str, str]:
        return {"prov:activity": activity, "prov:entity": entity}

    label = "Run of workflow/packed.cwl#main"
    document = {
        "activity": {"id:w": {"prov:label": label}, "id:1": {"prov:label": label + "/split_2"},
                     "id:2": [{"prov:label": label + "/sum"}]},
        "entity": {"id:f": {"cwlprov:basename": "a.txt"}, "id:g": {"cwlprov:basename": "b.txt"},
                   "id:v": {"prov:value": 3}},
        "hadMember": {"_:1": {"prov:collection": "id:c", "prov:entity": "id:g"},
                      "_:2": {"prov:collection": "id:c", "prov:entity": "id:c"}},
        "used": {"_:3": used("id:1", "id:f"), "_:4": [used("id:2", "id:c"), used("id:2", "id:v")]},
        "wasGeneratedBy": {"_:5": used("id:1", "id:c")},
        "wasStartedBy": {"_:6": {"prov:activity": "id:1", "prov:time": "2024-01-31T12:00:00Z"}},
    }  # fmt: skip  # a table
    save(tmp_path, "ro/metadata/provenance/primary.cwlprov.json", json.dumps(document))
    graph = read_graph(tmp_path / "ro")
    assert [(t["task"], t["type"], t["name"]) for t in tasks(graph)] == [
        ("id:1", "split", "split_2"),
        ("id:2", "sum", "sum"),
    ]
    assert files(graph, "id:1", "out") == files(graph, "id:2", "in") == [b"g/b.txt"]
    assert tasks(graph)[0]["start_ns"] == 1706702400_000000000


def instance(version: str) -> dict[str, Any]:
    if version >= "1.5":
        spec = {
            "tasks": [
                {
                    "name": "a_ID01",
                    "id": "a_ID01",
                    "children": ["b_ID02"],
                    "parents": [],
                    "inputFiles": [],
                    "outputFiles": ["f"],
                },
                {"name": "b_ID02", "id": "b_ID02", "parents": [], "inputFiles": ["f"]},
            ],
            "files": [{"id": "f", "sizeInBytes": 9}],
        }
        run = {
            "executedAt": "03-23-21T06:04:36Z",
            "makespanInSeconds": 2,
            "tasks": [
                {"id": "b_ID02", "readBytes": 4, "command": {"program": "b", "arguments": [1]}}
            ],
        }
        return {"schemaVersion": version, "workflow": {"specification": spec, "execution": run}}
    size = "sizeInBytes" if version == "1.4" else "size"
    listed = [
        {"name": "a_ID01", "files": [{"link": "output", "name": "f", size: 9}]},
        {
            "name": "b_ID02",
            "parents": ["a_ID01"],
            "bytesRead": 4,
            "arguments": ["b", 1],
            "files": [{"link": "input", "name": "f", size: 9}],
        },
    ]
    key = "tasks" if version >= "1.3" else "jobs"
    workflow = {key: listed, "executedAt": "20210323T060436+0000", "makespan": 2}
    return {"schemaVersion": version, "workflow": workflow}


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6"])
def test_wfformat_versions_give_one_model(tmp_path: Path, version: str) -> None:
    path = save(tmp_path, "i.json.gz", gzip.compress(json.dumps(instance(version)).encode()))
    graph = read_graph(path)
    rows = tasks(graph)
    assert [(t["task"], t["type"], t["parents"]) for t in rows] == [
        ("a_ID01", "a", []),
        ("b_ID02", "b", ["a_ID01"]),
    ]
    assert rows[1]["read_bytes"] == 4 and rows[1]["command"] == b"b 1"
    assert [(r["task"], r["path"], r["size_bytes"]) for r in graph.io.to_pylist()] == [
        ("a_ID01", b"/f", 9),
        ("b_ID02", b"/f", 9),
    ]
    assert graph.started_ns == 1616479476_000000000
    assert graph.ended_ns == graph.started_ns + 2_000_000_000


def test_runtimes_become_times_where_the_parents_ended(tmp_path: Path) -> None:
    document = instance("1.5")
    run = document["workflow"]["execution"]
    run["tasks"] = [
        {"id": "a_ID01", "runtimeInSeconds": 1.5},
        {"id": "b_ID02", "runtimeInSeconds": 2, "machines": ["m1"]},
    ]
    path = save(tmp_path, "i.json", json.dumps(document))
    graph = read_graph(path)
    first, second = tasks(graph)
    zero = 1616479476_000000000
    assert (first["start_ns"], first["end_ns"]) == (zero, zero + 1_500_000_000)
    assert (second["start_ns"], second["end_ns"]) == (first["end_ns"], zero + 3_500_000_000)
    assert second["host"] == "m1" and graph.placed
    assert any("placed where their parents ended" in note for note in graph.notes)
    assert main(["import", str(path), "-o", str(tmp_path / "b.trace")]) == 0
    bundle = read_bundle(tmp_path / "b.trace")
    assert "start_times" in bundle.manifest.blind_to
    assert sorted(segment_tasks(bundle).tasks.column("end_s").to_pylist()) == [1.5, 3.5]
    # together with a log, such times must not be compared with real ones
    log = save(tmp_path, "s.log", '1 execve("/bin/p", ["p"], 0x7 /* 1 var */) = 0\n')
    assert main(["import", str(path), str(log), "-o", str(tmp_path / "c.trace")]) == 0
    both = read_bundle(tmp_path / "c.trace")
    assert both.tables["declared_tasks"].column("start_ns").to_pylist() == [None, None]
    assert "start_times" not in both.manifest.blind_to


def test_tasks_are_placed_by_their_graph() -> None:
    import numpy as np

    parent, child = np.array([0, 0, 1, 2, 4, 5]), np.array([1, 2, 3, 3, 5, 4])
    start = np.array([-1, -1, 100, -1, -1, -1, -1])
    length = np.array([10, 5, 1, 7, 3, 3, -1])
    begin, end = place(parent, child, start, length, 20)
    # 3 waits for 2, which starts late; 4 and 5 wait for each other; 6 has no runtime
    assert begin.tolist() == [20, 30, 100, 101, -1, -1, -1]
    assert end.tolist() == [30, 35, 101, 108, -1, -1, -1]


def test_wfformat_of_odd_tasks(tmp_path: Path) -> None:
    spec = {
        "tasks": [
            {"name": "x", "id": "a", "parents": ["nobody", "b"], "inputFiles": ["f", "f", "/g"]},
            {"name": "x", "id": "a", "outputFiles": ["no"]},
            7,
            {"name": 3},
            {"id": "\ud800", "outputFiles": ["\udfff", "f" * 70_000]},
            {"id": "b", "children": ["a", "a", "b"], "inputFiles": 5},
        ],
        "files": [
            {"id": "f", "sizeInBytes": 1},
            {"id": "f", "sizeInBytes": 2},
            {"id": 3},
            {"id": "/g", "sizeInBytes": -5},
        ],
    }
    ran = [
        {"id": "b", "readBytes": -1, "runtimeInSeconds": 1e300},
        {"id": "who"},
        {"id": "b", "writtenBytes": 9},
    ]
    run = {"execution": {"tasks": ran}, "specification": spec}
    path = save(tmp_path, "i.json", json.dumps({"schemaVersion": "1.5", "workflow": run}))
    graph = read_graph(path)
    rows = {t["task"]: t for t in tasks(graph)}
    assert list(rows) == ["a", "\\ud800", "b"]
    assert rows["a"]["parents"] == ["nobody", "b"] and rows["b"]["parents"] == ["b"]
    assert (rows["b"]["read_bytes"], rows["b"]["written_bytes"]) == (None, 9)
    sizes = [(r["path"][:3], r["size_bytes"]) for r in graph.io.to_pylist()]
    assert sizes == [(b"/f", 2), (b"/g", None), (b"/\\u", None), (b"/ff", None)]
    assert graph.notes[0] == "3 tasks left out: no name, or a name that was used"


def test_a_graph_alone_becomes_a_bundle(tmp_path: Path) -> None:
    graph = read_graph(save(tmp_path, "w.mf", MAKEFLOW))
    write_declared_bundle(graph, tmp_path / "b.trace")
    bundle = read_bundle(tmp_path / "b.trace")
    assert bundle.manifest.collector == "import:makeflow" and bundle.manifest.cwd == str(tmp_path)
    cut = segment_tasks(bundle)
    assert cut.tasks.column("source").to_pylist() == ["declared", "declared"]
    assert cut.declared_task.num_rows == 2


def test_several_graphs_become_one_bundle(tmp_path: Path) -> None:
    first, second = save(tmp_path, "a.mf", MAKEFLOW), save(tmp_path, "b.mf", MAKEFLOW)
    bad = save(tmp_path, "c.txt", "nothing")
    manifest = import_graphs([first, bad, second], tmp_path / "b.trace")
    assert any("c.txt" in note for note in manifest.notes)
    bundle = read_bundle(tmp_path / "b.trace")
    rows = bundle.tables["declared_tasks"].to_pylist()
    assert [t["task"] for t in rows] == ["0:n0", "0:n1", "1:n0", "1:n1"]
    assert rows[3]["parents"] == ["1:n0"]
    assert set(bundle.tables["declared_io"].column("task").to_pylist()) == {t["task"] for t in rows}


def test_the_import_command_knows_the_files(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(instance("1.5")).encode())
    job = {"rule": "r", "input": [], "shellcmd": "x", "starttime": 1.0}
    record(tmp_path / "s", "p", **job)
    sources = [
        save(tmp_path, "i.json.gz", packed),
        save(tmp_path, "w.mf", MAKEFLOW),
        tmp_path / "s",
    ]
    for source in sources:
        assert main(["import", str(source), "-o", str(tmp_path / "b.trace"), "--force"]) == 0
        assert read_bundle(tmp_path / "b.trace").tables["declared_tasks"].num_rows


def test_the_log_that_an_engine_of_the_run_wrote_is_attached(tmp_path: Path) -> None:
    log = save(tmp_path, "w.mf.makeflowlog", LOG)
    save(tmp_path, "other.makeflowlog", LOG)
    run = RunBuilder(cwd=str(tmp_path))
    engine = run.process(["makeflow", "w.mf"])
    job = run.process(["sh", "-c", "sort data.txt > a.txt"], parent=engine, pid=14327)
    run.write(engine, run.file(str(log)), 0, 5, at=1.0)
    run.write(engine, run.file(str(tmp_path / "gone.makeflowlog")), 0, 5, at=1.0)
    run.write(job, run.file(str(tmp_path / "a.txt")), 0, 5, at=1.0)
    path = run.save(tmp_path / "r.trace")
    graph = attach(path)
    assert graph is not None and graph.engine == "makeflow"
    assert attach(path) is None  # only once
    (task,) = [
        t for t in segment_tasks(read_bundle(path)).tasks.to_pylist() if t["source"] == "both"
    ]
    assert task["name"] == "a.txt"


@pytest.mark.parametrize("text", ["", "{}", "[]", "hello\n", "\x00\xff", '{"rules": 3}', "a:b\n"])
def test_what_no_reader_knows_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_graph(save(tmp_path, "x", text))


def test_missing_and_truncated_files(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_graph(tmp_path / "none")
    packed = gzip.compress(json.dumps(instance("1.5")).encode() * 50)
    with pytest.raises(InputError):
        read_graph(save(tmp_path, "cut.json.gz", packed[: len(packed) // 2]), "wfformat")
    with pytest.raises(InputError, match="nested too deeply"):
        read_graph(
            save(tmp_path, "deep.json", '{"workflow": {"tasks": [' + "[" * 200_000), "wfformat"
        )


@pytest.mark.slow
def test_the_whole_corpus_has_its_counts(wfinstances: Path, tmp_path: Path) -> None:
    """148 real instances: tasks, files and references as counted by another program."""
    stats = json.loads((wfinstances / "corpus-stats.json").read_text())
    expected = {row["path"]: row for row in stats["per_instance"]}
    seen = 0
    with tarfile.open(wfinstances / "corpus.tar.xz", "r:xz") as archive:
        for member in archive:
            if not member.name.endswith(".json") or not member.isfile():
                continue
            stream = archive.extractfile(member)
            assert stream is not None
            graph = read_graph(save(tmp_path, "i.json", stream.read()))
            truth = next(t for p, t in expected.items() if member.name.endswith(p))
            sides = graph.io.column("direction").to_pylist()
            edges = sum(len(set(p)) for p in graph.tasks.column("parents").to_pylist())
            found = (graph.tasks.num_rows, len(graph.io.column("path").unique()), edges)
            assert found == (truth["tasks"], truth["files"], truth["edges_declared"]), member.name
            assert (sides.count("in"), sides.count("out")) == (
                truth["input_refs"],
                truth["output_refs"],
            ), member.name
            seen += 1
    assert seen == len(expected) == 148


@pytest.mark.slow
def test_one_run_in_six_schema_versions(wfinstances: Path) -> None:
    models = set()
    for path in sorted((wfinstances / "schema-versions").glob("*.json")):
        graph = read_graph(path)
        rows = [str({k: t[k] for k in t if k not in ("command", "parents")}) for t in tasks(graph)]
        parents = [str(sorted(t["parents"])) for t in tasks(graph)]
        files = [str(r) for r in graph.io.to_pylist()]
        models.add((*sorted(rows), *sorted(parents), *sorted(files)))
    assert len(models) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(items=st.lists(JSON, max_size=6), other=JSON, size=st.integers(1, 9))
def test_streamed_json_equals_the_whole(items: list[Any], other: Any, size: int) -> None:
    """Items and other values equal the standard library's, however the text is split."""
    text = json.dumps({"x": other, "w": {"a": items, "n": 12345}}).encode()

    class Drops(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return super().read(size)

    events = list(JsonStream(Drops(text), frozenset({"w.a"}), frozenset({"w"})).events())
    assert [v for p, v in events if p == "w.a"] == items
    assert dict(e for e in events if e[0] != "w.a") == {"x": other, "w.n": 12345}
    with pytest.raises(JsonStreamError):
        list(JsonStream(Drops(text[:-2]), frozenset({"w.a"}), frozenset({"w"})).events())
