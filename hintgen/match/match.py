"""Which rule fires for a path, and with which values.

    matches = match(hint_file, [b"proj/p_tile_7.fits", ...])

What a caller may know before a run, and nothing else, goes in: the path, and
(where the engine's graph is at hand) the declared producing and consuming
tasks with their types. The most specific rule that fits wins; two that are
equally specific and disagree give a conflict and no hint. A name on which more than the
limit match-work would be spent gets no hint and the reason "costly".
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from tracehint.hintgen.hints.fitting import Subject, TooCostlyError, places
from tracehint.hintgen.hints.formulas import Scale, value_of
from tracehint.hintgen.hints.model import Hint, HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.uses import pair_counts, uses_of
from tracehint.hintgen.match.company import readers_by_rule
from tracehint.hintgen.match.known import Declared, Match
from tracehint.hintgen.match.ruleindex import Captures, Entry, RuleIndex
from tracehint.hintgen.match.skeleton import MOST, Skeletons, skeleton_of
from tracehint.limits import limit

__all__ = ["Declared", "Match", "Matcher", "match"]


@dataclass(frozen=True)
class _Pick:
    """The rule for a path and the texts of its placeholders; else the reason for none."""

    entry: Entry | None
    reason: str
    others: tuple[tuple[str, str], ...] = ()  # (rule id, why not)
    caught: Captures = ()
    shared: bool = True  # all names of the skeleton have it that are declared alike


_Alike = tuple[object, ...]  # what a pick depends on, beside the rules
_Remembered = tuple[_Pick, tuple[slice, ...]]  # and where the placeholders' texts are


class Matcher:
    """Compiled rules of one hint file; reusable for many batches."""

    def __init__(self, hints: HintFile) -> None:
        self._index = RuleIndex(hints.rules)
        self._nodes = hints.nodes
        self._skeletons = Skeletons(self._index.templates)
        self._remembered: dict[_Alike, _Remembered] = {}
        self._values: dict[_Alike, tuple[Hint, ...]] = {}

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
        known = known or Declared()
        nodes = nodes or self._nodes
        uses: list[str] | None = None
        alike: list[int] = []
        if known.producers is not None and known.consumers is not None:
            uses = uses_of(known.producers, known.consumers)
            alike = pair_counts(known.producers, known.consumers)
        picks = [
            self._pick(path, known, i, alike[i] if uses else 0, names)
            for i, path in enumerate(paths)
        ]
        readers = {}
        if counted and names and known.consumers is None:
            readers = readers_by_rule(
                [pick.entry.rule for pick in picks if pick.entry is not None], names
            )
        return [
            self._finish(path, pick, known, i, nodes, uses[i] if uses else None, readers)
            for i, (path, pick) in enumerate(zip(paths, picks, strict=True))
        ]

    def _pick(
        self, path: bytes, known: Declared, i: int, alike: int, names: Container[bytes]
    ) -> _Pick:
        """The rule for a path. `alike`: files between the same tasks, 0 where nobody knows.

        Rules for any name of some types stay silent where that is more than they have seen: a
        run may have a marker beside each data file, and nothing tells which of them is meant.
        """
        most = limit("match-work")
        skeleton = skeleton_of(path)
        if known.sizes is not None or not self._skeletons.alike(skeleton, most):
            return self._one(Subject(path, most), known, i, alike, names)
        key = (most, skeleton, alike, *known.types_of(i))
        found = self._remembered.get(key)
        if found is None:
            subject = Subject(path, most)
            pick = self._one(subject, known, i, alike, names)
            # near the limit, digits may decide how much is looked at
            if pick.shared and subject.work <= most // 2:
                self._remember(key, pick, subject)
            return pick
        pick, where = found
        if not where:
            return pick
        return _Pick(pick.entry, pick.reason, pick.others, tuple([path[at] for at in where]))

    def _remember(self, key: _Alike, pick: _Pick, subject: Subject) -> None:
        if len(self._remembered) >= MOST:
            self._remembered.clear()
        where = () if pick.entry is None else places(pick.entry.template.parts, subject) or ()
        self._remembered[key] = pick, where

    def _one(
        self, subject: Subject, known: Declared, i: int, alike: int, names: Container[bytes]
    ) -> _Pick:
        try:
            return self._best(subject, known, i, alike, names)
        except TooCostlyError:
            return _Pick(None, "costly", shared=False)

    def _best(
        self, subject: Subject, known: Declared, i: int, alike: int, names: Container[bytes]
    ) -> _Pick:
        reason = "no_rule"
        others: list[tuple[str, str]] = []
        winner: tuple[Entry, Captures] | None = None
        candidates = self._index.candidates(subject, known, i)
        shared = not any(entry.names_decide for entry, _ in candidates)
        for entry, caught in candidates:
            why = self._index.objection(entry, caught, subject, known, i, names)
            if not why and 0 < entry.rule.conditions.get("per_pair", alike) < alike:
                why = "extra"
            if why:
                # A rung for any name of some task types is no news about this name.
                news = why == "extra" or entry.rule.evidence.get("level") != 2
                if winner is None and reason == "no_rule" and news:
                    reason = why
                others.append((entry.rule.id, why))
            elif winner is None:
                winner = entry, caught
            elif self._disagree(winner[0], entry, known, i):
                tie = [(winner[0].rule.id, "tie"), (entry.rule.id, "tie")]
                return _Pick(None, "conflict", (*others, *tie), shared=shared)
            else:
                others.append((entry.rule.id, "less_specific"))
        if winner is None:
            return _Pick(None, reason, tuple(others), shared=shared)
        return _Pick(winner[0], "fired", tuple(others), winner[1], shared)

    def _disagree(self, winner: Entry, entry: Entry, known: Declared, i: int) -> bool:
        equal = self._index.rank(entry, known, i) == self._index.rank(winner, known, i)
        return equal and entry.rule.hints != winner.rule.hints

    def _finish(
        self,
        path: bytes,
        pick: _Pick,
        known: Declared,
        i: int,
        nodes: int | None,
        use: str | None,
        readers: Mapping[str, float],
    ) -> Match:
        entry, others = pick.entry, pick.others
        if entry is None:
            return Match(path, None, (), "", pick.reason, others)
        rule = entry.rule
        pattern, hints = rule.pattern, rule.hints
        if use and rule.uses and use not in rule.uses:
            variant = next((v for v in rule.variants if v.use == use), None)
            if variant is None or not variant.hints:
                return Match(path, None, (), "", "use", ((rule.id, "use"), *others))
            pattern, hints = variant.pattern, variant.hints
        return Match(
            path, rule, self._hints(path, rule, hints, pick, known, i, nodes, readers), pattern,
            "fired", others,
        )  # fmt: skip  # a table

    def _hints(
        self,
        path: bytes,
        rule: Rule,
        hints: tuple[Hint, ...],
        pick: _Pick,
        known: Declared,
        i: int,
        nodes: int | None,
        readers: Mapping[str, float],
    ) -> tuple[Hint, ...]:
        """The hints of a rule with the values for one file; made once where they are the same."""
        count = len(known.consumers[i]) if known.consumers is not None else readers.get(rule.id)
        own = rule.per_file or any(h.formula.get("fn") in _OF_ONE_FILE for h in hints)
        key = (rule.id, id(hints), count, nodes)
        if not own and key in self._values:
            return self._values[key]
        by = next((h.formula.get("by") for h in hints if h.formula.get("fn") == "group"), None)
        scale = Scale(
            captures=pick.caught,
            readers=count,
            nodes=nodes,
            size=known.sizes[i] if known.sizes is not None else None,
            task=_only(known.producers if by == "producer" else known.consumers, i),
        )
        fixed = rule.per_file.get(to_text(path), {}) if rule.per_file else {}
        final = tuple(
            Hint(h.name, fixed.get(h.name) or value_of(h, scale), h.when, {}, h.level)
            for h in hints
        )
        if not own:
            self._values[key] = final
        return final


_OF_ONE_FILE = ("group", "region")  # formulas that look at more than the number of readers


def _only(column: Sequence[Sequence[str]] | None, i: int) -> str | None:
    return column[i][0] if column is not None and len(column[i]) == 1 else None


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
