"""The hints that are learned file by file, as `tracehint hints` gives them."""

from __future__ import annotations

from dataclasses import replace

from tracehint.hintgen.placed import placement_of
from tracehint.hintgen.plan.errors import UnavailableError
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import finished

MAX_FILES = 50_000  # matching rules takes about a second for so many, many rules ten times that


def placed(problem: Problem) -> list[Draft]:
    """With tasks that start where most of their input lies."""
    values = _values(problem)
    if not any(values):
        return []
    found = placement_of(values, problem.work, "per-file")
    return [Draft("per-file", finished(problem, found), values=values)]


def alone(problem: Problem) -> list[Draft]:
    """With the cluster's own scheduler."""
    return [
        replace(draft, name="per-file-only", placement=replace(draft.placement, scheduler=None))
        for draft in placed(problem)
    ]


def _values(problem: Problem) -> list[dict[str, str]]:
    """The hints by file, of those that can be told anything. Raises UnavailableError."""
    work = problem.work
    if problem.rules is None or not problem.rules.rules:
        return []
    if work.files > MAX_FILES:
        raise UnavailableError(f"hints of single files are matched for up to {MAX_FILES:,} files")
    values = problem.hinted
    if problem.staged:
        return values
    return [v if made else {} for v, made in zip(values, work.produced, strict=True)]
