"""Confidence of a label: a product of factors, each 1 when perfect (docs/patterns.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.catalogue import CATALOGUE
from tracehint.analyzer.patterns.rows import PATTERNS, Facts, Floats, Labels, Rows

if TYPE_CHECKING:
    import pyarrow as pa


# What the collector cannot record -> pattern -> confidence factor of its label.
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
        """Product of the factors."""
        return self.exact * self.kept * self.near * self.peeks * self.ordered * self.seen


def rate(labels: Labels, facts: Facts, blind_to: Sequence[str], lost: pa.Table | None) -> Factors:
    """Compute the factors; `blind_to`: what the collector cannot record, `lost`: see
    `run_labels.label`. Bytes known only as an upper bound (mapped ranges) count half, as they are
    more often right than wrong.
    """

    at = labels.file
    tables = [BLIND[what] for what in blind_to if what in BLIND]
    collector_factor = [min((table.get(p, 1.0) for table in tables), default=1.0) for p in PATTERNS]
    ranged, thinned = (
        np.array([p in names for p in PATTERNS])[labels.pattern] for names in (_ON_RANGES, _THINNED)
    )
    kept = keeping_probabilities(facts, lost)
    seldom = np.array([[kept.get((p, single), 1.0) for p in PATTERNS] for single in (False, True)])
    return Factors(
        np.where(ranged, 0.5 + 0.5 * facts.exact[at], 1.0),
        np.where(thinned, facts.kept[at], seldom[(facts.np[at] < 2).astype(int), labels.pattern]),
        labels.near,
        facts.near_peek[at],
        facts.ordered[at],
        np.array(collector_factor)[labels.pattern],
    )


Numbers = npt.NDArray[Any]

LIMIT = 12  # highest number of users per file that is distinguished; includes all above
PRIOR = 3  # prior: one additional file for each number of users from 0 to this
ITERATIONS = 1000  # iterations of the likelihood maximisation
MAX_LOST = 0.9  # cap of the loss share: above it the recording supports no estimate


def keeping_probabilities(facts: Facts, lost: pa.Table | None) -> dict[tuple[str, bool], float]:
    """Return (label, at most one writer) -> probability that no lost access would change the label.

    Empty when no access was lost entirely. Labels without an entry do not depend on one access.
    `lost`: see `run_labels.label`.
    """
    share = _lost_share(lost)
    if not share:
        return {}
    some = facts.labelled
    shape = np.minimum(facts.np[some], LIMIT) * (LIMIT + 1) + np.minimum(facts.n[some], LIMIT)
    # number of files by recorded writers (rows) and recorded readers (columns)
    files = np.bincount(shape, minlength=(LIMIT + 1) ** 2).reshape(LIMIT + 1, LIMIT + 1)
    one_writer = estimate_complete_share(files[:, 1:].sum(axis=1), share)[1]
    no_writer = estimate_complete_share(files[:, 1], share)[0]
    input_reader = estimate_complete_share(files[0], share, first=1)[1]
    found: dict[tuple[str, bool], float] = {}
    for single, made in ((True, files[1]), (False, files[2:].sum(axis=0))):
        none, one = estimate_complete_share(made, share)[:2]
        found |= {
            ("stage_out", single): none,
            ("reduce", single): one,
            ("pipeline", single): float(estimate_complete_share(files[1], share)[1] * one_writer),
            ("distribute", single): float(estimate_complete_share(files[1], share)[1] * one_writer),
            ("stage_in", single): float(input_reader * no_writer),
        }
    return {key: float(value) for key, value in found.items()}


def _lost_share(lost: pa.Table | None) -> float:
    """Return the share of file uses by a task that left no record at all.

    When a task opened a file several times, its use is lost only if every access was lost.
    """
    if lost is None or "gone" not in lost.schema.names:
        return 0.0
    import pyarrow.compute as pc

    def total(name: str) -> float:
        found = pc.sum(lost.column(name)).as_py() if name in lost.schema.names else None
        return float(found or 0)

    gone = total("gone")
    if not gone:
        return 0.0
    share = min(MAX_LOST, gone / (gone + total("opens")))
    times = [total(name) for name in ("once", "twice", "often")]
    if not sum(times):
        return share
    return float(sum(n * share**k for k, n in enumerate(times, 1)) / sum(times))


def estimate_complete_share(seen: Numbers, share: float, first: int = 0) -> Numbers:
    """Estimate, for files recorded with 0, 1, 2 ... users, the share that had no further users.

    `seen`: numbers of files; files with fewer than `first` recorded users are never observed.
    """
    users = range(len(seen))
    # thinned[k, n]: probability that k of n users are recorded
    thinned = np.array(
        [[comb(n, k) * (1 - share) ** k * share ** abs(n - k) for n in users] for k in users]
    )
    thinned[:first] = 0
    found = thinned.sum(axis=0)
    counted = seen + thinned[:, : PRIOR + 1].sum(axis=1)
    counted[:first] = 0
    likely = np.full(len(users), counted.sum() / len(users))
    for _ in range(ITERATIONS):
        expected = np.maximum(thinned @ likely, 1e-12)
        likely = likely * (thinned.T @ (counted / expected)) / np.maximum(found, 1e-12)
    whole = np.diag(thinned) * likely
    right: Numbers = np.clip(whole / np.maximum(thinned @ likely, 1e-12), 0.0, 1.0)
    return right
