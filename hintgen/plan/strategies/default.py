"""What the store does by itself, tasks where the cluster's scheduler puts them."""

from __future__ import annotations

from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import blank, finished


def make(problem: Problem) -> list[Draft]:
    """One draft that tells nobody anything."""
    return [Draft("default", finished(problem, blank(problem, "default")))]
