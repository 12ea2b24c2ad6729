"""Comparison of two sets of hints, per (file, attribute, value).

Group names are arbitrary labels, so they count as equal if they name the same set of files:
each predicted group is matched with at most one true group, largest overlap first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict, cast

import numpy as np
import pyarrow as pa
from msgspec import Meta

from tracehint.analyzer.arrays import Bools, Ints, group_equal_rows, rank_values
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.declared import declared_of
from tracehint.hintgen.hint_columns import HintColumns, PreparedRun, baseline, columns_of, prepare
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.learn.facts import facts_of
from tracehint.hintgen.match.match import Declared, Matcher
from tracehint.schemas.fields import Count, Positive, Share

LOSSES = {
    "copies": "another number of copies: the readers are not known",
    "group": "another group: the name does not show it",
    "block": "another block size",
    "pattern": "the hint of another pattern",
    "missed": "no hint where there is one",
    "false": "a hint where there is none",
}


class Ratios(TypedDict):
    """Shares of the hints that were given, and of those that were due."""

    precision: Share
    recall: Share


class TallyRow(Ratios):
    """The same with the numbers of units."""

    hits: Count
    false_hits: Count
    missed: Count
    by_bytes: Ratios


class WrongHint(TypedDict):
    path: str
    hint: str
    said: str
    true: str
    why: str


class ScoreDocument(TallyRow):
    """Output of `tracehint hints B --score OTHER --format json`. Unit: (file, attribute, value).
    Fields are only ever added. `per_pattern`: by the pattern that OTHER has, for false hits the one
    that the rule says. `given`: what the rules knew of OTHER; `knows`: the same in words.
    `by_path_alone`: the rules knew each path for itself; `by_names`: the paths of all files
    together, no tasks. `baseline`: a lookup of producing and consuming type, without names.
    `units`: those that OTHER's own analysis gives. `losses`: why units are wrong -> how many."""

    schema: Literal["tracehint.score/1"]
    per_pattern: dict[str, TallyRow]
    given: Annotated[str, Meta(extra_json_schema={"enum": [*KNOWS]})]
    knows: str
    by_path_alone: TallyRow
    by_names: TallyRow
    baseline: TallyRow
    rules: Count
    nodes: Positive
    units: Count
    losses: dict[str, Count]
    wrong: list[WrongHint]


@dataclass
class Tally:
    """Hits, false hits and misses: units, and bytes of their files."""

    units: Counter[str] = field(default_factory=Counter)  # hits, false_hits, missed
    sizes: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, units: int, amount: int) -> None:
        """Add units on files of `amount` bytes in total."""
        self.units[what] += units
        self.sizes[what] += amount

    def as_json(self) -> TallyRow:
        """Return precision and recall; 1.0 if no hint was given, or none was due."""
        return {
            **_ratios(self.units),
            "hits": self.units["hits"],
            "false_hits": self.units["false_hits"],
            "missed": self.units["missed"],
            "by_bytes": _ratios(self.sizes),
        }


def _ratios(count: Counter[str]) -> Ratios:
    def share(bad: str) -> float:
        return good / (good + count[bad]) if good + count[bad] else 1.0

    good = count["hits"]
    return {"precision": share("false_hits"), "recall": share("missed")}


@dataclass
class Score:
    """Result of one comparison."""

    total: Tally = field(default_factory=Tally)
    per_pattern: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    wrong: list[tuple[bytes, str, str, str]] = field(default_factory=list)  # path, name, hint, true
    losses: Counter[str] = field(default_factory=Counter)  # text of LOSSES -> units


@dataclass(frozen=True)
class _Units:
    """Both sets aligned: a row per unit of either, texts as indexes into `texts`; 0: "" (none).

    Sorted by file, then by text of the attribute.
    """

    file: Ints
    name: Ints
    value: Ints
    pattern: Ints
    wanted: Ints
    real: Ints
    texts: Sequence[str]


