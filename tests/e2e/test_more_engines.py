"""cwltool, Parsl and GNU parallel on one small workflow: make, three counts, a total."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.support import Run, analyze, record
from tests.support.engines import engine
from tests.support.recordings import Recording, recorded

pytestmark = [pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]

PARTS = [f"count_{n}.txt" for n in (1, 2, 3)]
CWL = {
    "make.cwl": {
        "baseCommand": ["seq", "1"],
        "stdout": "seed.txt",
        "outputs": {"out": "stdout"},
        "inputs": {"n": {"type": "int", "inputBinding": {"position": 1}}},
    },
    "count.cwl": {
        "baseCommand": ["sort", "-rn"],
        "stdout": "$(inputs.name)",
        "outputs": {"out": "stdout"},
        "inputs": {"seed": {"type": "File", "inputBinding": {"position": 1}}, "name": "string"},
    },
    "total.cwl": {
        "baseCommand": ["cat"],
        "stdout": "total.txt",
        "outputs": {"out": "stdout"},
        "inputs": {"parts": {"type": "File[]", "inputBinding": {"position": 1}}},
    },
}
CWL_WORKFLOW = {
    "cwlVersion": "v1.2", "class": "Workflow",
    "requirements": {"ScatterFeatureRequirement": {}},
    "inputs": {"n": "int", "names": "string[]"},
    "outputs": {"total": {"type": "File", "outputSource": "total/out"}},
    "steps": {
        "make": {"run": "make.cwl", "in": {"n": "n"}, "out": ["out"]},
        "count": {"run": "count.cwl", "scatter": "name", "out": ["out"],
                  "in": {"seed": "make/out", "name": "names"}},
        "total": {"run": "total.cwl", "in": {"parts": "count/out"}, "out": ["out"]},
    },
}  # fmt: skip  # a table
PARSL = """
from parsl import File, bash_app, load
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

@bash_app
def make(outputs=()):
    return f"seq 1 20000 > {outputs[0]}"

@bash_app
def count(inputs=(), outputs=()):
    return f"sort -rn {inputs[0]} > {outputs[0]}"

@bash_app
def total(inputs=(), outputs=()):
    return f"cat {' '.join(map(str, inputs))} > {outputs[0]}"

if __name__ == "__main__":
    executor = HighThroughputExecutor(
        address="127.0.0.1", max_workers_per_node=2, encrypted=False,
        provider=LocalProvider(init_blocks=1, max_blocks=1),
    )
    with load(Config(executors=[executor])):
        seed = make(outputs=[File("seed.txt")]).outputs[0]
        parts = [count(inputs=[seed], outputs=[File(f"count_{n}.txt")]).outputs[0]
                 for n in (1, 2, 3)]
        total(inputs=parts, outputs=[File("total.txt")]).result()
"""
SHELL = """
seq 1 20000 > seed.txt
parallel -j2 --will-cite 'sort -rn seed.txt > count_{}.txt' ::: 1 2 3
cat count_1.txt count_2.txt count_3.txt > total.txt
"""


@pytest.fixture(scope="module")
def cwltool(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The workflow, and a program that reads cwltool's copy of its output."""
    program = engine("cwltool")
    work = tmp_path_factory.mktemp("cwl")
    for name, tool in CWL.items():
        head = {"cwlVersion": "v1.2", "class": "CommandLineTool"}
        (work / name).write_text(json.dumps(head | tool))
    (work / "wf.cwl").write_text(json.dumps(CWL_WORKFLOW))
    (work / "job.json").write_text(json.dumps({"n": 20000, "names": PARTS}))
    script = f"{program} --quiet --copy-outputs --outdir out wf.cwl job.json > log\n"
    (work / "run.sh").write_text(script + "gzip -1 -k out/total.txt\n")
    return record(["sh", "run.sh"], work, work.parent / "cwl.trace", "--collector", "ebpf")


def record_parsl(factory: pytest.TempPathFactory) -> Recording:
    program = engine("python")
    command = ["env", f"PATH={program.parent}:{os.environ['PATH']}", str(program), "wf.py"]

    def prepare(folder: Path) -> None:
        (folder / "wf.py").write_text(PARSL)

    return recorded(factory, "parsl", prepare, lambda: command)


@pytest.fixture(scope="module")
def parsl(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return analyze(record_parsl(tmp_path_factory).bundle)


def record_parallel(factory: pytest.TempPathFactory) -> Recording:
    def prepare(folder: Path) -> None:
        (folder / "run.sh").write_text(SHELL)

    return recorded(factory, "parallel", prepare, lambda: ("sh", "run.sh"))


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if not shutil.which("parallel"):
        pytest.skip("GNU parallel is not installed")
    return analyze(record_parallel(tmp_path_factory).bundle)


def labels(run: Run) -> dict[str, str]:
    """Map task ids to make, count, total or gzip, by the task's program."""
    programs = {"seq": "make", "sort": "count", "cat": "total", "gzip": "gzip"}
    tasks = [t for t in run.tasks.values() if not t["engine"]]
    found = {t["id"]: programs.get(t["type"], t["command"]) for t in tasks}
    assert sorted(v for v in found.values() if v != "gzip") == [
        "count",
        "count",
        "count",
        "make",
        "total",
    ], [t["command"] for t in tasks]
    return found


@pytest.mark.parametrize("name", ["cwltool", "parsl", "parallel"])
def test_tasks_edges_and_patterns(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    label = labels(run)
    edges = [(p, Path(path).name, c) for p, path, c in run.edges(label) if c != "gzip"]
    assert set(edges) == {("make", "seed.txt", "count"), *(("count", p, "total") for p in PARTS)}
    counts = {
        e["consumer"]
        for e in run.analysis["edges"]
        if Path(run.files[e["file"]]["path"]).name == "seed.txt"
    }
    assert counts == {task for task, kind in label.items() if kind == "count"}
    kinds = {Path(f["path"]).name: run.primary(f["path"]) for f in run.files.values()}
    assert kinds["seed.txt"] == "broadcast" and {kinds[p] for p in PARTS} == {"reduce"}


@pytest.mark.parametrize("name", ["cwltool", "parsl", "parallel"])
def test_the_engine_makes_no_edges(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    engines = {t["id"] for t in run.tasks.values() if t["engine"]}
    assert engines
    assert not any({e["producer"], e["consumer"]} & engines for e in run.analysis["edges"])
    assert run.analysis["run"]["lost_events"] == 0


def test_what_cwltool_copies_keeps_its_producer(cwltool: Run) -> None:
    edges = cwltool.edges(labels(cwltool), via="engine_copy")
    assert {(p, Path(path).name, c) for p, path, c in edges} == {("total", "total.txt", "gzip")}
