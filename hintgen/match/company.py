"""What all names of a run tell about one file: the names beside it, and how many read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Sequence
from functools import cache

from tracehint.hintgen.hints.formulas import readers_of
from tracehint.hintgen.hints.model import Rule
from tracehint.hintgen.hints.template import Template, parse


def in_company(
    template: Template, beside: Sequence[Template], path: bytes, names: Container[bytes]
) -> bool:
    """True when all names that must stand beside a path of the template are there."""
    (stem, *_) = template.match(path) or (b"",)
    return all(
        b"".join(stem if isinstance(part, str) else part for part in other.parts) in names
        for other in beside
    )


def readers_by_rule(rules: Sequence[Rule], names: Collection[bytes]) -> dict[str, float]:
    """Rule -> readers of each of its files, where names tell. `rules`: one entry per file."""

    @cache
    def count(text: str) -> int:
        template = parse(text)
        end = template.suffix
        return sum(name.endswith(end) and template.match(name) is not None for name in names)

    files = Counter(rule.id for rule in rules)
    found = {}
    for rule in {rule.id: rule for rule in rules}.values():
        for hint in rule.hints:
            readers = readers_of(hint.formula, files[rule.id], count)
            if readers:
                found[rule.id] = readers
    return found
