"""A planning as JSON (schemas/plan.schema.json), and as the plan of a hint file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from tracehint.hintgen.hints.plan import Plan
from tracehint.hintgen.hints.planjson import plan_to_json
from tracehint.hintgen.plan.judge import without_scheduler
from tracehint.hintgen.plan.model import Estimate, Planning
from tracehint.hintgen.plan.site_cut import sites_of
from tracehint.hintgen.plan.strategies.registry import DEFAULT
from tracehint.hintgen.plan.told import files_of, tasks_of

SCHEMA = "tracehint.plan/1"


def to_json(planning: Planning) -> dict[str, Any]:
    """The object that `plan --format json` prints."""
    plan, notes = chosen_plan(planning)
    notes.append(f"the best was improved by moves, in at most {planning.budget:,} simulated runs")
    alone = without_scheduler(planning.estimates)
    return {
        "schema": SCHEMA,
        "chosen": planning.chosen,
        "hints_alone": alone.name if alone else None,
        "nodes": planning.problem.cluster.count,
        "strategies": [_strategy(e, _sites(planning)) for e in planning.estimates],
        "left_out": [{"name": n, "reason": why} for n, why in planning.left_out],
        "simulated_runs": planning.simulated,
        "guessed": round(planning.problem.work.guessed, 6),
        "assumptions": [*planning.problem.work.notes, *planning.notes, *notes],
        **plan_to_json(plan),
    }


def _sites(planning: Planning) -> bool:
    return bool(sites_of(planning.problem.cluster).any())


def _strategy(e: Estimate, sites: bool) -> dict[str, Any]:
    return {
        "name": e.name,
        "text": e.text,
        "seconds": e.seconds,
        "seconds_low": e.low,
        "seconds_high": e.high,
        "network_bytes": round(e.network_bytes),
        "site_bytes": round(e.site_bytes) if sites else None,
        "refused": e.refused,
        "runs": len(e.runs),
        "scheduler": e.scheduler,
    }


def chosen_plan(planning: Planning) -> tuple[Plan, list[str]]:
    """The plan of the chosen strategy, and notes on what it could not say."""
    best, default = planning.estimate(planning.chosen), planning.estimate(DEFAULT)
    draft, problem = best.draft, planning.problem
    files, notes = files_of(draft, problem)
    return Plan(
        cluster=problem.cluster.name,
        strategy=planning.chosen,
        default_seconds=default.seconds,
        planned_seconds=best.seconds,
        default_bytes=default.network_bytes,
        planned_bytes=best.network_bytes,
        parts=draft.parts,
        steal=draft.placement.steal or "any",
        tasks=tuple(tasks_of(draft, problem)),
        files=tuple(files),
    ), notes


def for_hint_file(planning: Planning) -> tuple[Plan, list[str]]:
    """The same without tasks of one name in several parts: nobody could tell them apart."""
    plan, notes = chosen_plan(planning)
    parts: dict[str, set[int]] = {}
    for task in plan.tasks:
        parts.setdefault(task.name, set()).add(task.part)
    kept = {task.name: task for task in plan.tasks if len(parts[task.name]) == 1 and task.name}
    left = Counter(task.name in kept for task in plan.tasks)[False]
    if left:
        notes.append(f"{left} tasks share their name with others elsewhere: not in the plan")
    return replace(plan, tasks=tuple(kept.values())), notes