def compare(given: HintColumns, true: HintColumns, size: Ints, sample: int = 50) -> Score:
    """Count hits and misses per (file, attribute, value). `size`: bytes of each file of the run.

    The first `sample` wrong units, in the order of files, are kept.
    """
    units = _align_units(given, true)
    amount = size[units.file]
    same = _same_groups(units)
    hit = (units.wanted > 0) & ((units.value == units.wanted) | (same == units.wanted))
    score = Score()
    _count(score, "hits", hit, units.real, amount, units.texts)
    _count(score, "false_hits", ~hit & (units.value > 0), units.pattern, amount, units.texts)
    _count(score, "missed", ~hit & (units.wanted > 0), units.real, amount, units.texts)
    _explain(score, units, np.flatnonzero(~hit), given.paths, sample)
    return score


def why_wrong(name: str, given: str, wanted: str) -> str:
    """Return the reason why a unit is wrong: a text of LOSSES."""
    if not given or not wanted:
        return LOSSES["false" if given else "missed"]
    if name == "Replication":
        return LOSSES["copies"]
    if name == "BlockSize":
        return LOSSES["block"]
    same = given.partition("|")[0] == wanted.partition("|")[0] and "|" in given
    return LOSSES["group" if same else "pattern"]


def _align_units(given: HintColumns, true: HintColumns) -> _Units:
    texts = sorted({"", *given.texts, *true.texts})
    code = {text: number for number, text in enumerate(texts)}
    sides = []
    for side in (given, true):
        ours = np.array([code[text] for text in side.texts], np.int64)
        sides.append([ours[c] if len(c) else c for c in (side.name, side.value, side.pattern)])
    names, name = rank_values(np.concatenate([side[0] for side in sides]))
    unit, place = rank_values(np.concatenate([given.file, true.file]) * max(1, len(names)) + name)
    columns: list[Ints] = []
    for at, (_, value, pattern) in zip(np.split(place, [len(given)]), sides, strict=True):
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
    """Count the reasons why units are wrong, and keep the first of these units."""
    texts = units.texts
    rows = np.stack([units.name[wrong], units.value[wrong], units.wanted[wrong]], axis=1)
    first, kind = group_equal_rows(*rows.T)
    count = np.bincount(kind, minlength=len(first)).tolist()
    for (name, value, wanted), n in zip(rows[first].tolist(), count, strict=True):
        score.losses[why_wrong(texts[name], texts[value], texts[wanted])] += n
    for file, row in zip(units.file[wrong[:sample]].tolist(), rows[:sample].tolist(), strict=True):
        score.wrong.append((paths[file], texts[row[0]], texts[row[1]], texts[row[2]]))


def _same_groups(units: _Units) -> Ints:
    """Return the true group matched with the predicted group of each unit; -1: none."""
    texts = units.texts
    kinds = np.array([_group_kind(text) for text in texts], np.int64)
    both = (kinds[units.value] > 0) & (kinds[units.value] == kinds[units.wanted])
    pair, count = np.unique(units.value[both] * len(texts) + units.wanted[both], return_counts=True)
    out = np.full(len(texts), -1, np.int64)
    taken: set[int] = set()
    # texts are sorted: equal overlaps are ordered by text
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


# facts of the other run that rules may use -> description
KNOWS = {
    "path": "each path for itself",
    "names": "the paths of all files together",
    "graph": "paths, and the declared tasks with their types and files",
}


def predict_hints(
    matcher: Matcher, run: PreparedRun, *, graph: bool, nodes: int, names: bool = False
) -> HintColumns:
    """Return the rules' hints for the paths of a run. `names`: rules may use all paths."""
    known = declared_of(run.facts) if graph else Declared()
    every = frozenset(run.paths) if names else ()
    codes, found = matcher.outcomes(run.paths, known, nodes, every)
    hinted = (
        tuple((h.name, h.value, one.pattern) for h in one.hints if h.level == "placement")
        for one in found
    )
    return columns_of(run.paths, codes, hinted)


