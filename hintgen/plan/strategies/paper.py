"""The published table, pattern by pattern, as somebody would write it by hand.

Pipeline: on the writer's node. Reduce: together on one node. Broadcast: a copy for every three
readers, at most one per node. Everything else as the store does it.
"""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.predict.model import law
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import MAX_COPIES, blank, finished
from tracehint.hintgen.plan.reduces import gathered

READERS_A_COPY = 3


def make(problem: Problem) -> list[Draft]:
    """One draft; tasks start where most of their input lies."""
    graph = problem.graph
    found = blank(problem, "paper", "most-input-bytes")
    assert found.law is not None and found.copies is not None and found.target is not None
    made = graph.writer >= 0
    single = made & (graph.readers == 1)
    reader = gathered(graph)
    groups, number = np.unique(reader[reader >= 0], return_inverse=True)
    found.law[single] = law("local")
    found.law[reader >= 0] = law("group")
    found.target[reader >= 0] = number
    shared = (graph.readers > 1) & (made | problem.staged)
    found.copies[shared] = _copies(graph.readers[shared], problem.cluster.count)
    found.groups = len(groups)
    return [Draft("paper", finished(problem, found))]


def _copies(readers: Ints, nodes: int) -> Ints:
    wanted = np.maximum(2, -(-readers // READERS_A_COPY))
    return np.minimum(wanted, min(nodes, MAX_COPIES))
