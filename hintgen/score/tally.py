"""Two sets of hints compared, per (file, attribute, value).

Group names are labels of our own making, so they count as equal when they name the same set of
files: each predicted group is matched with at most one true group, largest overlap first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, alike, numbered
from tracehint.hintgen.score.said import Said

LOSSES = {
    "copies": "another number of copies: the readers are not known",
    "group": "another group: the name does not tell it",
    "block": "another block size",
    "pattern": "the hint of another pattern",
    "missed": "no hint where there is one",
    "false": "a hint where there is none",
}


@dataclass
class Tally:
    """Hits, false hits and misses: units, and bytes of their files."""

    units: Counter[str] = field(default_factory=Counter)  # hits, false_hits, missed
    sizes: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, units: int, amount: int) -> None:
        """Units on files of `amount` bytes together."""
        self.units[what] += units
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


@dataclass(frozen=True)
class _Units:
    """Both sets side by side: one row per unit of either, texts as numbers into `texts`; 0: "".

    In the order of files, then attributes as texts.
    """

    file: Ints
    name: Ints
    value: Ints
    pattern: Ints
    wanted: Ints
    real: Ints
    texts: Sequence[str]


def compare(said: Said, true: Said, size: Ints, sample: int = 50) -> Score:
    """Hits and misses per (file, attribute, value). `size`: bytes of each file of the run.

    Of the wrong units the first `sample`, in the order of files, are kept.
    """
    units = _beside(said, true)
    amount = size[units.file]
    same = _same_groups(units)
    hit = (units.wanted > 0) & ((units.value == units.wanted) | (same == units.wanted))
    score = Score()
    _count(score, "hits", hit, units.real, amount, units.texts)
    _count(score, "false_hits", ~hit & (units.value > 0), units.pattern, amount, units.texts)
    _count(score, "missed", ~hit & (units.wanted > 0), units.real, amount, units.texts)
    _explain(score, units, np.flatnonzero(~hit), said.paths, sample)
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


def _beside(said: Said, true: Said) -> _Units:
    texts = sorted({"", *said.texts, *true.texts})
    code = {text: number for number, text in enumerate(texts)}
    sides = []
    for side in (said, true):
        ours = np.array([code[text] for text in side.texts], np.int64)
        sides.append([ours[c] if len(c) else c for c in (side.name, side.value, side.pattern)])
    names, name = numbered(np.concatenate([side[0] for side in sides]))
    unit, place = numbered(np.concatenate([said.file, true.file]) * max(1, len(names)) + name)
    columns: list[Ints] = []
    for at, (_, value, pattern) in zip(np.split(place, [len(said)]), sides, strict=True):
        for column in (value, pattern):
            spread = np.zeros(len(unit), np.int64)
            spread[at] = column
            columns.append(spread)
    value, pattern, wanted, real = columns
    file, name = np.divmod(unit, max(1, len(names)))
    return _Units(file, names[name], value, pattern, wanted, real, texts)


def _count(
    score: Score, what: str, chosen: Bools, pattern: Ints, amount: Ints, texts: Sequence[str]
) -> None:
    kind = pattern[chosen]
    count = np.bincount(kind, minlength=len(texts))
    sizes = np.zeros(len(texts), np.int64)
    np.add.at(sizes, kind, amount[chosen])
    for code in np.flatnonzero(count).tolist():
        score.total.add(what, int(count[code]), int(sizes[code]))
        score.per_pattern[texts[code]].add(what, int(count[code]), int(sizes[code]))


def _explain(score: Score, units: _Units, wrong: Ints, paths: Sequence[bytes], sample: int) -> None:
    """Why units are wrong, and the first of them."""
    texts = units.texts
    rows = np.stack([units.name[wrong], units.value[wrong], units.wanted[wrong]], axis=1)
    first, kind = alike(*rows.T)
    count = np.bincount(kind, minlength=len(first)).tolist()
    for (name, value, wanted), n in zip(rows[first].tolist(), count, strict=True):
        score.losses[why_wrong(texts[name], texts[value], texts[wanted])] += n
    for file, row in zip(units.file[wrong[:sample]].tolist(), rows[:sample].tolist(), strict=True):
        score.wrong.append((paths[file], texts[row[0]], texts[row[1]], texts[row[2]]))


def _same_groups(units: _Units) -> Ints:
    """The true group that the predicted one of each unit stands for; -1: none."""
    texts = units.texts
    kinds = np.array([_group_kind(text) for text in texts], np.int64)
    both = (kinds[units.value] > 0) & (kinds[units.value] == kinds[units.wanted])
    pair, count = np.unique(units.value[both] * len(texts) + units.wanted[both], return_counts=True)
    out = np.full(len(texts), -1, np.int64)
    taken: set[int] = set()
    # texts are sorted, so that equal overlaps go by their texts
    for at in np.lexsort((pair, -count)).tolist():
        value, wanted = divmod(int(pair[at]), len(texts))
        if out[value] < 0 and wanted not in taken:
            out[value] = wanted
            taken.add(wanted)
    return out[units.value]


def _group_kind(text: str) -> int:
    kind, bar, _group = text.partition("|")
    return ("", "collocation", "distribute").index(kind) if bar and kind in _GROUPED else 0


_GROUPED = ("collocation", "distribute")