def score(
    hints: HintFile,
    learned_from: Sequence[Analysis],
    other: Analysis,
    *,
    given: str = "auto",
    facts: Sequence[pa.Table] | None = None,
) -> dict[str, Any]:
    """Return the JSON of `hints B --score OTHER` (ScoreDocument).

    `given`: graph, names, path, or auto (graph if OTHER declares one, else path).
    `facts`: those of the runs in `learned_from`, if they exist already.
    """
    facts = [facts_of(analysis) for analysis in learned_from] if facts is None else facts
    again = next((f for a, f in zip(learned_from, facts, strict=True) if a is other), None)
    return score_prepared(hints, pa.concat_tables(facts), prepare(other, again), given=given)


def score_prepared(
    hints: HintFile, learned: pa.Table, other: PreparedRun, *, given: str = "auto"
) -> dict[str, Any]:
    """Do the work of `score`, from the facts of the runs that rules were learned from."""
    nodes, true, size = other.nodes, other.true, other.size
    if given == "auto":
        given = "graph" if other.declared else "path"
    matcher = Matcher(hints)
    results = {
        kind: compare(
            predict_hints(
                matcher, other, graph=kind == "graph", nodes=nodes, names=kind == "names"
            ),
            true,
            size,
        )
        for kind in dict.fromkeys(("path", "names", given))
    }
    main = results[given]
    plain = compare(baseline(learned, other), true, size)
    document: ScoreDocument = {
        "schema": "tracehint.score/1",
        **main.total.as_json(),
        "per_pattern": {
            name: main.per_pattern[name].as_json() for name in sorted(main.per_pattern)
        },
        "given": given,
        "knows": KNOWS[given],
        "by_path_alone": results["path"].total.as_json(),
        "by_names": results["names"].total.as_json(),
        "baseline": plain.total.as_json(),
        "rules": len(hints.rules),
        "nodes": nodes,
        "units": len(true),
        "losses": dict(sorted(main.losses.items())),
        "wrong": [_describe_wrong(*entry) for entry in main.wrong],
    }
    return cast("dict[str, Any]", document)


def _describe_wrong(path: bytes, name: str, value: str, wanted: str) -> WrongHint:
    return {
        "path": to_text(path),
        "hint": name,
        "said": value,
        "true": wanted,
        "why": why_wrong(name, value, wanted),
    }


def score_text(data: dict[str, Any]) -> str:
    """Format the score as a text table."""
    rows = [("all", data), *data["per_pattern"].items()]
    lines = [f"{'pattern':<16}{'precision':>10}{'recall':>10}{'hits':>8}{'false':>8}{'missed':>8}"]
    for name, row in rows:
        lines.append(
            f"{name:<16}{row['precision']:>10.4f}{row['recall']:>10.4f}"
            f"{row['hits']:>8}{row['false_hits']:>8}{row['missed']:>8}"
        )
    size, plain, alone = data["by_bytes"], data["baseline"], data["by_path_alone"]
    names = data["by_names"]
    lines += [
        f"{'by bytes':<16}{size['precision']:>10.4f}{size['recall']:>10.4f}",
        f"{'by path alone':<16}{alone['precision']:>10.4f}{alone['recall']:>10.4f}",
        f"{'by all names':<16}{names['precision']:>10.4f}{names['recall']:>10.4f}",
        f"{'types only':<16}{plain['precision']:>10.4f}{plain['recall']:>10.4f}   (baseline: "
        "producing and consuming type, no names)",
        f"rules used: {data['knows']}",
    ]
    lines += [f"{count:>8} wrong: {why}" for why, count in data["losses"].items()]
    for row in data["wrong"][:10]:
        lines.append(
            f"  {row['path']} {row['hint']}: hinted {row['said'] or 'nothing'}, "
            f"expected {row['true'] or 'nothing'}"
        )
    return "\n".join(lines) + "\n"
