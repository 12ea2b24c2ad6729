"""The rules of a hint file, indexed: which fit a path, and what keeps one of them from firing.

Rules with equal templates share one look at it (hintgen/match/templateindex.py), so the cost
follows the rules that fit a path, not those of the file; and it ends at the limit match-work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tracehint.hintgen.hints.fitting import Places, Subject, texts_at
from tracehint.hintgen.hints.holes import DIRS
from tracehint.hintgen.hints.model import INPUT, Rule
from tracehint.hintgen.hints.template import Template, parse
from tracehint.hintgen.match.known import Declared
from tracehint.hintgen.match.siblings import has_siblings
from tracehint.hintgen.match.skeleton import MOST, has_digits
from tracehint.hintgen.match.templateindex import TemplateIndex

Fitting = tuple["Entry", Places]


@dataclass(frozen=True)
class Entry:
    """A rule with its templates parsed."""

    rule: Rule
    template: Template
    exclude: tuple[Template, ...]
    producers: frozenset[str]
    consumers: frozenset[str]
    siblings: tuple[Template, ...]
    order: tuple[int, int, int]

    @cached_property
    def names_decide(self) -> bool:
        """Whether its conditions may tell names apart that differ in digits alone."""
        return bool(self.siblings) or any(map(has_digits, self.exclude))


_WEIGHED = 3  # steps for weighing one rule whose template fits


class _Rules:
    """Rules by their templates."""

    def __init__(self) -> None:
        self._entries: dict[Template, list[Entry]] = defaultdict(list)

    def add(self, entry: Entry) -> None:
        self._entries[entry.template].append(entry)

    @cached_property
    def _index(self) -> TemplateIndex:
        return TemplateIndex(self._entries)

    def fitting(self, subject: Subject) -> Iterator[Fitting]:
        """Rules whose template fits. Raises TooCostlyError."""
        for template, where in self._index.fitting(subject):
            subject.spend(_WEIGHED * len(self._entries[template]))
            for entry in self._entries[template]:
                yield entry, where


class RuleIndex:
    """Compiled rules; reusable for many batches."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = _Rules()
        self._by_producer: dict[str, _Rules] = defaultdict(_Rules)
        known_producers: set[str] = set()
        known_consumers: set[str] = set()
        self.templates: list[Template] = []
        for rule in rules:
            entry = entry_of(rule)
            self.templates.append(entry.template)
            known_producers |= entry.producers
            known_consumers |= entry.consumers
            if rule.conditions.get("needs") == "types" and entry.template.parts[0] == DIRS:
                for name in entry.producers:
                    self._by_producer[name].add(entry)
            else:
                self._rules.add(entry)
        self._producers = frozenset(known_producers)
        self._consumers = frozenset(known_consumers)
        self._by_name: dict[bytes, tuple[int, list[Fitting]]] = {}

    def by_name(self, subject: Subject) -> list[Fitting]:
        """Rules whose template fits, whatever is declared: once for a name that is asked about
        with other knowledge again. Raises TooCostlyError."""
        work, found = self._by_name.get(subject.name, (0, None))
        if found is not None:
            subject.spend(work)
            return found
        found = list(self._rules.fitting(subject))
        if len(self._by_name) >= MOST:
            self._by_name.clear()
        self._by_name[subject.name] = subject.work, found
        return found

    def knows(self, name: bytes) -> bool:
        """Whether it is remembered which templates fit the name."""
        return name in self._by_name

    def forget(self, name: bytes) -> None:
        """Find that out anew when it is asked the next time."""
        self._by_name.pop(name, None)

    def candidates(self, subject: Subject, known: Declared, i: int) -> list[Fitting]:
        """Rules whose template fits and the places of its placeholders' texts, most specific first.

        Rules for declared types only where a type is declared: there may be one per
        pair of types, and most fit any name. Raises TooCostlyError.
        """
        found = self.by_name(subject)
        if known.producer_types is not None:
            made_by = known.producer_types[i] or INPUT
            if made_by in self._by_producer:
                found = [*found, *self._by_producer[made_by].fitting(subject)]
        if len(found) < 2:
            return found
        return sorted(found, key=lambda f: (self.rank(f[0], known, i), f[0].rule.id), reverse=True)

    def objection(
        self,
        entry: Entry,
        where: Places,
        subject: Subject,
        known: Declared,
        i: int,
        names: Container[bytes] = (),
    ) -> str:
        """Why a rule whose template fits must not fire; empty: it may. Raises TooCostlyError."""
        if _fits_one(entry.exclude, subject):
            return "excluded"
        size = known.sizes[i] if known.sizes is not None else None
        if size is not None and size < entry.rule.conditions.get("min_size_bytes", 0):
            return "small"
        if entry.siblings:
            caught = texts_at(where, subject.name)
            if not has_siblings(caught, entry.siblings, names):
                return "names"
        if entry.rule.made_by and known.makers is not None:
            return "" if known.makers[i] in entry.rule.made_by else "maker"
        wants = entry.rule.conditions.get("needs", "types" if entry.rule.made_by else "")
        needs = wants == "types"
        if wants and (known.producers is None or known.consumers is None):
            return "maker" if entry.rule.made_by else "needs_graph"
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


def _fits_one(templates: Sequence[Template], subject: Subject) -> bool:
    subject.spend(len(templates))
    return any(t.fit(subject) is not None for t in templates if t.middle in subject.name)


def entry_of(rule: Rule) -> Entry:
    """The rule with its templates parsed. Raises InputError."""
    template = parse(rule.template)
    return Entry(
        rule,
        template,
        tuple(parse(text) for text in rule.exclude),
        frozenset(rule.producers or (INPUT,)),
        frozenset(rule.consumers),
        tuple(parse(text) for text in rule.conditions.get("beside", ())),
        _order(rule, template),
    )


def _order(rule: Rule, template: Template) -> tuple[int, int, int]:
    """Specificity; a placeholder whose text other names must share as well says more."""
    wild, fixed = template.specificity
    known_by_siblings = 8 if rule.conditions.get("beside") else 0
    return wild + known_by_siblings, fixed, len(str(rule.conditions.get("needs", "")))
