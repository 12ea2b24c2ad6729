"""Convert a planning to JSON (docs/reference/plan.schema.json) or to the plan of a hint file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from tracehint.analyzer.predict.model import law
from tracehint.hintgen.hints.model import (
    FilePart,
    Plan,
    PlanBytes,
    PlanSeconds,
    Steal,
    TaskPart,
    sayable,
)
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.vocabulary import group
from tracehint.hintgen.plan.drafts import DEFAULT
from tracehint.hintgen.plan.model import Draft, Estimate, Planning, Problem
from tracehint.hintgen.plan.objective import without_scheduler
from tracehint.hintgen.plan.site_cut import sites_of
from tracehint.schemas.fields import Amount, Count, Positive, Share
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


def tasks_of(draft: Draft, problem: Problem) -> list[TaskPart]:
    """Return the tasks that are bound to a part, in the order of the workload."""
    if draft.part is None:
        return []
    names = problem.work.names
    return [TaskPart(names[i], int(draft.part[i])) for i in np.flatnonzero(draft.part >= 0)]


def files_of(draft: Draft, problem: Problem) -> tuple[list[FilePart], list[str]]:
    """Return the files with hints, each path once, and notes on files that cannot be expressed."""
    paths = _paths(problem.analysis, problem.work.file_id.tolist())
    values = draft.values if draft.values is not None else _values(draft, problem)
    target, kinds = draft.placement.target, draft.placement.law
    found: dict[bytes, FilePart] = {}
    outside = 0
    for at, hints in enumerate(values):
        if not hints:
            continue
        path = paths[at]
        if not sayable(path):
            outside += 1
            continue
        pinned = draft.part is not None and kinds is not None and kinds[at] == law("node")
        part = int(target[at]) if pinned and target is not None else None
        found.setdefault(path, FilePart(to_text(path), part, hints))
    notes = [f"{plural(outside, 'file')} outside the data root without a hint"] if outside else []
    return list(found.values()), notes


def _paths(analysis: Analysis, files: list[int]) -> list[bytes]:
    known = dict(zip(*analysis.files.select(["file", "path"]).to_pydict().values(), strict=True))
    return [known.get(file) or b"" for file in files]


def _values(draft: Draft, problem: Problem) -> list[dict[str, str]]:
    """Return hints by file from the arrays of the placement; inputs have some only if staged."""
    placement, count = draft.placement, problem.work.files
    found: list[dict[str, str]] = [{} for _ in range(count)]
    hinted = np.ones(count, bool) if problem.staged else problem.work.produced > 0
    if placement.law is not None and placement.target is not None:
        for at in np.flatnonzero(hinted & (placement.law == law("local"))):
            found[at]["DP"] = "local"
        nodes = problem.cluster.count
        for at in np.flatnonzero(hinted & (placement.law == law("node"))):
            if placement.target[at] < nodes:  # larger: the separate machine of the inputs
                found[at]["DP"] = f"collocation|{group(int(placement.target[at]))}"
        for at in np.flatnonzero(hinted & (placement.law == law("group"))):
            found[at]["DP"] = f"collocation|gather-{int(placement.target[at])}"
    elif placement.law is not None:
        for at in np.flatnonzero(hinted & (placement.law == law("local"))):
            found[at]["DP"] = "local"
    if placement.copies is not None:
        for at in np.flatnonzero(hinted & (placement.copies > 1)):
            found[at]["Replication"] = str(int(placement.copies[at]))
    return found


@dataclass(frozen=True)
class StrategyRow:
    """Simulation result of one strategy."""

    name: str
    text: str
    seconds: Amount
    seconds_low: Amount
    seconds_high: Amount
    network_bytes: Count
    site_bytes: Annotated[Count | None, Meta(description="Of them between sites; null: no sites.")]
    refused: Annotated[
        str | None, Meta(description="Why it is rejected; null: it could be chosen.")
    ]
    runs: Annotated[
        Positive, Meta(description="Simulated runs; fewer where the first one was far behind.")
    ]
    scheduler: Annotated[
        str | None,
        Meta(description="Where tasks must start: most-input-bytes, plan; null: anywhere."),
    ]


@dataclass(frozen=True)
class LeftOut:
    """A strategy that was not simulated."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class PlanDocument(Plan):
    """Output of `tracehint plan WORKFLOW --cluster C --format json`, in seconds and bytes. Unknown
    values are null. Later versions only add fields."""

    chosen: Annotated[str, Meta(description='Name of a strategy; "default": no hint pays.')]
    hints_alone: Annotated[
        str | None,
        Meta(
            description="The best strategy that starts no task anywhere in particular; null: none "
            "beats the default."
        ),
    ]
    nodes: Positive
    strategies: tuple[StrategyRow, ...]
    left_out: tuple[LeftOut, ...]
    simulated_runs: Count
    guessed: Annotated[
        Share,
        Meta(
            description="Share of the tasks without times, or of the files without sizes if larger."
        ),
    ]
    assumptions: tuple[str, ...]
    schema: Literal["tracehint.plan/1"] = "tracehint.plan/1"


