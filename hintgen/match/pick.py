"""The rule for each path: found out once for all paths of which the same is known.

Names that differ in digits alone count as the same where no rule tells them apart
(hintgen/match/skeleton.py), and sizes where no rule's bound is between them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from tracehint.hintgen.hints.fitting import Places, Subject, TooCostlyError, texts_at
from tracehint.hintgen.hints.model import Rule
from tracehint.hintgen.match.known import Declared
from tracehint.hintgen.match.ruleindex import Entry, RuleIndex
from tracehint.hintgen.match.skeleton import MOST, Skeletons, skeleton_of
from tracehint.limits import limit

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

    paths: Sequence[bytes]
    known: Declared
    alike: Sequence[int] | None
    names: Container[bytes]


class Picker:
    """Finds the rules of many paths, and remembers what it found out."""

    def __init__(self, index: RuleIndex, rules: Sequence[Rule]) -> None:
        self.index = index
        self._skeletons = Skeletons(index.templates)
        self._bounds = sorted({r.conditions.get("min_size_bytes", 0) for r in rules})
        self.remembered: dict[Alike, Pick] = {}

    def picks(self, asked: AskedPaths) -> list[Pick]:
        """One per path; equal ones are the same object."""
        most = limit("match-work")
        found: dict[Alike, Pick | None] = {}
        picks: list[Pick] = []
        for i, key in enumerate(self._keys(asked, most)):
            pick = found.get(key)
            if pick is None:
                pick, shared = self._looked_up(asked, i, key, most)
                found[key] = pick if shared else None
            picks.append(pick)
        return picks

    def _keys(self, asked: AskedPaths, most: int) -> Iterator[Alike]:
        """What the pick of each path follows from."""
        known = asked.known
        skeletons = [skeleton_of(path) for path in asked.paths]
        apart = {name for name in set(skeletons) if not self._skeletons.alike(name, most)}
        columns: list[Any] = [
            [path if short in apart else short
             for short, path in zip(skeletons, asked.paths, strict=True)] if apart else skeletons,
            repeat(most),
            repeat(known.producers is None or known.consumers is None),
            asked.alike if asked.alike is not None else repeat(0),
            repeat(False) if known.producer_types is None else known.producer_types,
            repeat(False) if known.consumer_types is None else map(tuple, known.consumer_types),
            repeat(None) if known.sizes is None else map(self._size_class, known.sizes),
            repeat(False) if known.makers is None else known.makers,
        ]  # fmt: skip  # a table
        return zip(*columns, strict=False)

    def _size_class(self, size: int | None) -> int | None:
        """How many bounds of rules a size reaches."""
        return None if size is None else bisect_right(self._bounds, size)

    def _looked_up(self, asked: AskedPaths, i: int, key: Alike, most: int) -> tuple[Pick, bool]:
        """The pick of a path, and whether all with the same key have it."""
        before = self.remembered.get(key)
        if before is not None:
            return before, True
        subject, known = Subject(asked.paths[i], most), self.index.knows(asked.paths[i])
        try:
            pick = self._best(subject, asked, i)
        except TooCostlyError:
            if known:  # what it spares is counted, but what it found out on the way is not there
                self.index.forget(asked.paths[i])
                return self._looked_up(asked, i, key, most)
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
        known, alike = asked.known, asked.alike[i] if asked.alike is not None else 0
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
