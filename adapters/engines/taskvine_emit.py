"""TaskVine: a module that declares files as their hints say and puts tasks where their part is.

Files are those of the store `taskvine` (adapters/stores/listed.py), known by name: of the plan, of
the rules, of `--like RUN`. The features of nodes are those of a plan. Not run here.
"""

from __future__ import annotations

import json
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.part_module import module_of
from tracehint.adapters.learned import run_paths
from tracehint.adapters.paths import Paths, remembered_paths
from tracehint.adapters.plan import TagPlan, build_plan
from tracehint.adapters.stores.base import Gap
from tracehint.adapters.stores.listed import taskvine
from tracehint.adapters.stores.places import Places
from tracehint.hintgen.hints.model import HintFile


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The module and its data."""
    paths = Paths(files=remembered_paths(hints))
    if request.run is not None:
        run = run_paths(request.run)
        paths = Paths(files=paths.files, declared=run.files, known=run.known)
    plan = build_plan(hints, paths, directories=False, nodes=request.nodes)
    files, gaps = _declared(hints, plan) if plan.targets else ({}, {})
    made = module_of("taskvine", request, hints.plan, {"files": files})
    made.gaps = gaps
    made.remarks = [f"{len(files):,} files with a declaration. Not run here.", *made.remarks]
    made.remarks += plan.remarks()
    return made


def _declared(hints: HintFile, plan: TagPlan) -> tuple[dict[str, Any], dict[Gap, int]]:
    """Path -> how it is declared; and what TaskVine has no word for."""
    document = taskvine(Places()).document(hints, plan)
    rows = json.loads(document.text)["files"]
    return {row.pop("path"): row for row in rows}, dict(document.gaps)
