"""The rules of a hint file, indexed: which fit a path, and what keeps one of them from firing.

Rules are indexed by the literal end of their template, so the cost is per path, not per rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass

from tracehint.hintgen.hints.model import INPUT, Rule
from tracehint.hintgen.hints.template import Template, parse
from tracehint.hintgen.match.company import in_company
from tracehint.hintgen.match.known import Declared


@dataclass(frozen=True)
class Entry:
    """A rule with its templates parsed."""

    rule: Rule
    template: Template
    exclude: tuple[Template, ...]
    producers: frozenset[str]
    consumers: frozenset[str]
    beside: tuple[Template, ...]
    order: tuple[int, int, int]


class RuleIndex:
    """Compiled rules; reusable for many batches."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._by_suffix: dict[int, dict[bytes, list[Entry]]] = defaultdict(dict)
        self._by_producer: dict[str, list[Entry]] = defaultdict(list)
        known_producers: set[str] = set()
        known_consumers: set[str] = set()
        for rule in rules:
            template = parse(rule.template)
            entry = Entry(
                rule,
                template,
                tuple(parse(text) for text in rule.exclude),
                frozenset(rule.producers or (INPUT,)),
                frozenset(rule.consumers),
                tuple(parse(text) for text in rule.conditions.get("beside", ())),
                _order(rule, template),
            )
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

    def candidates(self, path: bytes, known: Declared, i: int) -> list[Entry]:
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
        return sorted(found, key=lambda e: (self.rank(e, known, i), e.rule.id), reverse=True)

    def objection(
        self, entry: Entry, path: bytes, known: Declared, i: int, names: Container[bytes] = ()
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

    def _consumers_object(self, entry: Entry, known: Declared, i: int, needs: bool) -> str:
        if known.consumer_types is None:
            return ""
        read_by = frozenset(known.consumer_types[i])
        if bool(read_by) != bool(entry.consumers):
            return "types"
        if needs:
            return "" if read_by <= entry.consumers else "types"
        familiar = read_by & self._consumers
        return "types" if familiar and familiar.isdisjoint(entry.consumers) else ""

    @staticmethod
    def rank(entry: Entry, known: Declared, i: int) -> tuple[int, int, int, int]:
        """Specificity; between equals, the rule for exactly these consumers goes first."""
        exact = known.consumer_types is not None and (
            entry.consumers == frozenset(known.consumer_types[i])
        )
        return (*entry.order, int(exact))


def _order(rule: Rule, template: Template) -> tuple[int, int, int]:
    """Specificity; a placeholder whose text other names must share as well says more."""
    wild, fixed = template.specificity
    known_by_company = 8 if rule.conditions.get("beside") else 0
    return wild + known_by_company, fixed, len(str(rule.conditions.get("needs", "")))
