"""Files that are gathered: one task alone reads them, and such files of several writers."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.hintgen.plan.graph import Graph


def gathered(graph: Graph) -> Ints:
    """The task that gathers each file; -1 for files that are not gathered."""
    single = (graph.readers == 1) & (graph.writers > 0)
    rows = np.flatnonzero(single[graph.link_file])
    file, reader, writer = graph.link_file[rows], graph.link_to[rows], graph.link_from[rows]
    pairs = np.unique(np.stack([reader, writer]), axis=1)
    feeding = np.bincount(pairs[0], minlength=graph.tasks)
    found = np.full(graph.files, -1, np.int64)
    some = feeding[reader] >= 2
    found[file[some]] = reader[some]
    return found
