"""Which rule fires for a path, and with which values.

    matches = match(hint_file, [b"proj/p_tile_7.fits", ...])

What a caller may know before a run, and nothing else, goes in: the path, and
(where the engine's graph is at hand) the declared producing and consuming
tasks with their types. The most specific rule that fits wins; two that are
equally specific and disagree give a conflict and no hint. A name on which more than the
limit match-work would be spent gets no hint and the reason "costly".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.uses import pair_counts, uses_of
from tracehint.hintgen.match.known import Declared, Match, Verdict
from tracehint.hintgen.match.pick import AskedPaths, Pick, Picker
from tracehint.hintgen.match.ruleindex import RuleIndex
from tracehint.hintgen.match.siblings import readers_by_rule
from tracehint.hintgen.match.skeleton import AskedNames
from tracehint.hintgen.match.values import RunValues, outcomes

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints

__all__ = ["Declared", "Match", "Matcher", "match"]


class Matcher:
    """Compiled rules of one hint file; reusable for many batches."""

    def __init__(self, hints: HintFile) -> None:
        self.picker = Picker(RuleIndex(hints.rules), hints.rules)
        self._nodes = hints.nodes

    def match(
        self,
        paths: Sequence[bytes],
        known: Declared | None = None,
        nodes: int | None = None,
        names: Collection[bytes] = (),
        *,
        counted: bool = True,
    ) -> list[Match]:
        """One Match per path, in order. `names`: all files of the run, where they are known.

        `nodes` of the next run; None: what the rules were learned for, where that was said.
        `counted`: values follow what the names tell of readers; each call goes over all names.
        """
        codes, found = self.outcomes(paths, known, nodes, names, counted=counted)
        return [Match(path, *found[code]) for path, code in zip(paths, codes.tolist(), strict=True)]

    def outcomes(
        self,
        paths: Sequence[bytes],
        known: Declared | None = None,
        nodes: int | None = None,
        names: Collection[bytes] = (),
        *,
        counted: bool = True,
    ) -> tuple[Ints, list[Verdict]]:
        """The same as (number of each path's outcome, outcomes): of many files few differ."""
        known = known or Declared()
        uses, alike = known.uses, known.alike
        if known.producers is not None and known.consumers is not None:
            uses = uses_of(known.producers, known.consumers) if uses is None else uses
            alike = pair_counts(known.producers, known.consumers) if alike is None else alike
        asked = paths if isinstance(paths, AskedNames) else AskedNames(paths)
        codes, picks = self.picker.picks(AskedPaths(asked, known, alike, names))
        readers: Mapping[str, float] = {}
        if counted and names and known.consumers is None:
            readers = readers_by_rule(_fired(codes, picks), names)
        return outcomes(asked, codes, picks, RunValues(known, nodes or self._nodes, uses, readers))


def _fired(codes: Ints, picks: Sequence[Pick]) -> Iterator[tuple[Rule, int]]:
    """The rules of the picks, and how many files have each of the picks."""
    import numpy as np

    count = np.bincount(codes, minlength=len(picks)).tolist()
    for pick, files in zip(picks, count, strict=True):
        if pick.entry is not None:
            yield pick.entry.rule, files


def match(
    hints: HintFile,
    paths: Sequence[bytes],
    producer_types: Sequence[str | None] | None = None,
    consumer_types: Sequence[Sequence[str]] | None = None,
    *,
    known: Declared | None = None,
    nodes: int | None = None,
) -> list[Match]:
    """Match paths (below the data root) against a hint file; see `Matcher`."""
    if known is None:
        known = Declared(producer_types, consumer_types)
    return Matcher(hints).match(paths, known, nodes)
