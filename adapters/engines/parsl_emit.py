"""Parsl: a module that gives each part of a plan an executor, and a JSON file with the tasks.

The module's text is the same in every output; names stand in the JSON file alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of, require_plan
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.version import __version__

MODULE = Path(__file__).with_name("parsl_parts.py.txt")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The module and its data."""
    plan = require_plan(hints, "parsl")
    output = request.output or Path("tracehint_parts.py")
    if not output.stem.isidentifier() or output.suffix != ".py":
        raise UsageError(
            f"{output.name[:80]!r} is no name of a Python module", "Use -o tracehint_parts.py."
        )
    nodes = nodes_of(plan, request.hosts)
    parts = sorted({task.part for task in plan.tasks})
    data = {
        "nodes": {str(part): nodes[part].name if part in nodes else None for part in parts},
        "tasks": {task.name: task.part for task in plan.tasks},
    }
    head = f"# tracehint {__version__}\n".encode()
    return Emitted(
        files={
            output: head + MODULE.read_bytes(),
            output.with_suffix(".json"): (json.dumps(data, indent=1) + "\n").encode(),
        },
        remarks=[
            f"{len(plan.tasks):,} tasks in {len(parts):,} parts, an executor each. Next: import "
            f"{output.stem} in the program; its first lines tell how."
        ],
    )
