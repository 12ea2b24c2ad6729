"""How sure a label is: a product of stated factors, each 1 when perfect (docs/patterns.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.catalogue import CATALOGUE
from tracehint.analyzer.patterns.rows import PATTERNS, Facts, Floats, Labels, Rows

if TYPE_CHECKING:
    import pyarrow as pa

# What a collector is blind to -> pattern -> what its label is worth then.
BLIND = {"bytes": {p.name: p.blind for p in CATALOGUE}}
_ON_RANGES = tuple(p.name for p in CATALOGUE if p.touched)
_THINNED = tuple(p.name for p in CATALOGUE if p.thinned)


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
