"""Small workflows as WfFormat instances, built by hand, and their plans by `plan`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.cli import inside

MB = 1_000_000
CLUSTER = """
base = "moosefs"
name = "rig"
[nodes]
count = {nodes}
cores = 4
link_mbit = 200
"""
Made = tuple[str, str, Sequence[str], Sequence[str], float]  # name, type, reads, writes, seconds


def instance(tasks: Sequence[Made], sizes: dict[str, int]) -> dict[str, Any]:
    """Return a WfFormat 1.5 instance."""
    writer = {name: task[0] for task in tasks for name in task[3]}
    listed = [
        {
            "name": name,
            "id": name,
            "parents": sorted({writer[f] for f in reads if f in writer} - {name}),
            "children": [],
            "inputFiles": list(reads),
            "outputFiles": list(writes),
        }
        for name, _, reads, writes, _ in tasks
    ]
    times = [
        {"id": name, "runtimeInSeconds": seconds, "command": {"program": kind}}
        for name, kind, _, _, seconds in tasks
    ]
    return {
        "name": "made",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {
                "tasks": listed,
                "files": [{"id": f, "sizeInBytes": size} for f, size in sizes.items()],
            },
            "execution": {"makespanInSeconds": 1, "executedAt": "2024-01-01", "tasks": times},
        },
    }


def pairs(count: int, size: int = 20 * MB, seconds: float = 1.0) -> dict[str, Any]:
    """Return chains of three tasks: each reads what the previous one wrote."""
    tasks: list[Made] = []
    sizes: dict[str, int] = {}
    for i in range(count):
        for step, kind in enumerate(("make", "turn", "pack")):
            reads = [f"{['made', 'turned'][step - 1]}_{i}.dat"] if step else []
            writes = [f"{('made', 'turned', 'packed')[step]}_{i}.dat"]
            tasks.append((f"{kind}_{i}", kind, reads, writes, seconds))
            sizes |= dict.fromkeys([*reads, *writes], size)
    return instance(tasks, sizes)


def star(count: int, size: int = 2 * MB) -> dict[str, Any]:
    """One task cuts an input, `count` tasks process a piece with a shared index, one joins."""
    pieces = [f"piece_{i}.fa" for i in range(count)]
    hits = [f"hit_{i}.sam" for i in range(count)]
    tasks: list[Made] = [("index", "index", ["ref.fa"], ["ref.idx"], 1.0)]
    tasks.append(("cut", "cut", ["reads.fa"], pieces, 1.0))
    tasks += [(f"align_{i}", "align", ["ref.idx", pieces[i]], [hits[i]], 1.0) for i in range(count)]
    tasks.append(("join", "join", hits, ["all.sam"], 1.0))
    names = [*pieces, *hits, "all.sam"]
    sizes = dict.fromkeys(names, size) | dict.fromkeys(["ref.fa", "ref.idx", "reads.fa"], 20 * MB)
    return instance(tasks, sizes)


def write(folder: Path, data: dict[str, Any], nodes: int = 5, name: str = "wf.json") -> Path:
    """Write the instance to a file, next to a cluster file rig.toml."""
    (folder / "rig.toml").write_text(CLUSTER.format(nodes=nodes))
    path = folder / name
    path.write_text(json.dumps(data))
    return path


def planned(workflow: Path, *words: str) -> dict[str, Any]:
    """Return the JSON of `plan` on rig.toml."""
    folder = workflow.parent
    done = inside(
        "plan", workflow, "--cluster", folder / "rig.toml", "--format", "json", *words, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
