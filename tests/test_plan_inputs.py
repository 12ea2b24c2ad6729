"""The contract of `plan` and `predict` for a declared graph that has not run, learned from a run.

The same workflow in each way of declaring one: a ring of 60 tiles, each joined twice with its
neighbour, learned from a run of 12. Only a cut of the graph keeps neighbours together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.cli import inside
from tests.support.planning import MB, Made, instance, planned, write
from tests.support.predicting import need_engine

pytestmark = pytest.mark.slow

LEARNED, WANTED, PARTS = 12, 60, 5
SECONDS = {"make": 0.2, "turn": 0.3, "pack": 0.4}
SIZES = {"raw": 20 * MB, "made": 21 * MB, "turned": 22 * MB, "packed": 23 * MB}


class Step(NamedTuple):
    """A task: its type, its number, and the files that it reads and writes."""

    kind: str
    number: int
    reads: list[str]
    writes: str


def ring(count: int) -> Iterator[Step]:
    """Yield steps that make tiles, then turn and pack each with its neighbour."""
    for i in range(count):
        yield Step("make", i, [f"raw_{i}.dat"], f"made_{i}.dat")
    for kind, before, after in (("turn", "made", "turned"), ("pack", "turned", "packed")):
        for i in range(count):
            reads = [f"{before}_{i}.dat", f"{before}_{(i + 1) % count}.dat"]
            yield Step(kind, i, reads, f"{after}_{i}.dat")


WRITERS = {step.writes: step for step in ring(WANTED)}


def size(name: str) -> int:
    """Return the size in bytes of a file of the workflow."""
    return SIZES[name.partition("_")[0]]


def as_instance(count: int) -> dict[str, Any]:
    """Return the workflow as WfFormat, with times and sizes."""
    tasks: list[Made] = [
        (f"{s.kind}_{s.number}", s.kind, s.reads, [s.writes], SECONDS[s.kind]) for s in ring(count)
    ]
    return instance(tasks, {f: size(f) for task in tasks for f in (*task[2], *task[3])})


def wfformat(folder: Path) -> Path:
    data = as_instance(WANTED)
    del data["workflow"]["specification"]["files"], data["workflow"]["execution"]
    path = folder / "next.json"
    path.write_text(json.dumps(data))
    return path


def makeflow(folder: Path) -> Path:
    rules = [
        f"{s.writes}: {' '.join(s.reads)}\n\t./{s.kind} {' '.join(s.reads)} > {s.writes}\n"
        for s in ring(WANTED)
    ]
    path = folder / "next.makeflow"
    path.write_text("\n".join(rules))
    return path


def pegasus(folder: Path) -> Path:
    jobs, waits = [], []
    for s in ring(WANTED):
        uses = [{"lfn": s.writes, "type": "output"}]
        uses += [{"lfn": name, "type": "input"} for name in s.reads]
        name = f"{s.kind}_{s.number}"
        jobs.append({"type": "job", "id": name, "name": s.kind, "arguments": [], "uses": uses})
        parents = [WRITERS[f] for f in s.reads if f in WRITERS]
        waits += [{"id": f"{p.kind}_{p.number}", "children": [name]} for p in parents]
    path = folder / "workflow.yml"
    head = 'x-pegasus: {apiLang: python}\npegasus: "5.0"\nname: next\njobs:\n'
    lines = ["".join(f"- {json.dumps(row)}\n" for row in rows) for rows in (jobs, waits)]
    path.write_text(f"{head}{lines[0]}jobDependencies:\n{lines[1]}")
    return path


def snakemake(folder: Path) -> Path:
    """Write the output of `snakemake -n`."""
    lines = ["Building DAG of jobs..."]
    for s in ring(WANTED):
        reads = ", ".join(s.reads)
        lines += [f"rule {s.kind}:", f"    input: {reads}", f"    output: {s.writes}", ""]
    lines.append("This was a dry-run (flag -n).")
    path = folder / "dry-run.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def nextflow(folder: Path) -> Path:
    """Write the trace of `nextflow run -stub-run`, with empty files in the work directories; its
    times are those of creating them."""
    lines = ["task_id\thash\tprocess\tname\tstatus\tstart\tcomplete"]
    place: dict[str, Path] = {}
    for number, s in enumerate(ring(WANTED)):
        short = f"ab/{number:06x}"
        work = folder / "work" / f"{short}{'0' * 24}"
        work.mkdir(parents=True)
        for name in s.reads:
            source = place.get(name, folder / name)
            source.touch()
            (work / name).symlink_to(source)
        place[s.writes] = work / s.writes
        place[s.writes].touch()
        times = f"{10 * number}\t{10 * number + 7}"
        lines.append(f"{number}\t{short}\t{s.kind}\t{s.kind} ({s.number})\tCOMPLETED\t{times}")
    path = folder / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def cwl(folder: Path) -> Path:
    """Write the provenance of cwltool, reduced to steps and files."""
    parts: dict[str, dict[str, Any]] = {
        kind: {} for kind in ("activity", "entity", "used", "wasGeneratedBy")
    }
    for s in ring(WANTED):
        step = s.kind if s.number == 0 else f"{s.kind}_{s.number + 1}"
        key = f"id:{step}"
        parts["activity"][key] = {"prov:label": f"Run of workflow/packed.cwl#main/{step}"}
        for name in (*s.reads, s.writes):
            parts["entity"][f"data:{name}"] = {"cwlprov:basename": name}
        rows = [("used", name) for name in s.reads] + [("wasGeneratedBy", s.writes)]
        for kind, name in rows:
            row = {"prov:activity": key, "prov:entity": f"data:{name}"}
            parts[kind][f"_:{len(parts[kind])}{kind}"] = row
    path = folder / "ro" / "metadata" / "provenance"
    path.mkdir(parents=True)
    (path / "primary.cwlprov.json").write_text(json.dumps(parts))
    return folder / "ro"


def recorded(folder: Path) -> Path:
    return write(folder, as_instance(WANTED), name="recorded.json")


# how the workflow is declared -> the name of a task in it
NAMES: dict[Callable[[Path], Path], Callable[[Step], str]] = {
    wfformat: lambda s: f"{s.kind}_{s.number}",
    makeflow: lambda s: s.writes,
    pegasus: lambda s: f"{s.kind} {s.kind}_{s.number}",
    snakemake: lambda s: s.writes,
    nextflow: lambda s: f"{s.kind} ({s.number})",
    cwl: lambda s: s.kind if s.number == 0 else f"{s.kind}_{s.number + 1}",
    recorded: lambda s: f"{s.kind}_{s.number}",
}


Declared = tuple[Path, Callable[[Step], str]]


# All graphs are planned alike, so the quick suite uses these.
USUAL = (makeflow, snakemake, recorded)
WAYS = [
    pytest.param(way, id=way.__name__, marks=[pytest.mark.full] * (way not in USUAL))
    for way in NAMES
]


@pytest.fixture(scope="module", params=WAYS)
def declared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Declared:
    """A workflow without a run, beside a run of 12 tiles; and the function that names its tasks."""
    need_engine()
    folder = tmp_path_factory.mktemp("ring")
    write(folder, as_instance(LEARNED), name="small.json")
    return request.param(folder), NAMES[request.param]


@pytest.fixture(scope="module")
def its_plan(declared: Declared) -> Any:
    """The plan for it."""
    return planned(declared[0], "--learned", "small.json")


def test_a_plan_for_sixty_tiles_from_a_run_of_twelve(declared: Declared, its_plan: Any) -> None:
    called, data = declared[1], its_plan
    rows = {row["name"]: row for row in data["strategies"]}
    assert rows[data["chosen"]]["refused"] is None and data["chosen"] != "default"
    assert all(row["network_bytes"] > 0 or row["refused"] for row in rows.values())
    assert data["seconds"]["planned"] < 0.8 * data["seconds"]["default"]
    part = {row["name"]: row["part"] for row in data["tasks"]}
    assert set(part) == {called(step) for step in ring(WANTED)}
    assert data["parts"] == PARTS and set(part.values()) == set(range(PARTS))
    for kind in SECONDS:
        each = [part[called(s)] for s in ring(WANTED) if s.kind == kind]
        assert max(map(each.count, range(PARTS))) <= 1.5 * WANTED / PARTS
    together = [
        part[called(s)] == part[called(WRITERS[name])] for s in ring(WANTED) for name in s.reads
        if name in WRITERS
    ]  # fmt: skip  # a table
    assert sum(together) > 0.8 * len(together)


def test_files_of_a_plan_lie_where_their_writers_run_and_inputs_need_nothing(
    declared: Declared, its_plan: Any
) -> None:
    called, data = declared[1], its_plan
    part = {row["name"]: row["part"] for row in data["tasks"]}
    files = {row["path"].rpartition("/")[2]: row for row in data["files"]}
    assert len(files) == len(data["files"])
    between = {s.writes for s in ring(WANTED) if s.kind != "pack"}
    assert between <= set(files) <= set(WRITERS)
    for name, row in files.items():
        assert row["hints"] and all(isinstance(v, str) and v for v in row["hints"].values())
        assert row["part"] in (None, part[called(WRITERS[name])])


def test_what_a_graph_does_not_say_is_learned_for_a_prediction(declared: Declared) -> None:
    path, called = declared
    words = ("--learned", "small.json", "--cluster", "rig.toml", "--tasks", "--format", "json")
    done = inside("predict", path, *words, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    (row,) = data["configurations"]
    spent: dict[str, float] = dict.fromkeys(SECONDS, 0.0)
    for stage in row["stages"]:
        kind = next(kind for kind in SECONDS if stage["type"].startswith(kind))
        spent[kind] += stage["spent"]["compute"]
    assert spent == pytest.approx({kind: WANTED * s for kind, s in SECONDS.items()}, rel=0.01)
    names = [task["name"] for task in row["tasks"]]
    assert sorted(names) == sorted(called(step) for step in ring(WANTED))
    moved = sum(size(f) for s in ring(WANTED) for f in (*s.reads, s.writes))
    assert 0.6 * moved < row["network_bytes"] < moved  # for one of five nodes the data is local
