"""Agreement of the analysis of a real run with its truth, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

from tests.e2e.real.compare import Result
from tests.support.byte_ranges import common, length


@dataclass(frozen=True)
class Score:
    """Counts of one run; an access is one job reading or writing one file."""

    jobs: int
    accesses: int  # in both
    false_accesses: int
    missed_accesses: int
    true_bytes: int  # distinct bytes by access
    wrong_bytes: int  # in one but not the other
    worst_bytes: float  # largest share of wrong bytes of an access that both have
    edges: int
    false_edges: int
    missed_edges: int
    labels: int  # in both
    false_labels: int
    missed_labels: int
    primaries: int
    wrong_primaries: int

    @property
    def precision(self) -> float:
        return self.accesses / max(1, self.accesses + self.false_accesses)

    @property
    def recall(self) -> float:
        return self.accesses / max(1, self.accesses + self.missed_accesses)

    @property
    def byte_error(self) -> float:
        return self.wrong_bytes / max(1, self.true_bytes)

    @property
    def label_agreement(self) -> float:
        """Share of the labels from either side that both assign."""
        return self.labels / max(1, self.labels + self.false_labels + self.missed_labels)


def score(result: Result) -> Score:
    """Count the agreements and differences of a run's analysis and its truth."""
    seen, true = result.observed, result.truth
    both = seen.uses.keys() & true.uses.keys()
    wrong = {
        use: length(seen.uses[use])
        + length(true.uses[use])
        - 2 * length(common(seen.uses[use], true.uses[use]))
        for use in both
    }
    labels, expected = (
        {(key, label) for key, found in side.items() for label in found}
        for side in (seen.labels, true.labels)
    )
    return Score(
        jobs=len(true.jobs),
        accesses=len(both),
        false_accesses=len(seen.uses.keys() - both),
        missed_accesses=len(true.uses.keys() - both),
        true_bytes=sum(length(r) for r in true.uses.values()),
        wrong_bytes=sum(wrong.values())
        + sum(length(true.uses[use]) for use in true.uses.keys() - both)
        + sum(length(seen.uses[use]) for use in seen.uses.keys() - both),
        worst_bytes=max((wrong[use] / max(1, length(true.uses[use])) for use in both), default=0.0),
        edges=len(seen.edges.keys() & true.edges.keys()),
        false_edges=len(seen.edges.keys() - true.edges.keys()),
        missed_edges=len(true.edges.keys() - seen.edges.keys()),
        labels=len(labels & expected),
        false_labels=len(labels - expected),
        missed_labels=len(expected - labels),
        primaries=len(true.primary),
        wrong_primaries=sum(
            seen.primary.get(key) != true.primary.get(key)
            for key in seen.primary.keys() | true.primary.keys()
        ),
    )
