"""Small workloads and clusters whose times can be computed by hand."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.built import built
from tracehint.analyzer.predict import simulator
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.model import (
    COMPUTE,
    READ,
    WRITE,
    Placement,
    SimulatedRun,
    Workload,
    default,
)
from tracehint.analyzer.predict.simulator import Scenario, build, simulate

MB = 1_000_000
SOURCES = Path(__file__).parents[2] / "analyzer" / "predict" / "engine"
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

# For plans of measured runs: a file takes longer over the link than a task may vary by chance, so
# that the plan pays regardless of chance.
SLOW = 'base = "moosefs"\nname = "slow"\n[nodes]\nlink_mbit = {mbit}\n'

# Links of 10 MB/s, no other costs, files placed round robin over the nodes.
PLAIN = """
[nodes]
count = {nodes}
cores = {cores}
link_mbit = 80
link_efficiency = 1
{node}
[store]
chunk_mb = 1000
open_ms = 0
create_ms = 0
close_ms = 0
lookup_ms = 0
latency_ms = 0
small_kb = 0
request_ms = 0
client_cache = false
{store}
[model]
error = 0
[scheduler]
steal = false
{rest}
"""


def plain(
    nodes: int = 2, cores: int = 1, *, node: str = "", store: str = "", rest: str = ""
) -> Cluster:
    """Return a cluster of PLAIN; additional lines replace those with the same key."""
    lines: dict[str, str] = {}
    text = PLAIN.format(nodes=nodes, cores=cores, node=node, store=store, rest=rest)
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line if not line.startswith("[[") else f"{line}{len(lines)}"
            lines[section] = line
        elif line.strip():
            lines[f"{section}{line.partition('=')[0].strip()}"] = line
    return parse_cluster("\n".join(lines.values()), "plain.toml")


@dataclass
class Task:
    """A task of a test workload: operations in order, e.g. ("read", "a") or ("compute", 2)."""

    name: str
    steps: Sequence[tuple[str, object]]
    type: str = "task"


Users = dict[str, list[int]]


def _operations(
    tasks: Sequence[Task], sizes: dict[str, int]
) -> tuple[list[tuple[Any, ...]], Users, Users]:
    """Return a row per step, and by file the numbers of the tasks that write and that read it."""
    files = {name: number for number, name in enumerate(sizes)}
    rows: list[tuple[Any, ...]] = []
    writers: Users = {}
    readers: Users = {}
    for number, task in enumerate(tasks):
        for kind, what in task.steps:
            if kind == "compute":
                rows.append((number, COMPUTE, -1, 0, 0, 0, float(what)))  # type: ignore[arg-type]
                continue
            name, start, length = what if isinstance(what, tuple) else (what, 0, sizes[str(what)])
            (readers if kind == "read" else writers).setdefault(str(name), []).append(number)
            code = READ if kind == "read" else WRITE
            rows.append((number, code, files[str(name)], start, length, length, 0.0))
    return rows, writers, readers


def workload(tasks: Sequence[Task], sizes: dict[str, int]) -> Workload:
    """Return the workload of these tasks; a reader waits for all writers of its files.

    A step ("read", "a") transfers the whole file, ("read", ("a", start, length)) a range.
    """
    files = list(sizes)
    rows, writers, readers = _operations(tasks, sizes)
    pairs = sorted({(w, r) for f, ws in writers.items() for w in ws for r in readers.get(f, ())})
    pairs = [(a, b) for a, b in pairs if a != b]
    types = list(dict.fromkeys(task.type for task in tasks))
    task, kind, file, start, length, moved, seconds = (
        zip(*rows, strict=True) if rows else ((), (), (), (), (), (), ())
    )
    begin = np.searchsorted(np.array(task, np.int64), np.arange(len(tasks) + 1))
    before = np.array([a for a, _ in pairs], np.int64)
    return Workload(
        task_id=np.arange(len(tasks)),
        names=[t.name for t in tasks],
        type=np.array([types.index(t.type) for t in tasks], np.int32),
        type_names=types,
        cores=np.ones(len(tasks), np.int32),
        op_begin=begin.astype(np.int64),
        op_kind=np.array(kind, np.int32),
        op_file=np.array(file, np.int32),
        op_start=np.array(start, np.int64),
        op_length=np.array(length, np.int64),
        op_bytes=np.array(moved, np.int64),
        op_seconds=np.array(seconds, np.float64),
        busy=np.ones(len(tasks)),
        dep_begin=np.searchsorted(before, np.arange(len(tasks) + 1)).astype(np.int64),
        dep=np.array([b for _, b in pairs], np.int32),
        size=np.array(list(sizes.values()), np.int64),
        produced=np.array([f in writers for f in files], np.int32),
        file_id=np.arange(len(files)),
    )


def run(
    work: Workload, cluster: Cluster, placement: Placement | None = None, seed: int = 1
) -> SimulatedRun:
    """Simulate one run, with its tasks."""
    need_engine()
    chosen = placement or default(work, cluster)
    machine = build(cluster, seed, chosen.scheduler, chosen.steal)
    return simulate(work, [Scenario(machine, chosen, True)])[0]


def on(*nodes: int) -> Placement:
    """Return a placement with each task on this node."""
    return Placement("plan", plan=np.array(nodes, np.int32), scheduler="plan")


def need_engine() -> None:
    """Skip the test if the engine is not built."""
    if not any(p.is_file() for p in [SOURCES.parent / "bin" / simulator.PROGRAM]):
        try:
            simulator.find_program()
        except simulator.MissingDependencyError as error:
            pytest.skip(str(error))


def build_engine(folder: Path, *flags: str) -> Path:
    """Build the program with warnings as errors."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    return built(folder / simulator.PROGRAM, compiler, *FLAGS, *flags, *sorted(SOURCES.glob("*.c")))
