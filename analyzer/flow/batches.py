"""The accesses in portions of whole lineages, so that memory follows the portion, not the run.

Everything about a file is decided by what happened to its path alone; only circles of tasks go
through several files (`build`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, starts_of
from tracehint.analyzer.flow.access import clip
from tracehint.analyzer.flow.copies import Copies, find
from tracehint.analyzer.flow.model import READ, WRITE, Access, Objects

if TYPE_CHECKING:
    from tracehint.analyzer.execution.model import Accesses

ROWS = 1 << 17  # accesses of one portion, unless one path has more


@dataclass
class Batch:
    """Objects `low` up to `high` with their accesses; both numbered from 0 at `low`."""

    low: int
    high: int
    objects: Objects
    access: Access
    copies: Copies

    def filled(self, extents: Access) -> Batch:
        """The batch with these accesses (objects numbered as in the run; given away) before its
        own."""
        access = Access.joined([extents, self.access]) if len(self.access) else extents
        access.obj = access.obj - self.low
        return replace(self, access=clip(access, self.objects))


@dataclass
class Portions:
    """How the objects are divided: portion i are those from `bounds[i]` up to `bounds[i + 1]`.

    `more` are the accesses that are not extents.
    """

    bounds: Ints
    objects: Objects
    more: Access
    copies: Copies

    def __post_init__(self) -> None:
        self._of_more = self.of_object()[self.more.obj]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def of_object(self) -> Ints:
        """The portion of each object."""
        return np.repeat(np.arange(len(self), dtype=np.uint16), np.diff(self.bounds))

    def frame(self, i: int) -> Batch:
        """Portion i without extents; its accesses keep the numbers of the run (`filled`)."""
        low, high = int(self.bounds[i]), int(self.bounds[i + 1])
        copies = self.copies
        inside = copies.take((copies.source >= low) & (copies.source < high))
        inside = Copies(inside.source - low, inside.target - low, inside.proc, inside.shift)
        more = self.more.take(self._of_more == i)
        return Batch(low, high, self.objects.part(low, high), more, inside)


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
) -> Portions:
    """Portions of about `rows` accesses, in the order of the objects; at most 65535.

    Objects that copies concern are in one portion, the last one.
    """
    count = len(objects)
    weight = 1 + extents.per_object()  # objects cost something too
    weight += np.bincount(more.obj, minlength=count)
    first = starts_of(objects.lineage)
    before = np.cumsum(weight) - weight
    rows = max(rows, int(weight.sum()) >> 15)
    portion = before[first] // rows
    bounds = first[starts_of(portion)]
    if len(copies):
        low = min(int(copies.source.min()), int(copies.target.min()))
        low = int(first[np.searchsorted(first, low, side="right") - 1])
        bounds = np.append(bounds[bounds < low], low)
    return Portions(np.append(bounds, count), objects, more, copies)
