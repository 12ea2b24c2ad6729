"""The rule for each path: found out once for all paths of which the same is known.

Names that differ in digits alone count as the same where no rule tells them apart
(hintgen/match/skeleton.py), and sizes where no rule's bound is between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehint.hintgen.hints.fitting import Places, Subject, TooCostlyError, texts_at
from tracehint.hintgen.hints.model import Rule
from tracehint.hintgen.match.coded import coded, codes_of
from tracehint.hintgen.match.known import Declared
from tracehint.hintgen.match.ruleindex import Entry, RuleIndex
from tracehint.hintgen.match.skeleton import MOST, AskedNames, Skeletons
from tracehint.limits import limit

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints

Alike = tuple[object, ...]  # what a pick depends on, beside the rules


@dataclass(frozen=True)
class Pick:
    """The rule for a path and where the texts of its placeholders are; else why none."""

    entry: Entry | None
    reason: str
    others: tuple[tuple[str, str], ...] = ()  # (rule id, why not)
    where: Places = ()
    shared: bool = True  # all names of the skeleton have it that are declared alike

    def captures(self, path: bytes) -> tuple[bytes, ...]:
        """The texts of the placeholders in a path that has this pick."""
        return texts_at(self.where, path)

    def some(self, path: bytes, holes: Sequence[int]) -> tuple[bytes, ...]:
        """The texts of some of them; those that are not there are left out."""
        return tuple([path[self.where[hole]] for hole in holes if hole < len(self.where)])


@dataclass(frozen=True)
class AskedPaths:
    """Paths, and what is known of them. `alike`: files between the same tasks, where known."""

    paths: AskedNames
    known: Declared
    alike: Sequence[int] | Ints | None
    names: Container[bytes]


class Picker:
    """Finds the rules of many paths, and remembers what it found out."""

    def __init__(self, index: RuleIndex, rules: Sequence[Rule]) -> None:
        self.index = index
        self._skeletons = Skeletons(index.templates)
        self._bounds = sorted({r.conditions.get("min_size_bytes", 0) for r in rules})
        self.remembered: dict[Alike, Pick] = {}

    def picks(self, asked: AskedPaths) -> tuple[Ints, list[Pick]]:
        """(which of the picks each path has, the picks)."""
        import numpy as np

        from tracehint.analyzer.arrays import alike

        most = limit("match-work")
        short = asked.paths.skeletons
        apart = {
            name: code
            for code, name in enumerate(short.values)
            if not self._skeletons.alike(name, most)
        }
        first, code = alike(*self._columns(asked, apart))
        found = [self._looked_up(asked, i, apart, most) for i in first.tolist()]
        picks = [pick for pick, _ in found]
        alone = [k for k, (_, shared) in enumerate(found) if not shared]
        if alone:
            rows = np.flatnonzero(np.isin(code, alone))
            rows = rows[first[code[rows]] != rows]  # the first ones have theirs
            code[rows] = np.arange(len(rows)) + len(picks)
            picks += [self._looked_up(asked, i, apart, most)[0] for i in rows.tolist()]
        return code, picks

    def _columns(self, asked: AskedPaths, apart: Mapping[bytes, int]) -> Iterator[Ints]:
        """Numbers that are equal where the same is known: what `_key` has, of all paths."""
        import numpy as np

        known, short = asked.known, asked.paths.skeletons
        names = short.codes
        if apart:
            rows = np.flatnonzero(np.isin(names, list(apart.values())))
            names = names.copy()
            names[rows] = len(short.values) + coded(asked.paths[i] for i in rows.tolist()).codes
        yield names
        if asked.alike is not None:
            yield np.asarray(asked.alike, np.int64)
        if known.producer_types is not None:
            yield codes_of(known.producer_types)
        if known.consumer_types is not None:
            yield codes_of(known.consumer_types, tuple)
        if known.sizes is not None:
            yield coded(map(self._size_class, known.sizes)).codes
        if known.makers is not None:
            yield codes_of(known.makers)

    def _key(self, asked: AskedPaths, i: int, apart: Mapping[bytes, int], most: int) -> Alike:
        """What the pick of a path follows from."""
        known, short = asked.known, asked.paths.skeletons[i]
        return (
            asked.paths[i] if short in apart else short,
            most,
            known.producers is None or known.consumers is None,
            0 if asked.alike is None else int(asked.alike[i]),
            known.producer_types is not None and known.producer_types[i],
            known.consumer_types is not None and tuple(known.consumer_types[i]),
            None if known.sizes is None else self._size_class(known.sizes[i]),
            known.makers is not None and known.makers[i],
        )

    def _size_class(self, size: int | None) -> int | None:
        """How many bounds of rules a size reaches."""
        return None if size is None else bisect_right(self._bounds, size)

    def _looked_up(
        self, asked: AskedPaths, i: int, apart: Mapping[bytes, int], most: int
    ) -> tuple[Pick, bool]:
        """The pick of a path, and whether all with the same key have it."""
        key = self._key(asked, i, apart, most)
        before = self.remembered.get(key)
        if before is not None:
            return before, True
        subject, known = Subject(asked.paths[i], most), self.index.knows(asked.paths[i])
        try:
            pick = self._best(subject, asked, i)
        except TooCostlyError:
            if known:  # what it spares is counted, but what it found out on the way is not there
                self.index.forget(asked.paths[i])
                return self._looked_up(asked, i, apart, most)
            return Pick(None, "costly", shared=False), False
        # near the limit, digits may decide how much is looked at
        if not pick.shared or subject.work > most // 2:
            return pick, False
        if len(self.remembered) >= MOST:
            self.remembered.clear()
        self.remembered[key] = pick
        return pick, True

    def _best(self, subject: Subject, asked: AskedPaths, i: int) -> Pick:
        """The most specific rule that fits. Rules for any name of some types stay silent where
        more files are between two tasks than they have seen: a run may have a marker beside each
        data file, and nothing tells which of them is meant."""
        known, alike = asked.known, int(asked.alike[i]) if asked.alike is not None else 0
        reason = "no_rule"
        others: list[tuple[str, str]] = []
        winner: tuple[Entry, Places] | None = None
        candidates = self.index.candidates(subject, known, i)
        shared = not any(entry.names_decide for entry, _ in candidates)
        for entry, where in candidates:
            why = self.index.objection(entry, where, subject, known, i, asked.names)
            if not why and 0 < entry.rule.conditions.get("per_pair", alike) < alike:
                why = "extra"
            if why:
                # A fallback level for any name of some task types is no news about this name.
                news = why == "extra" or entry.rule.evidence.get("level") != 2
                if winner is None and reason == "no_rule" and news:
                    reason = why
                others.append((entry.rule.id, why))
            elif winner is None:
                winner = entry, where
            elif self._disagree(winner[0], entry, known, i):
                tie = [(winner[0].rule.id, "tie"), (entry.rule.id, "tie")]
                return Pick(None, "conflict", (*others, *tie), shared=shared)
            else:
                others.append((entry.rule.id, "less_specific"))
        if winner is None:
            return Pick(None, reason, tuple(others), shared=shared)
        return Pick(winner[0], "fired", tuple(others), winner[1], shared)

    def _disagree(self, winner: Entry, entry: Entry, known: Declared, i: int) -> bool:
        equal = self.index.rank(entry, known, i) == self.index.rank(winner, known, i)
        return equal and entry.rule.hints != winner.rule.hints
