"""How sure a label is: a product of stated factors, each 1 when perfect (docs/patterns.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.patterns.rows import PATTERNS, Facts, Floats, Labels, Rows

if TYPE_CHECKING:
    import pyarrow as pa

# What a label is worth when the collector could not see how many bytes moved, or where.
# Labels that rest on which bytes were touched suffer most.
BLIND = {
    "bytes": {
        "broadcast": 0.6,
        "scatter": 0.3,
        "partly_shared": 0.3,
        "gather": 0.5,
        "reduce": 0.7,
        "distribute": 0.8,
        "pipeline": 0.8,
        "stage_in": 0.8,
        "stage_out": 0.9,
        "concurrently_shared": 0.7,
    }
}

# Labels that rest on which bytes were touched. Of the others it is enough to know that they were.
_ON_RANGES = ("broadcast", "scatter", "partly_shared", "gather", "concurrently_shared")
# Of those, labels that change when single ranges are missing: fewer regions are still regions.
_THINNED = ("broadcast", "scatter", "partly_shared", "concurrently_shared")


@dataclass
class Factors(Rows):
    """The factors of each label, in the order in which they are multiplied."""

    exact: Floats
    kept: Floats
    near: Floats
    peeks: Floats
    ordered: Floats
    seen: Floats

    def confidence(self) -> Floats:
        """Their product."""
        return self.exact * self.kept * self.near * self.peeks * self.ordered * self.seen


def rate(labels: Labels, facts: Facts, blind_to: Sequence[str], lost: pa.Table | None) -> Factors:
    """The factors; `blind_to` is what the collector cannot see, `lost` as of `patterns.label`.

    Bytes that are an upper bound (a mapped range) are more often right than wrong: half weight.
    """
    from tracehint.analyzer.patterns import hidden

    at = labels.file
    tables = [BLIND[what] for what in blind_to if what in BLIND]
    worth = [min((table.get(p, 1.0) for table in tables), default=1.0) for p in PATTERNS]
    ranged, thinned = (
        np.array([p in names for p in PATTERNS])[labels.pattern] for names in (_ON_RANGES, _THINNED)
    )
    kept = hidden.kept(facts, lost)
    seldom = np.array([[kept.get((p, single), 1.0) for p in PATTERNS] for single in (False, True)])
    return Factors(
        np.where(ranged, 0.5 + 0.5 * facts.exact[at], 1.0),
        np.where(thinned, facts.kept[at], seldom[(facts.np[at] < 2).astype(int), labels.pattern]),
        labels.near,
        facts.near_peek[at],
        facts.ordered[at],
        np.array(worth)[labels.pattern],
    )
