"""Path templates: parsing and printing; what they fit is in hintgen/hints/fitting.py.

A template is literal text with placeholders: `proj/p_tile_{n}.fits`. Only the
placeholders of HOLES exist; a hint file never brings regular expressions of
its own. Every placeholder has a bounded length and at most MAX_AMBIGUOUS may
share characters with what follows them: whoever takes the regex may try one
way after another, and so needs at most about 255^2 steps.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tracehint.errors import InputError
from tracehint.hintgen.hints.fitting import Part, Places, Subject, places, texts_at
from tracehint.hintgen.hints.holes import DIRS, HOLES
from tracehint.hintgen.hints.pathtext import to_bytes, to_text

MAX_TEMPLATE = 4096  # characters
MAX_HOLES = 48
MAX_AMBIGUOUS = 2
SHORT = 128  # bytes of a path on which trying one way after another takes no time


@dataclass(frozen=True)
class Template:
    """A parsed template: literals and holes in turn."""

    parts: tuple[Part, ...]

    @cached_property
    def text(self) -> str:
        """The template as people and hint files write it."""
        return "".join(
            "{" + part + "}" if isinstance(part, str) else to_text(part, braces=True)
            for part in self.parts
        )

    @cached_property
    def regex(self) -> str:
        """Full-match regex over the path's bytes read as Latin-1; one group per hole."""
        return "".join(
            f"({HOLES[part].regex})" if isinstance(part, str) else re.escape(part.decode("latin-1"))
            for part in self.parts
        )

    @property
    def directory(self) -> bytes:
        """Leading literal directories, without the last slash."""
        head = self.parts[0] if self.parts and isinstance(self.parts[0], bytes) else b""
        return head.rpartition(b"/")[0]

    @cached_property
    def prefix(self) -> bytes:
        """Leading literal: what an index looks up."""
        head = self.parts[0] if self.parts else b""
        return head if isinstance(head, bytes) else b""

    @cached_property
    def suffix(self) -> bytes:
        """Trailing literal: what an index looks up."""
        tail = self.parts[-1] if self.parts else b""
        return tail if isinstance(tail, bytes) else b""

    @cached_property
    def middle(self) -> bytes:
        """The longest literal between placeholders: most names do not hold it."""
        return max(
            (part for part in self.parts[1:-1] if isinstance(part, bytes)), key=len, default=b""
        )

    @cached_property
    def slashes(self) -> int | None:
        """Slashes of every path that it fits; None: of any number."""
        if DIRS in self.parts:
            return None
        return sum(part.count(b"/") for part in self.parts if isinstance(part, bytes))

    @cached_property
    def literal(self) -> bool:
        """True when the template is one path."""
        return all(isinstance(part, bytes) for part in self.parts)

    @property
    def specificity(self) -> tuple[int, int]:
        """Larger is more specific: few and narrow holes first, then much literal text."""
        wild = sum(HOLES[p].weight for p in self.parts if isinstance(p, str))
        fixed = sum(len(p) for p in self.parts if isinstance(p, bytes))
        return (-wild, fixed)

    def match(self, path: bytes) -> tuple[bytes, ...] | None:
        """The text of each hole, or None; the way for many paths of few templates."""
        if len(path) > SHORT and self._ambiguous:
            return self.fit(Subject(path))
        found = self._compiled.fullmatch(path)
        return None if found is None else found.groups()

    @cached_property
    def _compiled(self) -> re.Pattern[bytes]:
        return _compiled(self.regex)

    @cached_property
    def _ambiguous(self) -> bool:
        return ambiguity(self) > 0

    def fit(self, subject: Subject) -> tuple[bytes, ...] | None:
        """The same for a name that many templates are tried on; nothing is compiled.

        Raises TooCostlyError.
        """
        where = self.places(subject)
        return None if where is None else texts_at(where, subject.name)

    def places(self, subject: Subject) -> Places | None:
        """The place of the text of each hole, or None. Raises TooCostlyError."""
        name, slashes = subject.name, self.slashes
        if self.literal:
            return () if name == self.parts[0] else None
        if not (name.endswith(self.suffix) and name.startswith(self.prefix)):
            return None
        if slashes is not None and slashes != subject.slashes:
            return None
        subject.spend(subject.cost)
        return places(self.parts, subject) if self.middle in name else None


@lru_cache(maxsize=65536)
def _compiled(regex: str) -> re.Pattern[bytes]:
    return re.compile(regex.encode("latin-1"), re.DOTALL)


def template_of(parts: list[Part]) -> Template:
    """Join neighbouring literals, drop empty ones."""
    out: list[Part] = []
    for part in parts:
        if part == b"":
            continue
        if isinstance(part, bytes) and out and isinstance(out[-1], bytes):
            out[-1] = out[-1] + part
        else:
            out.append(part)
    return Template(tuple(out))


def ambiguity(template: Template) -> int:
    """Number of holes that can end at more than one place."""
    count = 0
    parts = template.parts
    for here, after in itertools.pairwise(parts):
        if isinstance(here, str):
            first = {after[0]} if isinstance(after, bytes) else HOLES[after].chars
            count += not HOLES[here].chars.isdisjoint(first)
    return count


@lru_cache(maxsize=65536)
def parse(text: str) -> Template:
    """Parse a template; raises InputError when it is not one of ours or could be slow."""
    if len(text) > MAX_TEMPLATE:
        raise InputError("a template is longer than 4096 characters", "Write the hint file again.")
    parts: list[Part] = []
    at = 0
    start = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == "{":
            end = text.find("}", at)
            hole = text[at + 1 : end] if end > 0 else ""
            if hole not in HOLES:
                raise InputError(
                    f"unknown placeholder in template {text[:80]!r}",
                    "Known are: " + ", ".join("{" + name + "}" for name in HOLES),
                )
            parts += [to_bytes(text[start:at]), hole]
            at = start = end + 1
        elif text[at] == "}":
            raise InputError(f"stray }} in template {text[:80]!r}", "Write it as \\}.")
        else:
            at += 1
    parts.append(to_bytes(text[start:]))
    template = template_of(parts)
    holes = sum(isinstance(part, str) for part in template.parts)
    if not template.parts or holes > MAX_HOLES or ambiguity(template) > MAX_AMBIGUOUS:
        raise InputError(
            f"template {text[:80]!r} is empty or too loose",
            f"At most {MAX_HOLES} placeholders, {MAX_AMBIGUOUS} of them followed by "
            "characters that they could also take.",
        )
    return template
