"""Which of many templates fit a name, at a cost that follows the few that may.

Templates lie in tables by the ends of their literal prefix and suffix and by their number of
slashes. What is left is tried one by one, until the name's work is used up: then nobody knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tracehint.hintgen.hints.fitting import Subject
from tracehint.hintgen.hints.template import Template

_Key = tuple[bytes, bytes, int | None]  # prefix, suffix (both cut), slashes
_LENGTHS = (64, 32, 16, 8, 4, 2, 1, 0)  # to which prefixes and suffixes are cut


class TemplateIndex:
    """Templates, each once."""

    def __init__(self, templates: Iterable[Template]) -> None:
        tables: dict[tuple[int, int], dict[_Key, list[tuple[bytes, Template]]]] = defaultdict(dict)
        for template in dict.fromkeys(templates):
            head, tail = cut(template.prefix), cut(template.suffix)
            key = template.prefix[:head], template.suffix[len(template.suffix) - tail :]
            table = tables[head, tail]
            table.setdefault((*key, template.slashes), []).append((template.middle, template))
        self._tables = sorted(tables.items())

    def fitting(self, subject: Subject) -> list[tuple[Template, tuple[bytes, ...]]]:
        """Templates that fit, and the texts of their placeholders. Raises TooCostlyError."""
        found = []
        name = subject.name
        for (head, tail), table in self._tables:
            if len(name) < max(head, tail):
                continue
            ends = name[:head], name[len(name) - tail :]
            for slashes in (subject.slashes, None):
                alike = table.get((*ends, slashes), ())
                subject.spend(len(alike))
                for template in [t for middle, t in alike if middle in name]:
                    caught = template.fit(subject)
                    if caught is not None:
                        found.append((template, caught))
        return found


def cut(text: bytes) -> int:
    """To how many bytes a prefix or suffix is cut for its table."""
    return next(length for length in _LENGTHS if length <= len(text))
