"""What all names of a run tell about one file: the names beside it, and how many read it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence

from tracehint.hintgen.hints.fitting import Subject, TooCostlyError
from tracehint.hintgen.hints.formulas import readers_of
from tracehint.hintgen.hints.model import Rule
from tracehint.hintgen.hints.template import Template, parse
from tracehint.hintgen.match.skeleton import Skeletons, skeleton_of
from tracehint.hintgen.match.templateindex import TemplateIndex
from tracehint.limits import limit


def has_siblings(
    caught: Sequence[bytes], siblings: Sequence[Template], names: Container[bytes]
) -> bool:
    """True when all names that must stand beside a path are there; `caught`: its placeholders."""
    (stem, *_) = caught or (b"",)
    return all(
        b"".join(stem if isinstance(part, str) else part for part in other.parts) in names
        for other in siblings
    )


def readers_by_rule(
    rules: Iterable[tuple[Rule, int]], names: Collection[bytes]
) -> dict[str, float]:
    """Rule -> readers of each of its files, where names tell. `rules`: with numbers of their files.

    Empty where a name is too costly to be counted: then the learned values stand.
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
    """Template -> names that it fits, of all that the rules count; None: a name is too costly."""
    texts = {
        text: parse(text)
        for rule in rules
        for hint in rule.hints
        for text, _, _ in hint.formula.get("counts", ())
    }
    if not texts:
        return {}
    index = TemplateIndex(texts.values())
    found: Counter[Template] = Counter()
    most = limit("match-work")
    try:
        for name, times in _distinct(names, Skeletons(texts.values()), most):
            for template, _ in index.fitting(Subject(name, most)):
                found[template] += times
    except TooCostlyError:
        return None
    return {text: found[template] for text, template in texts.items()}


def _distinct(
    names: Collection[bytes], skeletons: Skeletons, most: int
) -> Iterator[tuple[bytes, int]]:
    """Names, and for how many others each stands: those that no template tells from it."""
    count = Counter(map(skeleton_of, names))
    apart = {short for short in count if not skeletons.alike(short, most)}
    alone = Counter(name for name in names if skeleton_of(name) in apart) if apart else Counter()
    for short, times in count.items():
        if short not in apart:
            yield short, times
    yield from alone.items()
