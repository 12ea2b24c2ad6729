"""One real run: its analysis and the truth from strace and the workflow definition."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tracehint
from tests.e2e.real.kernel import Kernel
from tests.e2e.real.lines import CALLS
from tests.e2e.real.model import Job, Workflow
from tests.e2e.real.truth import Ranges, Truth, Use, establish
from tests.e2e.support import Run, analyze
from tests.support.byte_ranges import union
from tests.support.cli import TRACEHINT
from tests.support.patience import PATIENCE_S
from tracehint.analyzer.model import Options

NODES = 4  # of the cost model


@dataclass
class Observed:
    """The analysis in the terms of the truth: jobs by name, files by path below the folder."""

    uses: dict[Use, Ranges]
    edges: dict[tuple[str, str, str], int]
    labels: dict[tuple[str, int], set[str]]
    primary: dict[tuple[str, int], str]
    jobs: dict[str, str]  # task id -> job


@dataclass
class Result:
    """A run with its truth."""

    workflow: Workflow
    run: Run
    observed: Observed
    truth: Truth


def missing(workflow: Workflow) -> list[str]:
    """Return the missing programs that a run needs."""
    return [p for p in ("strace", *workflow.needs) if not shutil.which(p, path=_path())]


def _path() -> str:
    return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


def trace(workflow: Workflow, folder: Path) -> Result:
    """Run the workflow once below `folder`, recorded by eBPF, with strace around everything."""
    work, log, bundle = folder / "work", folder / "strace.log", folder / "run.trace"
    work.mkdir()
    workflow.prepare(work)
    sizes = {str(p.relative_to(work)): p.stat().st_size for p in work.rglob("*") if p.is_file()}
    command = [
        "strace", "-f", "-ttt", "-y", "-s", "600", "--seccomp-bpf", "-o", log, "-e",
        f"trace={CALLS}", *TRACEHINT, "record", "--quiet", "--collector", "ebpf", "-o", bundle,
        "--", *workflow.command,
    ]  # fmt: skip  # a table
    done = subprocess.run(
        [os.fspath(c) for c in command],
        cwd=work,
        env={**os.environ, "PATH": _path()},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    run = analyze(bundle, "--nodes", str(NODES))
    jobs = workflow.jobs()
    truth = establish(Kernel(work, sizes).play(log), jobs, Options(), NODES)
    return Result(workflow, run, observe(run, jobs), truth)


def accesses(run: Run, names: dict[str, str]) -> dict[Use, Ranges]:
    """Return the bytes that each job read and wrote, from the bundle's individual records."""
    loaded = tracehint.load(run.bundle)
    paths = {f["file"]: f["path"].decode() for f in loaded.files.to_pylist()}
    spans: dict[Use, set[tuple[int, int]]] = {}
    for row in loaded.accesses.to_pylist():
        path, job = paths.get(row["file"]), names.get(f"t{row['task']}")
        if job is None or path is None or path.startswith("/") or row["op"] == "truncate":
            continue
        pieces = range(row["count"])
        starts = [row["start"] + k * row["stride"] for k in pieces]
        spans.setdefault((job, path, row["op"]), set()).update(
            (at, at + row["length"]) for at in starts
        )
    return {use: union(pieces) for use, pieces in spans.items()}


def observe(run: Run, jobs: list[Job]) -> Observed:
    """Convert the analysis to the terms of the truth, without files outside the folder."""
    names = {t: job for t, task in run.tasks.items() if (job := _job(task, jobs))}
    labels: dict[tuple[str, int], set[str]] = {}
    primary: dict[tuple[str, int], str] = {}
    here = {k: f for k, f in run.files.items() if _inside(f)}
    for file in here.values():
        key = (file["path"], int(file["version"]))
        labels[key] = {p["pattern"] for p in file["patterns"]}
        for label in file["patterns"]:
            if label["primary"]:
                primary[key] = label["pattern"]
    edges: dict[tuple[str, str, str], int] = {}
    for edge in run.analysis["edges"]:
        if edge["file"] in here:
            ends = [names.get(edge[end], edge[end]) for end in ("producer", "consumer")]
            where = (ends[0], here[edge["file"]]["path"], ends[1])
            edges[where] = edges.get(where, 0) + edge["bytes"]
    return Observed(accesses(run, names), edges, labels, primary, names)


def _inside(file: dict[str, Any]) -> bool:
    return not file["path"].startswith("/") and file["role"] != "software"


def _job(task: dict[str, Any], jobs: list[Job]) -> str | None:
    """Return the job of an observed task; None for an engine or without a unique match."""
    if task["engine"]:
        return None
    hits = [j.name for j in jobs if j.marker in task["command"] or j.name == task["name"]]
    return hits[0] if len(hits) == 1 else None
