"""Files with so many accesses to so many different ranges that each byte cannot be followed.

Work and memory grow with the pairs of an access and a segment that it touches. Beyond
MAX_TOUCHES the ranges of a file are widened to a few thousand common bounds, and are no longer
exact.
"""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints, distinct, starts_of
from tracehint.analyzer.flow.access import is_mutation
from tracehint.analyzer.flow.events import END, Events, epochs
from tracehint.analyzer.flow.model import MAX_TOUCHES

_FEW = 128  # files of fewer accesses are no matter


def coarsen(events: Events, notes: list[str], limit: int = MAX_TOUCHES) -> None:
    """Widen the ranges of the files that would exceed the limit, in place.

    Where many files of a partition come near it, each gets a part of it.
    """
    first = starts_of(epochs(events))
    sizes = np.diff(np.append(first, len(events)))
    heavy = [slice(int(first[i]), int(first[i] + sizes[i])) for i in np.flatnonzero(sizes > _FEW)]
    work = [_touches(events, rows) for rows in heavy]
    share = min(1.0, 2 * limit / max(sum(work), 1))
    for rows, pairs in zip(heavy, work, strict=True):
        accesses = rows.stop - rows.start
        if pairs > limit or (share < 1 and pairs > limit * share * accesses / len(events)):
            bounds = _bounds(events, rows)
            if not len(bounds):
                continue
            few = max(2, int(limit * share) // accesses)
            step = -(-len(bounds) // few)
            _widen(events, rows, np.append(bounds[:-1:step], bounds[-1]))
            notes.append(
                f"a file has {accesses} accesses to {len(bounds)} different ranges: who wrote "
                "which of its bytes is known roughly"
            )


def _touches(events: Events, rows: slice) -> int:
    """Pairs of an access and a segment."""
    bounds, start, end = _bounds(events, rows), events.start[rows], events.end[rows]
    low, high = np.searchsorted(bounds, start, side="right"), np.searchsorted(bounds, end)
    return int((high - low + 1).sum())


def _bounds(events: Events, rows: slice) -> Ints:
    change = is_mutation(events.op[rows])
    bounds = distinct(np.concatenate([events.start[rows][change], events.end[rows][change]]))
    return bounds[bounds < END]


def _widen(events: Events, rows: slice, bounds: Ints) -> None:
    """Move starts down and ends up to the next bound; what has no bound beyond it stays."""
    start, end = events.start[rows], events.end[rows]
    touches = end > start
    low = np.maximum(np.searchsorted(bounds, start, side="right") - 1, 0)
    high = np.minimum(np.searchsorted(bounds, end), len(bounds) - 1)
    whole = end == END  # a truncation removes all that is behind it, and nothing before it
    down = np.minimum(bounds[low], start)
    up = np.maximum(bounds[high], end)
    events.start[rows] = np.where(touches & ~whole, down, start)
    events.end[rows] = np.where(touches & ~whole, up, end)
    events.exact[rows] = False
