"""Two sets of hints compared, per (file, attribute, value).

Group names are labels of our own making, so they count as equal when they name the same set of
files: each predicted group is matched with at most one true group, largest overlap first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LOSSES = {
    "copies": "another number of copies: the readers are not known",
    "group": "another group: the name does not tell it",
    "block": "another block size",
    "pattern": "the hint of another pattern",
    "missed": "no hint where there is one",
    "false": "a hint where there is none",
}

Unit = tuple[bytes, str]  # path, attribute
Said = dict[Unit, tuple[str, str]]  # -> value, pattern


@dataclass
class Tally:
    """Hits, false hits and misses: units, and bytes of their files."""

    units: Counter[str] = field(default_factory=Counter)  # hits, false_hits, missed
    sizes: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, amount: int) -> None:
        """One unit on a file of `amount` bytes."""
        self.units[what] += 1
        self.sizes[what] += amount

    def as_json(self) -> dict[str, Any]:
        """Precision and recall; 1.0 where nothing was said, or nothing was to be said."""
        counts = {what: self.units[what] for what in ("hits", "false_hits", "missed")}
        return {**_ratios(self.units), **counts, "by_bytes": _ratios(self.sizes)}


def _ratios(count: Counter[str]) -> dict[str, float]:
    good = count["hits"]
    return {
        name: good / (good + count[bad]) if good + count[bad] else 1.0
        for name, bad in (("precision", "false_hits"), ("recall", "missed"))
    }


@dataclass
class Score:
    """Result of one comparison."""

    total: Tally = field(default_factory=Tally)
    per_pattern: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    wrong: list[tuple[bytes, str, str, str]] = field(default_factory=list)  # path, name, said, true
    losses: Counter[str] = field(default_factory=Counter)  # text of LOSSES -> units


def compare(said: Said, true: Said, size: Mapping[bytes, int], sample: int = 50) -> Score:
    """Hits and misses per (file, attribute, value)."""
    score = Score()
    same = _same_groups(said, true)
    for unit in said.keys() | true.keys():
        value, pattern = said.get(unit, ("", ""))
        wanted, real = true.get(unit, ("", ""))
        amount = size.get(unit[0], 0)
        if wanted and (value == wanted or same.get(value) == wanted):
            _count(score, real, "hits", amount)
            continue
        if value:
            _count(score, pattern, "false_hits", amount)
        if wanted:
            _count(score, real, "missed", amount)
        score.losses[why_wrong(unit[1], value, wanted)] += 1
        if len(score.wrong) < sample:
            score.wrong.append((unit[0], unit[1], value, wanted))
    score.wrong.sort()
    return score


def why_wrong(name: str, said: str, wanted: str) -> str:
    """The kind of a wrong unit, in words: a text of LOSSES."""
    if not said or not wanted:
        return LOSSES["false" if said else "missed"]
    if name == "Replication":
        return LOSSES["copies"]
    if name == "BlockSize":
        return LOSSES["block"]
    same = said.partition("|")[0] == wanted.partition("|")[0] and "|" in said
    return LOSSES["group" if same else "pattern"]


def _count(score: Score, pattern: str, what: str, amount: int) -> None:
    for tally in (score.total, score.per_pattern[pattern]):
        tally.add(what, amount)


def _same_groups(said: Said, true: Said) -> dict[str, str]:
    """Predicted group value -> the true group value that it stands for."""
    overlap: Counter[tuple[str, str]] = Counter()
    for unit, (value, _) in said.items():
        wanted = true.get(unit, ("", ""))[0]
        kind, bar, _group = value.partition("|")
        if bar and kind in ("collocation", "distribute") and wanted.startswith(kind + "|"):
            overlap[value, wanted] += 1
    out: dict[str, str] = {}
    taken: set[str] = set()
    for (value, wanted), _ in sorted(overlap.items(), key=lambda item: (-item[1], item[0])):
        if value not in out and wanted not in taken:
            out[value] = wanted
            taken.add(wanted)
    return out
