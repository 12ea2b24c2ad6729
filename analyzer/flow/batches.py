"""The accesses in partitions of whole lineages, so that memory follows the partition, not the run.

Everything about a file is decided by what happened to its path alone; only cycles of tasks go
through several files (`build`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, starts_of
from tracehint.analyzer.flow.copies import Copies, find
from tracehint.analyzer.flow.model import READ, WRITE, Access, Objects
from tracehint.analyzer.flow.partitions import Partitions

if TYPE_CHECKING:
    from tracehint.analyzer.flow.extents import Accesses

ROWS = 1 << 17  # accesses of one partition, unless one path has more


def keep_together(
    extents: Accesses, more: Access, objects: Objects, engine: Bools
) -> tuple[Copies, Ints]:
    """Complete copies by engines, and the order of the objects that puts the paths last that
    they concern (see `Objects.reordered`)."""
    access = Access.joined([extents.of_tasks(engine), more.take(engine[more.task])])
    copies = Copies.empty()
    if (access.op == WRITE).any():
        read = np.zeros(len(objects), bool)
        read[access.obj[access.op == READ]] = True
        everything = Access.joined([extents.of_objects(read), more.take(read[more.obj])])
        copies = find(access, everything, objects)
    special = np.zeros(int(objects.lineage.max(initial=-1)) + 1, bool)
    special[objects.lineage[copies.source]] = True
    special[objects.lineage[copies.target]] = True
    late = special[objects.lineage]
    return copies, np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])


def divide(
    extents: Accesses, more: Access, objects: Objects, copies: Copies, rows: int = ROWS
) -> Partitions:
    """Partitions of about `rows` accesses, in the order of the objects; at most 65535.

    Objects that copies concern are in one partition, the last one.
    """
    count = len(objects)
    weight = 1 + extents.per_object()  # objects cost something too
    weight += np.bincount(more.obj, minlength=count)
    first = starts_of(objects.lineage)
    before = np.cumsum(weight) - weight
    rows = max(rows, int(weight.sum()) >> 15)
    partition = before[first] // rows
    bounds = first[starts_of(partition)]
    if len(copies):
        low = min(int(copies.source.min()), int(copies.target.min()))
        low = int(first[np.searchsorted(first, low, side="right") - 1])
        bounds = np.append(bounds[bounds < low], low)
    return Partitions(np.append(bounds, count), objects, more, copies)
