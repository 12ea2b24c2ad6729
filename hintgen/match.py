"""Which rule fires for a path, and with which values.

    matches = match(hint_file, [b"proj/p_tile_7.fits", ...])

What a caller may know before a run, and nothing else, goes in: the path, and
(where the engine's graph is at hand) the declared producing and consuming
tasks with their types. The most specific rule that fits wins; two that are
equally specific and disagree give a conflict and no hint. Rules are indexed
by the literal end of their template, so the cost is per path, not per rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass

from tracehint.hintgen.company import in_company, readers_by_rule
from tracehint.hintgen.formulas import Scale, value_of
from tracehint.hintgen.known import Declared, Match
from tracehint.hintgen.model import Hint, HintFile, Rule
from tracehint.hintgen.pathtext import to_text
from tracehint.hintgen.template import Template, parse
from tracehint.hintgen.uses import pair_counts, uses_of

__all__ = ["INPUT", "Declared", "Match", "Matcher", "match"]

INPUT = ""  # among a rule's producers: inputs of the workflow, which no task writes


@dataclass(frozen=True)
class _Entry:
    rule: Rule
    template: Template
    exclude: tuple[Template, ...]
    producers: frozenset[str]
    consumers: frozenset[str]
    beside: tuple[Template, ...]
    order: tuple[int, int, int]


_Pick = tuple[_Entry | None, str, list[tuple[str, str]]]  # winner, reason, (rule id, why not)


class Matcher:
    """Compiled rules of one hint file; reusable for many batches."""

    def __init__(self, hints: HintFile) -> None:
        self.rules = hints.rules
        self._by_suffix: dict[int, dict[bytes, list[_Entry]]] = defaultdict(dict)
        self._by_producer: dict[str, list[_Entry]] = defaultdict(list)
        known_producers: set[str] = set()
        known_consumers: set[str] = set()
        for rule in hints.rules:
            template = parse(rule.template)
            entry = _Entry(
                rule, template, tuple(parse(text) for text in rule.exclude),
                frozenset(rule.producers or (INPUT,)),
                frozenset(rule.consumers),
                tuple(parse(text) for text in rule.conditions.get("beside", ())),
                _order(rule, template),
            )  # fmt: skip
            known_producers |= entry.producers
            known_consumers |= entry.consumers
            if rule.conditions.get("needs") == "types" and template.parts[0] == "dirs":
                for name in entry.producers:
                    self._by_producer[name].append(entry)
                continue
            suffix = template.suffix[-24:]
            self._by_suffix[len(suffix)].setdefault(suffix, []).append(entry)
        self._producers = frozenset(known_producers)
        self._consumers = frozenset(known_consumers)
        self._suffixes = sorted(self._by_suffix.items())

    def candidates(self, path: bytes, known: Declared, i: int) -> list[_Entry]:
        """Rules whose template matches, most specific first.

        Rules for declared types only where a type is declared: there may be one per
        pair of types, and most fit any name.
        """
        found = [
            entry
            for length, table in self._suffixes
            for entry in table.get(path[len(path) - length :] if length else b"", ())
            if length <= len(path) and entry.template.match(path) is not None
        ]
        if known.producer_types is not None:
            found += [
                entry
                for entry in self._by_producer.get(known.producer_types[i] or INPUT, ())
                if entry.template.match(path) is not None
            ]
        return sorted(found, key=lambda e: (self._rank(e, known, i), e.rule.id), reverse=True)

    def objection(
        self, entry: _Entry, path: bytes, known: Declared, i: int, names: Container[bytes] = ()
    ) -> str:
        """Why a rule whose template matches must not fire; empty: it may."""
        if any(other.match(path) is not None for other in entry.exclude):
            return "excluded"
        size = known.sizes[i] if known.sizes is not None else None
        if size is not None and size < entry.rule.conditions.get("min_size_bytes", 0):
            return "small"
        if entry.beside and not in_company(entry.template, entry.beside, path, names):
            return "names"
        wants = entry.rule.conditions.get("needs", "")
        needs = wants == "types"
        if wants and (known.producers is None or known.consumers is None):
            return "needs_graph"
        if known.producer_types is None and known.consumer_types is None:
            return "needs_graph" if needs else ""
        if known.producer_types is not None:
            made_by = known.producer_types[i]
            strange = (made_by or INPUT) not in entry.producers
            if made_by is None or entry.producers == {INPUT}:
                return "types" if strange else self._consumers_object(entry, known, i, needs)
            if strange and (needs or made_by in self._producers):
                return "types"
        return self._consumers_object(entry, known, i, needs)

    def _consumers_object(self, entry: _Entry, known: Declared, i: int, needs: bool) -> str:
        if known.consumer_types is None:
            return ""
        read_by = frozenset(known.consumer_types[i])
        if bool(read_by) != bool(entry.consumers):
            return "types"
        if needs:
            return "" if read_by <= entry.consumers else "types"
        familiar = read_by & self._consumers
        return "types" if familiar and familiar.isdisjoint(entry.consumers) else ""

    def match(
        self, paths: Sequence[bytes], known: Declared | None = None, nodes: int | None = None,
        names: Collection[bytes] = (),
    ) -> list[Match]:  # fmt: skip
        """One Match per path, in order. `names`: all files of the run, where they are known."""
        known = known or Declared()
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
        if names and known.consumers is None:
            readers = readers_by_rule(
                [entry.rule for entry, _, _ in picks if entry is not None], names
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
        reason = "no_rule"
        others: list[tuple[str, str]] = []
        winner: _Entry | None = None
        for entry in self.candidates(path, known, i):
            why = self.objection(entry, path, known, i, names)
            if not why and 0 < entry.rule.conditions.get("per_pair", alike) < alike:
                why = "extra"
            if why:
                # A rung for any name of some task types is no news about this name.
                news = why == "extra" or entry.rule.evidence.get("level") != 2
                if winner is None and reason == "no_rule" and news:
                    reason = why
                others.append((entry.rule.id, why))
            elif winner is None:
                winner = entry
            elif (
                self._rank(entry, known, i) == self._rank(winner, known, i)
                and entry.rule.hints != winner.rule.hints
            ):
                return None, "conflict", [*others, (winner.rule.id, "tie"), (entry.rule.id, "tie")]
            else:
                others.append((entry.rule.id, "less_specific"))
        return winner, "fired" if winner else reason, others

    @staticmethod
    def _rank(entry: _Entry, known: Declared, i: int) -> tuple[int, int, int, int]:
        """Specificity; between equals, the rule for exactly these consumers goes first."""
        exact = known.consumer_types is not None and (
            entry.consumers == frozenset(known.consumer_types[i])
        )
        return (*entry.order, int(exact))

    def _finish(
        self, path: bytes, pick: _Pick, known: Declared, i: int, nodes: int | None,
        use: str | None, readers: Mapping[str, float],
    ) -> Match:  # fmt: skip
        entry, reason, others = pick
        if entry is None:
            return Match(path, None, (), "", reason, tuple(others))
        rule = entry.rule
        pattern, hints = rule.pattern, rule.hints
        if use and rule.uses and use not in rule.uses:
            variant = next((v for v in rule.variants if v.use == use), None)
            if variant is None or not variant.hints:
                return Match(path, None, (), "", "use", ((rule.id, "use"), *others))
            pattern, hints = variant.pattern, variant.hints
        by = next((h.formula.get("by") for h in hints if h.formula.get("fn") == "group"), None)
        scale = Scale(
            captures=entry.template.match(path) or (),
            readers=len(known.consumers[i])
            if known.consumers is not None
            else readers.get(rule.id),
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


def _order(rule: Rule, template: Template) -> tuple[int, int, int]:
    """Specificity; a placeholder whose text other names must share as well says more."""
    wild, fixed = template.specificity
    known_by_company = 8 if rule.conditions.get("beside") else 0
    return wild + known_by_company, fixed, len(str(rule.conditions.get("needs", "")))


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
