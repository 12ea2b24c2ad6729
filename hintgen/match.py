"""Which rule fires for a path, and with which values.

    matches = match(hint_file, [b"proj/p_tile_7.fits", ...])

What a caller may know before a run, and nothing else, goes in: the path, and
(where the engine's graph is at hand) the declared producing and consuming
tasks with their types. The most specific rule that fits wins; two that are
equally specific and disagree give a conflict and no hint. Rules are indexed
by the literal end of their template, so the cost is per path, not per rule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracehint.hintgen.formulas import Scale, value_of
from tracehint.hintgen.model import Hint, HintFile, Rule
from tracehint.hintgen.pathtext import to_text
from tracehint.hintgen.template import Template, parse


@dataclass(frozen=True)
class Declared:
    """Columns known before the run, one entry per path; None: the whole column is unknown.

    `producer_types[i]` is None for an input of the workflow. `consumers` and
    `producers` are task ids (any hashable, stable text). `sizes` only where
    the file exists already (inputs).
    """

    producer_types: Sequence[str | None] | None = None
    consumer_types: Sequence[Sequence[str]] | None = None
    producers: Sequence[Sequence[str]] | None = None
    consumers: Sequence[Sequence[str]] | None = None
    sizes: Sequence[int | None] | None = None


@dataclass(frozen=True)
class Match:
    """What the rules say about one path.

    `reason`: fired, no_rule, excluded, types (the declared types contradict),
    needs_types (the path alone does not tell), scale, conflict.
    """

    path: bytes
    rule: Rule | None
    hints: tuple[Hint, ...]  # with the values for this file
    pattern: str  # "" when no rule fired
    reason: str
    candidates: tuple[tuple[str, str], ...] = ()  # (rule id, why it did not win)

    @property
    def values(self) -> dict[str, str]:
        """Hint name -> value."""
        return {hint.name: hint.value for hint in self.hints}


@dataclass(frozen=True)
class _Entry:
    rule: Rule
    template: Template
    exclude: tuple[Template, ...]
    producers: frozenset[str]
    consumers: frozenset[str]
    order: tuple[int, int, int]


class Matcher:
    """Compiled rules of one hint file; reusable for many batches."""

    def __init__(self, hints: HintFile) -> None:
        self.rules = hints.rules
        self._by_suffix: dict[int, dict[bytes, list[_Entry]]] = defaultdict(dict)
        known_producers: set[str] = set()
        known_consumers: set[str] = set()
        for rule in hints.rules:
            template = parse(rule.template)
            entry = _Entry(
                rule, template, tuple(parse(text) for text in rule.exclude),
                frozenset(rule.producers), frozenset(rule.consumers),
                (*template.specificity, int(rule.conditions.get("types") == "required")),
            )  # fmt: skip
            known_producers |= entry.producers
            known_consumers |= entry.consumers
            suffix = template.suffix[-24:]
            self._by_suffix[len(suffix)].setdefault(suffix, []).append(entry)
        self._producers = frozenset(known_producers)
        self._consumers = frozenset(known_consumers)
        self._suffixes = sorted(self._by_suffix.items())

    def candidates(self, path: bytes) -> list[_Entry]:
        """Rules whose template matches, most specific first."""
        found = [
            entry
            for length, table in self._suffixes
            for entry in table.get(path[len(path) - length :] if length else b"", ())
            if length <= len(path) and entry.template.match(path) is not None
        ]
        return sorted(found, key=lambda e: (e.order, e.rule.id), reverse=True)

    def objection(self, entry: _Entry, path: bytes, known: Declared, i: int) -> str:
        """Why a rule whose template matches must not fire; empty: it may."""
        if any(other.match(path) is not None for other in entry.exclude):
            return "excluded"
        needs = entry.rule.conditions.get("types") == "required"
        if known.producer_types is None and known.consumer_types is None:
            return "needs_types" if needs else ""
        if known.producer_types is not None:
            made_by = known.producer_types[i]
            if (made_by is None) != (not entry.producers):
                return "types"
            strange = made_by is not None and made_by not in entry.producers
            if strange and (needs or made_by in self._producers):
                return "types"
        if known.consumer_types is not None:
            return self._consumers_object(entry, frozenset(known.consumer_types[i]), needs)
        return ""

    def _consumers_object(self, entry: _Entry, read_by: frozenset[str], needs: bool) -> str:
        if bool(read_by) != bool(entry.consumers):
            return "types"
        if needs:
            return "" if read_by <= entry.consumers else "types"
        familiar = read_by & self._consumers
        return "types" if familiar and familiar.isdisjoint(entry.consumers) else ""

    def match(
        self, paths: Sequence[bytes], known: Declared | None = None, nodes: int | None = None
    ) -> list[Match]:
        """One Match per path, in order."""
        known = known or Declared()
        picked = [self._pick(path, known, i) for i, path in enumerate(paths)]
        degenerate = _degenerate(picked, known)
        return [
            self._finish(path, pick, known, i, nodes, i in degenerate)
            for i, (path, pick) in enumerate(zip(paths, picked, strict=True))
        ]

    def _pick(
        self, path: bytes, known: Declared, i: int
    ) -> tuple[_Entry | None, str, list[tuple[str, str]]]:
        reason = "no_rule"
        others: list[tuple[str, str]] = []
        winner: _Entry | None = None
        for entry in self.candidates(path):
            why = self.objection(entry, path, known, i)
            if why:
                reason = why if winner is None and reason == "no_rule" else reason
                others.append((entry.rule.id, why))
            elif winner is None:
                winner = entry
            elif entry.order == winner.order and entry.rule.hints != winner.rule.hints:
                return None, "conflict", [*others, (winner.rule.id, "tie"), (entry.rule.id, "tie")]
            else:
                others.append((entry.rule.id, "less_specific"))
        return winner, "fired" if winner else reason, others

    def _finish(
        self, path: bytes, pick: tuple[_Entry | None, str, list[tuple[str, str]]],
        known: Declared, i: int, nodes: int | None, degenerate: bool,
    ) -> Match:  # fmt: skip
        entry, reason, others = pick
        if entry is None:
            return Match(path, None, (), "", reason, tuple(others))
        rule = entry.rule
        hints = rule.otherwise if degenerate else rule.hints
        pattern = rule.otherwise_pattern if degenerate else rule.pattern
        if degenerate and not hints:
            return Match(path, None, (), "", "scale", ((rule.id, "scale"), *others))
        by = next((h.formula.get("by") for h in hints if h.formula.get("fn") == "group"), None)
        scale = Scale(
            captures=entry.template.match(path) or (),
            readers=len(known.consumers[i]) if known.consumers is not None else None,
            nodes=nodes,
            size=known.sizes[i] if known.sizes is not None else None,
            task=_only(known.producers if by == "producer" else known.consumers, i),
        )
        fixed = rule.per_file.get(to_text(path), {}) if rule.per_file else {}
        final = tuple(
            Hint(h.name, fixed.get(h.name) or value_of(h, scale), h.when, {}, h.level)
            for h in hints
        )
        return Match(path, rule, final, pattern, "fired", tuple(others))


def _only(column: Sequence[Sequence[str]] | None, i: int) -> str | None:
    return column[i][0] if column is not None and len(column[i]) == 1 else None


def _degenerate(
    picked: Iterable[tuple[_Entry | None, str, list[tuple[str, str]]]], known: Declared
) -> set[int]:
    """Positions where the declared scale is below what the rule's pattern needs."""
    out: set[int] = set()
    if known.consumers is None:
        return out
    members: Counter[str] = Counter()
    waiting: list[tuple[int, str, int]] = []
    for i, (entry, _, _) in enumerate(picked):
        if entry is None:
            continue
        conditions = entry.rule.conditions
        readers = len(known.consumers[i])
        low, high = conditions.get("min_readers", 0), conditions.get("max_readers", 1 << 62)
        if not low <= readers <= high:
            out.add(i)
        elif conditions.get("min_fan_in") and readers == 1:
            task = known.consumers[i][0]
            members[task] += 1
            waiting.append((i, task, conditions["min_fan_in"]))
    out |= {i for i, task, least in waiting if members[task] < least}
    return out


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
