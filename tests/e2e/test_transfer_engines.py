"""Rules of one run of cwltool and Nextflow apply to the next, whose work directories have other
names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Run, record
from tests.e2e.test_more_engines import CWL, CWL_WORKFLOW, PARTS
from tests.e2e.test_nextflow import command, prepare, recording
from tests.support.cli import inside
from tests.support.engines import engine

pytestmark = [pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]


def cwl(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = factory.mktemp("cwltool")
    return _cwl(folder / "first").bundle, _cwl(folder / "second").bundle


def _cwl(work: Path) -> Run:
    """Record cwltool with its temporary directories below the run's own."""
    work.mkdir()
    for name, tool in CWL.items():
        head = {"cwlVersion": "v1.2", "class": "CommandLineTool"}
        (work / name).write_text(json.dumps(head | tool))
    (work / "wf.cwl").write_text(json.dumps(CWL_WORKFLOW))
    (work / "job.json").write_text(json.dumps({"n": 60_000, "names": PARTS}))
    options = ["--quiet", "--tmp-outdir-prefix", "o/", "--tmpdir-prefix", "t/"]
    words = [os.fspath(engine("cwltool")), *options, "--outdir", "out", "wf.cwl", "job.json"]
    return record(words, work, work.parent / f"{work.name}.trace", "--collector", "ebpf")


def nextflow(factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    work = factory.mktemp("nextflow")
    prepare(work)
    bundle = work.with_name(f"{work.name}.trace")
    return recording(factory).bundle, record(command(), work, bundle, "--collector", "ebpf").bundle


ENGINES = {"cwltool": cwl, "nextflow": nextflow}


@pytest.fixture(scope="module", params=ENGINES)
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Two runs of one workflow."""
    return ENGINES[request.param](tmp_path_factory)


@pytest.mark.parametrize("given", ["path", "graph"])
def test_rules_of_one_run_hold_on_the_next(runs: tuple[Path, Path], given: str) -> None:
    for one, other in (runs, runs[::-1]):
        words = ["hints", one, "--score", other, "--given", given, "--nodes", "8"]
        done = inside(*words, "--format", "json", cwd=one.parent)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["hits"] > 0
        assert (found["precision"], found["recall"]) == (1.0, 1.0), found["wrong"]


def test_the_summary_prints_a_work_directory_as_one_star(runs: tuple[Path, Path]) -> None:
    for run in runs:
        text = inside("analyze", run, "--nodes", "8", cwd=run.parent).stdout
        best = text.partition("Placement of the largest groups of files")[2]
        names = [w for w in best.split() if w.startswith(("o/", "t/", "work/"))]
        assert names
        for name in names:
            folders = name.split("/")[:-1]
            assert folders in (["o", "*"], ["t", "*"], ["work", "*", "*"]), text
