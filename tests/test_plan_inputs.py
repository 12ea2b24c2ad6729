"""The contract of `plan WORKFLOW --learned RUN --cluster C --format json` for each way to declare a
workflow: tasks with its own names, parts, files; 60 chains from a run of 12."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.planning import pairs, planned, write
from tests.support.predicting import need_engine

LEARNED, WANTED = 12, 60
STEPS = (("make", "", "made"), ("turn", "made", "turned"), ("pack", "turned", "packed"))


def wfformat(folder: Path) -> Path:
    data = pairs(WANTED)
    del data["workflow"]["specification"]["files"], data["workflow"]["execution"]
    path = folder / "next.json"
    path.write_text(json.dumps(data))
    return path


def makeflow(folder: Path) -> Path:
    lines = []
    for i in range(WANTED):
        for kind, before, after in STEPS:
            source = f"{before}_{i}.dat" if before else ""
            lines += [f"{after}_{i}.dat: {source}", f"\t./{kind} {source} > {after}_{i}.dat", ""]
    path = folder / "next.makeflow"
    path.write_text("\n".join(lines))
    return path


def pegasus(folder: Path) -> Path:
    jobs: list[dict[str, Any]] = []
    after_each = []
    for i in range(WANTED):
        for step, (kind, before, after) in enumerate(STEPS):
            uses = [{"lfn": f"{after}_{i}.dat", "type": "output"}]
            uses += [{"lfn": f"{before}_{i}.dat", "type": "input"}] if before else []
            jobs.append(
                {"type": "job", "id": f"{kind}_{i}", "name": kind, "arguments": [], "uses": uses}
            )
            if step:
                parent = f"{STEPS[step - 1][0]}_{i}"
                after_each.append({"id": parent, "children": [f"{kind}_{i}"]})
    path = folder / "workflow.yml"
    head = 'x-pegasus: {apiLang: python}\npegasus: "5.0"\nname: next\njobs:\n'
    listed = "".join(f"- {json.dumps(job)}\n" for job in jobs)
    waits = "".join(f"- {json.dumps(row)}\n" for row in after_each)
    path.write_text(f"{head}{listed}jobDependencies:\n{waits}")
    return path


def snakemake(folder: Path) -> Path:
    """What `snakemake --detailed-summary` prints before anything has run."""
    lines = ["output_file\tdate\trule\tlog-file(s)\tinput-file(s)\tshellcmd"]
    for i in range(WANTED):
        for kind, before, after in STEPS:
            source = f"{before}_{i}.dat" if before else ""
            lines.append(f"{after}_{i}.dat\t-\t{kind}\t\t{source}\t{kind} {source}")
    path = folder / "summary.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def recorded(folder: Path) -> Path:
    return write(folder, pairs(WANTED), name="recorded.json")


@pytest.mark.slow
@pytest.mark.parametrize("declare", [wfformat, makeflow, pegasus, snakemake, recorded])
def test_sixty_chains_from_a_run_of_twelve(declare: Callable[[Path], Path], tmp_path: Path) -> None:
    need_engine()
    write(tmp_path, pairs(LEARNED), name="small.json")
    path = declare(tmp_path)
    data = planned(path, "--learned", "small.json")
    assert data["seconds"]["planned"] < data["seconds"]["default"], "sizes and times were learned"
    assert all(row["network_bytes"] is not None for row in data["strategies"])
    chosen = [row for row in data["strategies"] if row["name"] == data["chosen"]]
    assert len(chosen) == 1 and chosen[0]["refused"] is None
    paths = {row["path"] for row in data["files"]}
    assert {f"turned_{i}.dat" for i in range(WANTED)} <= paths
    assert all(row["hints"] for row in data["files"])
    assert all(0 <= row["part"] < data["parts"] for row in data["tasks"])
    assert data["parts"] == 0 or len(data["tasks"]) > 0
    names = {row["name"] for row in data["tasks"]}
    if declare in (wfformat, recorded) and names:
        assert names <= {f"{kind}_{i}" for kind, _, _ in STEPS for i in range(WANTED)}