def to_json(planning: Planning) -> dict[str, Any]:
    """Return the object that `plan --format json` prints."""
    plan, notes = chosen_plan(planning)
    notes.append(f"the best was improved by moves, in at most {planning.budget:,} simulated runs")
    alone = without_scheduler(planning.estimates)
    document = PlanDocument(
        **vars(plan),
        chosen=planning.chosen,
        hints_alone=alone.name if alone else None,
        nodes=planning.problem.cluster.count,
        strategies=tuple(_strategy(e, _sites(planning)) for e in planning.estimates),
        left_out=tuple(LeftOut(name, why) for name, why in planning.left_out),
        simulated_runs=planning.simulated,
        guessed=round(planning.problem.work.guessed, 6),
        assumptions=(*planning.problem.work.notes, *planning.notes, *notes),
    )
    data: dict[str, Any] = json.loads(json.dumps(asdict(document)))  # lists, as in the file
    return {"schema": document.schema, **data}


def _sites(planning: Planning) -> bool:
    return bool(sites_of(planning.problem.cluster).any())


def _strategy(e: Estimate, sites: bool) -> StrategyRow:
    return StrategyRow(
        name=e.name,
        text=e.text,
        seconds=e.seconds,
        seconds_low=e.low,
        seconds_high=e.high,
        network_bytes=round(e.network_bytes),
        site_bytes=round(e.site_bytes) if sites else None,
        refused=e.refused,
        runs=len(e.runs),
        scheduler=e.scheduler,
    )


def chosen_plan(planning: Planning) -> tuple[Plan, list[str]]:
    """Return the plan of the chosen strategy, and notes on what it cannot express."""
    best, default = planning.estimate(planning.chosen), planning.estimate(DEFAULT)
    draft, problem = best.draft, planning.problem
    files, notes = files_of(draft, problem)
    idle = draft.placement.steal if draft.part is not None else None
    steal: Steal = "unplanned" if idle == "unplanned" else "any"
    return Plan(
        cluster=problem.cluster.name,
        strategy=planning.chosen,
        seconds=PlanSeconds(default.seconds, best.seconds),
        network_bytes=PlanBytes(default.network_bytes, best.network_bytes),
        parts=draft.parts,
        steal=steal,
        tasks=tuple(tasks_of(draft, problem)),
        files=tuple(files),
    ), notes


def for_hint_file(planning: Planning) -> tuple[Plan, list[str]]:
    """Return the chosen plan without tasks whose name occurs in several parts (ambiguous)."""
    plan, notes = chosen_plan(planning)
    parts: dict[str, set[int]] = {}
    for task in plan.tasks:
        parts.setdefault(task.name, set()).add(task.part)
    kept = {task.name: task for task in plan.tasks if len(parts[task.name]) == 1 and task.name}
    left = Counter(task.name in kept for task in plan.tasks)[False]
    if left:
        notes.append(
            f"not in the plan: {plural(left, 'task')} of the same name as others elsewhere"
        )
    return replace(plan, tasks=tuple(kept.values())), notes
