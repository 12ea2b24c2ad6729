"""A Python module for the user's program, and beside it a JSON file with tasks and parts.

The module's text is the same in every output; names stand in the JSON file alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of
from tracehint.errors import UsageError
from tracehint.hintgen.hints.plan import Plan
from tracehint.version import __version__

_HERE = Path(__file__).parent


def module_of(
    engine: str, request: EmitRequest, plan: Plan | None, more: Mapping[str, Any] | None = None
) -> Emitted:
    """The module's text is `ENGINE_parts.py.txt` in this folder; `more`: further data.

    Raises UsageError for a name that Python cannot import.
    """
    usual = "tracehint_parts.py"
    output = request.output or Path(usual)
    if not output.stem.isidentifier() or output.suffix != ".py":
        raise UsageError(f"{output.name[:80]!r} is no name of a Python module", f"Use -o {usual}.")
    tasks = plan.tasks if plan is not None else ()
    nodes = nodes_of(plan, request.hosts) if plan is not None else {}
    parts = sorted({task.part for task in tasks})
    data = {
        "nodes": {str(part): nodes[part].name if part in nodes else None for part in parts},
        "tasks": {task.name: task.part for task in tasks},
        **(more or {}),
    }
    head = f"# tracehint {__version__}\n".encode()
    return Emitted(
        files={
            output: head + (_HERE / f"{engine}_parts.py.txt").read_bytes(),
            output.with_suffix(".json"): (json.dumps(data, indent=1) + "\n").encode(),
        },
        remarks=[
            f"{len(tasks):,} tasks in {len(parts):,} parts. Next: import {output.stem} in the "
            "program; its first lines tell how."
        ],
    )
