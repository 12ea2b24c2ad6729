"""A real Nextflow: tasks from its trace file, edges through work directories, effective hints."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support import Run, analyze, tracehint
from tests.support.engines import engine
from tests.support.recordings import Recording, recorded

pytestmark = [pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]

PIPELINE = """
process MAKE {
    output: path 'seed.txt'
    script: "seq 1 40000 > seed.txt"
}
process COUNT {
    tag "$n"
    input: path seed; each n
    output: path "count_${n}.txt"
    script: "cksum ${seed} && sort -rn ${seed} | head -n ${n}00 > count_${n}.txt"
}
process TOTAL {
    publishDir 'out', mode: 'copy'
    input: path parts
    output: path 'total.txt'
    script: "sort -n ${parts} > total.txt"
}
workflow { TOTAL(COUNT(MAKE(), [1, 2, 3]).collect()) }
"""
TASKS = ["COUNT (1)", "COUNT (2)", "COUNT (3)", "MAKE", "TOTAL"]
EDGES = {
    *(("MAKE", "seed.txt", f"COUNT ({n})") for n in (1, 2, 3)),
    *((f"COUNT ({n})", f"count_{n}.txt", "TOTAL") for n in (1, 2, 3)),
}


def command(*options: str) -> list[str]:
    return [
        os.fspath(engine("nextflow")),
        "run",
        "main.nf",
        "-ansi-log",
        "false",
        "-with-trace",
        "trace.txt",
        *options,
    ]


def by_name(run: Run) -> dict[str, str]:
    return {t["id"]: t["name"] for t in run.tasks.values() if not t["engine"]}


def edges(run: Run) -> set[tuple[str, str, str]]:
    """Return the edges by task names and file base names."""
    return {(p, path.rpartition("/")[2], c) for p, path, c in run.edges(by_name(run))}


def prepare(folder: Path) -> None:
    (folder / "main.nf").write_text(PIPELINE)


def recording(factory: pytest.TempPathFactory) -> Recording:
    return recorded(factory, "nextflow", prepare, command, profiled=True)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    found = recording(tmp_path_factory)
    return analyze(found.bundle), found.work


@pytest.fixture(scope="module")
def hinted(
    plain: tuple[Run, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Run, Path]]:
    """The same pipeline with the configuration that `emit` wrote."""
    work = tmp_path_factory.mktemp("hinted")
    shutil.copy(plain[1] / "main.nf", work)
    local = Path("/dev/shm") / work.parent.name / work.name
    local.mkdir(parents=True)
    try:
        tracehint(
            "emit",
            plain[0].bundle.with_suffix(".tracehint") / "hints.json",
            "--workflow-engine",
            "nextflow",
            "--local-dir",
            local,
            "-o",
            work / "hints.config",
        )
        tracehint("profile", "--collector", "ebpf", "--", *command("-c", "hints.config"), cwd=work)
        yield analyze(work / "nextflow.trace"), work
    finally:
        shutil.rmtree(local)


@pytest.mark.parametrize("which", ["plain", "hinted"])
def test_tasks_and_edges_are_the_true_ones(which: str, request: pytest.FixtureRequest) -> None:
    run, _ = request.getfixturevalue(which)
    assert sorted(by_name(run).values()) == TASKS
    assert {t["type"] for t in run.tasks.values() if not t["engine"]} == {"MAKE", "COUNT", "TOTAL"}
    assert edges(run) == EDGES
    assert run.analysis["run"]["lost_events"] == 0


@pytest.mark.parametrize("which", ["plain", "hinted"])
def test_nextflow_itself_makes_no_edges(which: str, request: pytest.FixtureRequest) -> None:
    run, _ = request.getfixturevalue(which)
    engines = {t["id"] for t in run.tasks.values() if t["engine"]}
    assert engines
    assert not any({e["producer"], e["consumer"]} & engines for e in run.analysis["edges"])
    data = {f["path"].rpartition("/")[2] for f in run.files.values() if f["role"] != "software"}
    assert data == {"seed.txt", "total.txt", *(f"count_{n}.txt" for n in (1, 2, 3))}


def test_what_nextflow_publishes_is_its_copy(plain: tuple[Run, Path]) -> None:
    run, _ = plain
    (copy,) = [f for f in run.files.values() if f["path"] == "out/total.txt"]
    assert [(p["how"], p["bytes"]) for p in copy["producers"]] == [(["engine_copy"], 0)]
    found = (run.bundle.with_suffix(".tracehint") / "lint.txt").read_text()
    assert "out/total.txt" not in found


def test_patterns(plain: tuple[Run, Path]) -> None:
    run, _ = plain
    kinds = {f["path"].rpartition("/")[2]: run.primary(f["path"]) for f in run.files.values()}
    assert kinds["seed.txt"] == "broadcast"
    assert {kinds[f"count_{n}.txt"] for n in (1, 2, 3)} == {"reduce"}


def test_hints_act_and_outputs_are_the_same(
    plain: tuple[Run, Path], hinted: tuple[Run, Path]
) -> None:
    (_, before), (_, after) = plain, hinted
    config = (after / "hints.config").read_text()
    assert "withName: 'COUNT'" in config and "stageInMode = 'copy'" in config
    assert (before / "out/total.txt").read_bytes() == (after / "out/total.txt").read_bytes()
    # the number of copies depends on the readers, so it is no directory default, and what qualifies
    # it is not set alone
    assert "value depends on the size of the run" in config and "setfattr" not in config
    runs = [p.read_text() for p in (after / "work").glob("*/*/.command.run")]
    copies = [text for text in runs if "/seed.txt seed.txt" in text]
    assert len(copies) == 3  # each reader reads it twice, so each has its own copy in scratch
    assert all("cp -fRL" in text and "NXF_SCRATCH=" in text for text in copies)
