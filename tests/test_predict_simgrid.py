"""The same graphs, placements and links in SimGrid: times agree within 5 %."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.predicting import MB, Task, plain, run, workload
from tracehint.analyzer.predict.model import READ, WRITE, Placement, Workload, law

PYTHON = "/usr/bin/python3"
SCRIPT = Path(__file__).parent / "support" / "simgrid_run.py"
RATE = 10 * MB


def graph(kind: str, nodes: int, seed: int) -> Workload:
    """Build a random layered graph, chains, or a fan-out with a fan-in."""
    random = np.random.default_rng(seed)
    sizes = {f"in{i}": int(random.integers(1, 20)) * MB for i in range(nodes)}
    tasks = []
    width = 2 * nodes
    for i in range(60):
        reads = [f"in{i % nodes}"]
        if kind == "layers" and i >= width:
            low = i // width * width - width
            reads = [f"out{int(k)}" for k in random.integers(low, low + width, 3)]
        if kind == "chains" and i >= nodes:
            reads = [f"out{i - nodes}"]
        if kind == "fans" and i >= 1:
            reads = ["out0"] if i < 59 else [f"out{k}" for k in range(1, 59)]
        sizes[f"out{i}"] = int(random.integers(1, 20)) * MB
        steps: list[tuple[str, object]] = [("read", name) for name in dict.fromkeys(reads)]
        steps += [("compute", float(random.uniform(0, 2))), ("write", f"out{i}")]
        tasks.append(Task(f"t{i}", steps))
    return workload(tasks, sizes)


def described(work: Workload, nodes: int, home: list[int], rows: Any) -> dict[str, Any]:
    """Return the script's input: the tasks of each node in the order in which they ran here."""
    after: list[list[int]] = [[] for _ in range(work.tasks)]
    for task in range(work.tasks):
        for child in work.dep[work.dep_begin[task] : work.dep_begin[task + 1]]:
            after[child].append(task)
    tasks = []
    for task in range(work.tasks):
        node, steps = int(rows[task, 0]), []
        for op in range(work.op_begin[task], work.op_begin[task + 1]):
            at = home[work.op_file[op]]
            if work.op_kind[op] in (READ, WRITE) and at != node:
                ends = (at, node) if work.op_kind[op] == READ else (node, at)
                steps.append(["move", *ends, int(work.op_bytes[op])])
            elif work.op_kind[op] not in (READ, WRITE):
                steps.append(["sleep", float(work.op_seconds[op])])
        tasks.append({"after": after[task], "steps": steps})
    order = np.lexsort((rows[:, 4], rows[:, 3]))
    nodes_ = [[int(t) for t in order if int(rows[t, 0]) == node] for node in range(nodes)]
    return {"rate": RATE, "hosts": nodes, "nodes": nodes_, "tasks": tasks}


@pytest.mark.full
@pytest.mark.parametrize("kind", ["layers", "chains", "fans"])
@pytest.mark.parametrize("nodes", [4, 16])
def test_times_agree(kind: str, nodes: int) -> None:
    there = subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True, check=False)
    if there.returncode != 0:
        pytest.skip("the system's Python has no simgrid (python3-simgrid)")
    work = graph(kind, nodes, 7)
    home = [i % nodes for i in range(work.files)]
    place = Placement(
        "fixed", law=np.full(work.files, law("node"), np.int32), target=np.array(home, np.int32)
    )
    found = run(work, plain(nodes, 1), place)
    data = json.dumps(described(work, nodes, home, found.tasks))
    done = subprocess.run(
        [PYTHON, SCRIPT],
        input=data,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    ends = np.array(json.loads(done.stdout))
    assert found.tasks is not None
    assert found.seconds == pytest.approx(ends.max(), rel=0.05)
    assert found.tasks[:, 4] == pytest.approx(ends, rel=0.05)
