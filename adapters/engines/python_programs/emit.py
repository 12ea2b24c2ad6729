"""A Python module for the user's program, with a JSON file of tasks and parts next to it.

The module's text is the same in every output; only the JSON file contains names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.planned import nodes_of, require_plan
from tracehint.adapters.paths import Paths, remembered_paths, run_paths
from tracehint.adapters.plan import TagPlan, build_plan
from tracehint.adapters.stores.base import Gap
from tracehint.adapters.stores.document_stores import taskvine
from tracehint.adapters.stores.places import Places
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile, Plan
from tracehint.schemas.wording import plural
from tracehint.version import __version__

_HERE = Path(__file__).parent


def module_of(
    engine: str, request: EmitRequest, plan: Plan | None, more: Mapping[str, Any] | None = None
) -> Emitted:
    """Return module `ENGINE_parts.py.txt` of this folder with its JSON data; `more`: further data.

    Raises UsageError for a name that Python cannot import.
    """
    usual = "tracehint_parts.py"
    output = request.output or Path(usual)
    if not output.stem.isidentifier() or output.suffix != ".py":
        raise UsageError(
            f"{output.name[:80]!r} is not a name of a Python module", f"Use -o {usual}."
        )
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
            f"{plural(len(tasks), 'task')} in {plural(len(parts), 'part')}. Next: "
            f"import {output.stem} in the program; its first lines show how."
        ],
    )


# TaskVine: a module that declares files according to hints and places tasks by their parts.
#
# File declarations come from the store `taskvine` (adapters/stores/document_stores.py), for files
# of the plan, the rules and `--like RUN`. Node features are those of a plan. Not run with TaskVine.


def emit_taskvine(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the module and its data."""
    paths = Paths(files=remembered_paths(hints))
    if request.run is not None:
        run = run_paths(request.run)
        paths = Paths(files=paths.files, declared=run.files, known=run.known)
    plan = build_plan(hints, paths, directories=False, nodes=request.nodes)
    files, gaps = _declare_files(hints, plan) if plan.targets else ({}, {})
    made = module_of("taskvine", request, hints.plan, {"files": files})
    made.gaps = gaps
    made.remarks = [
        f"{plural(len(files), 'file')} with a declaration. Not run here.",
        *made.remarks,
    ]
    made.remarks += plan.remarks()
    return made


def _declare_files(hints: HintFile, plan: TagPlan) -> tuple[dict[str, Any], dict[Gap, int]]:
    """Return the declaration of each path, and the hints that TaskVine cannot express."""
    document = taskvine(Places()).document(hints, plan)
    rows = json.loads(document.text)["files"]
    return {row.pop("path"): row for row in rows}, dict(document.gaps)


# Dask: a module that starts each task of a plan on the workers of its part, and its data.


def emit_dask(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the module and its data."""
    return module_of("dask", request, require_plan(hints, "dask"))


# Parsl: a module that gives each part of a plan an executor, and a JSON file with the tasks.


def emit_parsl(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the module and its data."""
    return module_of("parsl", request, require_plan(hints, "parsl"))
