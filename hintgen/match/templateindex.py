"""Which of many templates fit a name, at a cost that follows the few that may.

Templates lie in tables by the ends of their literal prefix and suffix and by their number of
slashes. What is left is tried one by one, until the name's work is used up: then nobody knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tracehint.hintgen.hints.fitting import Places, Subject
from tracehint.hintgen.hints.template import Template

_Ends = tuple[bytes, bytes]  # prefix and suffix, both cut
_Alike = dict[_Ends, list[tuple[bytes, Template]]]  # the longest literal between, the template
_LENGTHS = (64, 32, 16, 8, 4, 2, 1, 0)  # to which prefixes and suffixes are cut


class TemplateIndex:
    """Templates, each once."""

    def __init__(self, templates: Iterable[Template]) -> None:
        tables: dict[tuple[int, int], dict[int | None, _Alike]] = defaultdict(dict)
        for template in dict.fromkeys(templates):
            head, tail = cut(template.prefix), cut(template.suffix)
            ends = template.prefix[:head], template.suffix[len(template.suffix) - tail :]
            alike = tables[head, tail].setdefault(template.slashes, {})
            alike.setdefault(ends, []).append((template.middle, template))
        self._tables = sorted(tables.items())
        self._of_slashes: dict[int, list[tuple[int, int, list[_Alike]]]] = {}

    def _looked_at(self, slashes: int) -> list[tuple[int, int, list[_Alike]]]:
        """Lengths of prefix and suffix, and the tables of them, for names with so many slashes."""
        found = self._of_slashes.get(slashes)
        if found is None:
            found = [
                (head, tail, [table[n] for n in (slashes, None) if n in table])
                for (head, tail), table in self._tables
                if slashes in table or None in table
            ]
            self._of_slashes[slashes] = found
        return found

    def fitting(self, subject: Subject) -> list[tuple[Template, Places]]:
        """Templates that fit, and the places of their placeholders' texts. Raises
        TooCostlyError."""
        found = []
        name = subject.name
        for head, tail, tables in self._looked_at(subject.slashes):
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
    """To how many bytes a prefix or suffix is cut for its table."""
    return next(length for length in _LENGTHS if length <= len(text))
