"""A partition of whole lineages: the objects and accesses that one step of the work sees."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.flow.access import clip
from tracehint.analyzer.flow.copies import Copies
from tracehint.analyzer.flow.model import Access, Objects


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
class Partitions:
    """How the objects are divided: partition i are those from `bounds[i]` up to `bounds[i + 1]`.

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
        """The partition of each object."""
        return np.repeat(np.arange(len(self), dtype=np.uint16), np.diff(self.bounds))

    def frame(self, i: int) -> Batch:
        """Partition i without extents; its accesses keep the numbers of the run (`filled`)."""
        low, high = int(self.bounds[i]), int(self.bounds[i + 1])
        copies = self.copies
        inside = copies.take((copies.source >= low) & (copies.source < high))
        inside = Copies(inside.source - low, inside.target - low, inside.proc, inside.shift)
        more = self.more.take(self._of_more == i)
        return Batch(low, high, self.objects.part(low, high), more, inside)
