"""Which declared output of one task is which declared input of another."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints, order_by, starts_of
from tracehint.analyzer.flow.declared import DeclaredRows, Uses
from tracehint.analyzer.flow.ranges import expand


def pairs(uses: Uses, declared: DeclaredRows) -> tuple[Ints, Ints]:
    """Rows (out, in) of `uses` that declare a handover of one path between two tasks.

    Where the reader's declared parents wrote the path, the other writers are left out.
    """
    order = order_by(uses.path, (~uses.out).astype(np.int64))
    first = starts_of(uses.path[order])
    stop = np.append(first[1:], len(order))[: len(first)]
    outs = np.add.reduceat(uses.out[order].astype(np.int64), first) if len(first) else first
    group = np.repeat(np.arange(len(first)), stop - first)
    inner = ~uses.out[order]
    reader = order[inner]
    i, j = expand(first[group[inner]], (first + outs)[group[inner]])
    writer, reader = order[j], reader[i]
    p, c = uses.task[writer], uses.task[reader]
    child, parent = declared.parents
    count = len(declared.names)
    known = child * count + parent
    key = c * count + p
    at = np.minimum(np.searchsorted(known, key), max(len(known) - 1, 0))
    by_parent = known[at] == key if len(known) else np.zeros(len(key), bool)
    fed = np.zeros(len(uses), bool)
    fed[reader[by_parent]] = True
    keep = (p != c) & (by_parent | ~fed[reader])
    return writer[keep], reader[keep]
