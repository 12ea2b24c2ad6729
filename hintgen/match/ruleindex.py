"""Index of the rules of a hint file: matching rules of a path, and conditions that block a rule.

Rules with equal templates share one match of the template, so the cost depends on the rules
that match a path, not on those of the file; it is bounded by the limit match-work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from tracehint.hintgen.hints.mapping import readers_of
from tracehint.hintgen.hints.model import INPUT, Rule
from tracehint.hintgen.hints.template import (
    DIRS,
    Places,
    Subject,
    Template,
    TooCostlyError,
    parse,
    texts_at,
)
from tracehint.hintgen.match.known import Coded, Declared, encode_values
from tracehint.limits import limit

_Ends = tuple[bytes, bytes]  # truncated prefix and suffix
_Alike = dict[_Ends, list[tuple[bytes, Template]]]  # longest inner literal, template
_LENGTHS = (64, 32, 16, 8, 4, 2, 1, 0)  # lengths of truncated prefixes and suffixes


class TemplateIndex:
    """Hash tables of distinct templates by number of slashes and truncated ends."""

    def __init__(self, templates: Iterable[Template]) -> None:
        tables: dict[tuple[int, int], dict[int | None, _Alike]] = defaultdict(dict)
        for template in dict.fromkeys(templates):
            head, tail = cut(template.prefix), cut(template.suffix)
            ends = template.prefix[:head], template.suffix[len(template.suffix) - tail :]
            alike = tables[head, tail].setdefault(template.slashes, {})
            alike.setdefault(ends, []).append((template.middle, template))
        self._tables = sorted(tables.items())
        self._of_slashes: dict[int, list[tuple[int, int, list[_Alike]]]] = {}

    def _tables_for(self, slashes: int) -> list[tuple[int, int, list[_Alike]]]:
        """Return prefix length, suffix length and tables for names with this number of slashes."""
        found = self._of_slashes.get(slashes)
        if found is None:
            found = [
                (head, tail, [table[n] for n in (slashes, None) if n in table])
                for (head, tail), table in self._tables
                if slashes in table or None in table
            ]
            self._of_slashes[slashes] = found
        return found

    def find_fitting(self, subject: Subject) -> list[tuple[Template, Places]]:
        """Return matching templates with the extents of placeholders. Raises TooCostlyError."""
        found = []
        name = subject.name
        for head, tail, tables in self._tables_for(subject.slashes):
            if len(name) < max(head, tail):
                continue
            ends = name[:head], name[len(name) - tail :]
            for table in tables:
                alike = table.get(ends)
                if alike is None:
                    continue
                subject.spend(len(alike))
                for template in [t for middle, t in alike if middle in name]:
                    where = template.places(subject)
                    if where is not None:
                        found.append((template, where))
        return found


def cut(text: bytes) -> int:
    """Return the length to which a prefix or suffix is truncated for its table."""
    return next(length for length in _LENGTHS if length <= len(text))


_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
MAX_CACHED = 50_000  # maximum number of entries of a cache


def skeleton_of(name: bytes) -> bytes:
    """Replace each digit of a name by 0.

    >>> skeleton_of(b"run12/part_007.fits")
    b'run00/part_000.fits'
    """
    return name.translate(_ZEROS)


class AskedNames(Sequence[bytes]):
    """Names to match, with their skeletons cached for repeated matching."""

    def __init__(self, names: Sequence[bytes]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        return self._names[at]

    @cached_property
    def skeletons(self) -> Coded[bytes]:
        """Skeleton of each name."""
        return encode_values(map(skeleton_of, self._names))


def has_digits(template: Template) -> bool:
    """Whether the literals of a template have digits."""
    return any(isinstance(part, bytes) and _digit_in(part) for part in template.parts)


def _digit_in(text: bytes) -> bool:
    return text.translate(None, b"0123456789") != text


class Skeletons:
    """Decides whether one of `templates` distinguishes names by their digits."""

    def __init__(self, templates: Iterable[Template]) -> None:
        some = [template for template in templates if has_digits(template)]
        self._index = TemplateIndex(Template(tuple(map(_zeros, t.parts))) for t in some)
        self._any = bool(some)
        self._alike: dict[bytes, bool] = {}

    def alike(self, skeleton: bytes, most: int) -> bool:
        """Whether the same templates match all names of a skeleton. `most`: work limit."""
        if not self._any:
            return True
        found = self._alike.get(skeleton)
        if found is None:
            try:
                found = not self._index.find_fitting(Subject(skeleton, most))
            except TooCostlyError:
                found = False
            if len(self._alike) >= MAX_CACHED:
                self._alike.clear()
            self._alike[skeleton] = found
        return found


def _zeros(part: bytes | str) -> bytes | str:
    return part.translate(_ZEROS) if isinstance(part, bytes) else part


def has_siblings(
    caught: Sequence[bytes], siblings: Sequence[Template], names: Container[bytes]
) -> bool:
    """Whether all required sibling names of a path exist; `caught`: texts of its placeholders."""
    (stem, *_) = caught or (b"",)
    return all(
        b"".join(stem if isinstance(part, str) else part for part in other.parts) in names
        for other in siblings
    )


def readers_by_rule(
    rules: Iterable[tuple[Rule, int]], names: Collection[bytes]
) -> dict[str, float]:
    """Return rule -> readers per file, if names determine them. `rules`: with number of files.

    Empty if a name is too costly to count; the learned values apply then.
    """
    fired: dict[str, Rule] = {}
    files: Counter[str] = Counter()
    for rule, some in rules:
        fired[rule.id] = rule
        files[rule.id] += some
    count = _counts(fired.values(), names)
    if count is None:
        return {}
    found = {}
    for rule in fired.values():
        for hint in rule.hints:
            readers = readers_of(hint.formula, files[rule.id], count.__getitem__)
            if readers:
                found[rule.id] = readers
    return found


def _counts(rules: Iterable[Rule], names: Collection[bytes]) -> dict[str, int] | None:
    """Return matching names of each template in the rules' `counts`; None: a name is too costly."""
    texts = {
        text: parse(text)
        for rule in rules
        for hint in rule.hints
        for text, _, _ in hint.formula.counts
    }
    if not texts:
        return {}
    index = TemplateIndex(texts.values())
    found: Counter[Template] = Counter()
    most = limit("match-work")
    try:
        for name, times in _distinct(names, Skeletons(texts.values()), most):
            for template, _ in index.find_fitting(Subject(name, most)):
                found[template] += times
    except TooCostlyError:
        return None
    return {text: found[template] for text, template in texts.items()}


