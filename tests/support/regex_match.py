"""Reference matcher: by regexes, each rule tried on each path."""

from __future__ import annotations

import re

from tracehint.hintgen.hints.model import INPUT, HintFile, Rule
from tracehint.hintgen.hints.template import Places, Subject, Template
from tracehint.hintgen.match.known import Declared
from tracehint.hintgen.match.match import Matcher
from tracehint.hintgen.match.ruleindex import Fitting, RuleIndex, entry_of


def by_regex(template: Template, path: bytes) -> tuple[bytes, ...] | None:
    """Return the text of each placeholder, or None, by the regex of the hint file."""
    found = _match(template, path)
    return None if found is None else found.groups()


def _match(template: Template, path: bytes) -> re.Match[bytes] | None:
    return re.fullmatch(template.regex.encode("latin-1"), path, re.DOTALL)


def _places(found: re.Match[bytes]) -> Places:
    return tuple(slice(*found.span(group + 1)) for group in range(len(found.groups())))


class _EveryRule(RuleIndex):
    """An index that tries all rules."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        super().__init__(rules)
        self._entries = [entry_of(rule) for rule in rules]

    def candidates(self, subject: Subject, known: Declared, i: int) -> list[Fitting]:
        found = []
        for entry in self._entries:
            any_name = entry.template.parts[0] == "dirs"
            if entry.rule.conditions.needs == "types" and any_name:
                types = known.producer_types
                if types is None or (types[i] or INPUT) not in entry.producers:
                    continue
            match = _match(entry.template, subject.name)
            if match is not None:
                found.append((entry, _places(match)))
        return sorted(found, key=lambda f: (self.rank(f[0], known, i), f[0].rule.id), reverse=True)


def reference_matcher(hints: HintFile) -> Matcher:
    """Return a matcher without an index and without work limits."""
    matcher = Matcher(HintFile((), {}, ()))
    matcher.picker.index = _EveryRule(hints.rules)
    return matcher
