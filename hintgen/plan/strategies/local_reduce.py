"""Local writes, but what one task gathers is written to one node at once."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.predict.model import law
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import blank, finished
from tracehint.hintgen.plan.reduces import gathered


def make(problem: Problem) -> list[Draft]:
    """One draft, where there is a task that gathers."""
    reader = gathered(problem.graph)
    if not (reader >= 0).any():
        return []
    found = blank(problem, "local-reduce", "most-input-bytes")
    assert found.law is not None and found.target is not None
    groups, number = np.unique(reader[reader >= 0], return_inverse=True)
    found.law[problem.graph.writer >= 0] = law("local")
    found.law[reader >= 0] = law("group")
    found.target[reader >= 0] = number
    found.groups = len(groups)
    return [Draft("local-reduce", finished(problem, found))]
