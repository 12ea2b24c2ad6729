"""Every file on the node that writes it."""

from __future__ import annotations

from dataclasses import replace

from tracehint.analyzer.predict import placement
from tracehint.hintgen.plan.model import Draft, Problem


def first(problem: Problem) -> list[Draft]:
    """Every task starts where most of its input lies."""
    return [Draft("local-first", placement.local(problem.work, problem.cluster))]


def writes(problem: Problem) -> list[Draft]:
    """The same with the cluster's own scheduler: no task is started anywhere in particular."""
    found = placement.local(problem.work, problem.cluster)
    return [Draft("local-writes", replace(found, scheduler=None))]