def _distinct(
    names: Collection[bytes], skeletons: Skeletons, most: int
) -> Iterator[tuple[bytes, int]]:
    """Yield representative names, each with the number of names that match the same templates."""
    count = Counter(map(skeleton_of, names))
    apart = {short for short in count if not skeletons.alike(short, most)}
    alone = Counter(name for name in names if skeleton_of(name) in apart) if apart else Counter()
    for short, times in count.items():
        if short not in apart:
            yield short, times
    yield from alone.items()


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
        """Whether its conditions may distinguish names that differ only in digits."""
        return bool(self.siblings) or any(map(has_digits, self.exclude))


_STEPS_PER_RULE = 3  # steps charged per rule whose template matches


class _Rules:
    """Rules by template."""

    def __init__(self) -> None:
        self._entries: dict[Template, list[Entry]] = defaultdict(list)

    def add(self, entry: Entry) -> None:
        self._entries[entry.template].append(entry)

    @cached_property
    def _index(self) -> TemplateIndex:
        return TemplateIndex(self._entries)

    def find_fitting(self, subject: Subject) -> Iterator[Fitting]:
        """Yield the rules whose template matches. Raises TooCostlyError."""
        for template, where in self._index.find_fitting(subject):
            subject.spend(_STEPS_PER_RULE * len(self._entries[template]))
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
            if rule.conditions.needs == "types" and entry.template.parts[0] == DIRS:
                for name in entry.producers:
                    self._by_producer[name].add(entry)
            else:
                self._rules.add(entry)
        self._producers = frozenset(known_producers)
        self._consumers = frozenset(known_consumers)
        self._by_name: dict[bytes, tuple[int, list[Fitting]]] = {}

    def by_name(self, subject: Subject) -> list[Fitting]:
        """Return the rules whose template matches, ignoring declared types, with a cache by name.
        Raises TooCostlyError."""
        work, found = self._by_name.get(subject.name, (0, None))
        if found is not None:
            subject.spend(work)
            return found
        found = list(self._rules.find_fitting(subject))
        if len(self._by_name) >= MAX_CACHED:
            self._by_name.clear()
        self._by_name[subject.name] = subject.work, found
        return found

    def is_cached(self, name: bytes) -> bool:
        """Whether the cache has the matching rules of the name."""
        return name in self._by_name

    def forget(self, name: bytes) -> None:
        """Remove the name from the cache."""
        self._by_name.pop(name, None)

    def candidates(self, subject: Subject, known: Declared, i: int) -> list[Fitting]:
        """Return matching rules and the extents of their placeholders' texts, most specific first.

        Rules for types are tried only if the producing type is declared: there may be one per
        pair of types, and most match any name. Raises TooCostlyError.
        """
        found = self.by_name(subject)
        if known.producer_types is not None:
            made_by = known.producer_types[i] or INPUT
            if made_by in self._by_producer:
                found = [*found, *self._by_producer[made_by].find_fitting(subject)]
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
        """Return the reason why a rule with a matching template must not apply; empty: it may.
        Raises TooCostlyError."""
        if _fits_one(entry.exclude, subject):
            return "excluded"
        size = known.sizes[i] if known.sizes is not None else None
        if size is not None and size < entry.rule.conditions.min_size_bytes:
            return "small"
        if entry.siblings:
            caught = texts_at(where, subject.name)
            if not has_siblings(caught, entry.siblings, names):
                return "names"
        if entry.rule.made_by and known.makers is not None:
            return "" if known.makers[i] in entry.rule.made_by else "maker"
        wants = entry.rule.conditions.needs or ("types" if entry.rule.made_by else "")
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
        """Return the sort key: specificity, then a rule for exactly these consumers."""
        exact = known.consumer_types is not None and (
            entry.consumers == frozenset(known.consumer_types[i])
        )
        return (*entry.order, int(exact))


def _fits_one(templates: Sequence[Template], subject: Subject) -> bool:
    subject.spend(len(templates))
    return any(t.fit(subject) is not None for t in templates if t.middle in subject.name)


def entry_of(rule: Rule) -> Entry:
    """Parse the templates of a rule. Raises InputError."""
    template = parse(rule.template)
    return Entry(
        rule,
        template,
        tuple(parse(text) for text in rule.exclude),
        frozenset(rule.producers or (INPUT,)),
        frozenset(rule.consumers),
        tuple(parse(text) for text in rule.conditions.beside),
        _order(rule, template),
    )


def _order(rule: Rule, template: Template) -> tuple[int, int, int]:
    """Return the specificity; a placeholder whose text siblings must share counts as narrower."""
    wild, fixed = template.specificity
    known_by_siblings = 8 if rule.conditions.beside else 0
    return wild + known_by_siblings, fixed, len(rule.conditions.needs)
