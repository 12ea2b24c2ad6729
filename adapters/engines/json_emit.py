"""`--workflow-engine json`: the plan for anybody's scheduler, as plain JSON.

{"schema": "tracehint.parts/1", "cluster", "strategy", "seconds": {"default", "planned"},
 "parts": [{"part": 0, "node": "node1" or null, "tasks": [names], "files": [paths]}],
 "files": [{"path", "part", "hints"}]}
"""

from __future__ import annotations

import json
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of, require_plan
from tracehint.hintgen.hints.model import HintFile


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The file, to -o or standard output."""
    plan = require_plan(hints, "json")
    nodes = nodes_of(plan, request.hosts)
    parts: dict[int, dict[str, Any]] = {}
    for number in sorted({task.part for task in plan.tasks}):
        node = nodes[number].name if number in nodes else None
        parts[number] = {"part": number, "node": node, "tasks": [], "files": []}
    for task in plan.tasks:
        parts[task.part]["tasks"].append(task.name)
    for file in plan.files:
        if file.part in parts:
            parts[file.part]["files"].append(file.path)
    data = {
        "schema": "tracehint.parts/1",
        "cluster": plan.cluster,
        "strategy": plan.strategy,
        "seconds": {"default": plan.default_seconds, "planned": plan.planned_seconds},
        "parts": list(parts.values()),
        "files": [{"path": f.path, "part": f.part, "hints": f.hints} for f in plan.files],
    }
    return Emitted(
        files={request.output: (json.dumps(data, indent=1) + "\n").encode()},
        remarks=[f"{len(plan.tasks):,} tasks in {len(parts):,} parts"],
    )
