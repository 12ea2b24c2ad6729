"""Path templates: placeholders, parsing, printing and matching of names."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tracehint.errors import InputError
from tracehint.hintgen.hints.pathtext import to_bytes, to_text

DIRS = "dirs"  # the one placeholder that spans slashes
MAX_SEGMENT = 255  # bytes of one component of a path
MAX_SEGMENTS = 64  # components that {dirs} may stand for


@dataclass(frozen=True)
class Atom:
    """`least` to `most` bytes of one class; `chars[b]` is b"1" if byte b belongs to it."""

    chars: bytes
    least: int
    most: int


@dataclass(frozen=True)
class Hole:
    """A placeholder: regex, possible characters, weight (larger: less specific), and atoms."""

    regex: str
    chars: frozenset[int]
    weight: int
    atoms: tuple[Atom, ...]


def members(pattern: str) -> bytes:
    """Return b"1" for each of the 256 bytes that the character class matches, otherwise b"0"."""
    compiled = re.compile(pattern.encode(), re.DOTALL)
    return b"".join(b"1" if compiled.fullmatch(bytes([b])) else b"0" for b in range(256))


def _chars(pattern: str) -> frozenset[int]:
    return frozenset(b for b, is_one in enumerate(members(pattern)) if is_one == ord("1"))


_DIGIT, _HEX, _DASH = members("[0-9]"), members("[0-9A-Fa-f]"), members("-")
_DASHED_DATE = tuple(
    Atom(chars, least, most)
    for chars, least, most in (
        (_DIGIT, 4, 4),
        (_DASH, 0, 1),
        (_DIGIT, 2, 2),
        (_DASH, 0, 1),
        (_DIGIT, 2, 2),
    )
)
_UUID = tuple(
    Atom(chars, size, size)
    for chars, size in (
        (_HEX, 8),
        (_DASH, 1),
        (_HEX, 4),
        (_DASH, 1),
        (_HEX, 4),
        (_DASH, 1),
        (_HEX, 4),
        (_DASH, 1),
        (_HEX, 12),
    )
)

# name -> (regex, characters, weight, atoms)
HOLES: dict[str, Hole] = {
    "n": Hole("[0-9]{1,40}", _chars("[0-9]"), 1, (Atom(_DIGIT, 1, 40),)),
    "uuid": Hole(
        "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
        _chars("[0-9A-Fa-f-]"),
        1,
        _UUID,
    ),
    "date": Hole("[0-9]{4}-?[0-9]{2}-?[0-9]{2}", _chars("[0-9-]"), 1, _DASHED_DATE),
    "hash": Hole("[0-9A-Fa-f]{2,128}", _chars("[0-9A-Fa-f]"), 2, (Atom(_HEX, 2, 128),)),
    "random": Hole(
        "[0-9A-Za-z_]{6,12}", _chars("[0-9A-Za-z_]"), 3, (Atom(members("[0-9A-Za-z_]"), 6, 12),)
    ),
    "word": Hole("[A-Za-z]{1,64}", _chars("[A-Za-z]"), 4, (Atom(members("[A-Za-z]"), 1, 64),)),
    "alnum": Hole(
        "[0-9A-Za-z]{1,128}", _chars("[0-9A-Za-z]"), 6, (Atom(members("[0-9A-Za-z]"), 1, 128),)
    ),
    "name": Hole("[^/]{1,255}", _chars("[^/]"), 16, (Atom(members("[^/]"), 1, MAX_SEGMENT),)),
    DIRS: Hole("(?:[^/]{1,255}/){0,64}", frozenset(range(256)), 32, ()),
}


Part = bytes | str  # literal bytes, or the name of a placeholder
Places = tuple[slice, ...]  # extents of the placeholders' texts in a name

_IN_SEGMENT, _SLASH = members("[^/]"), members("/")
_MAX_SEARCHES = 32  # occurrences of a literal that are searched one by one
_STEP = 128  # bytes of a name per step of `Subject.work`


class TooCostlyError(Exception):
    """Matching of one name exceeds its work limit."""


class Subject:
    """A name to match, with intermediate results shared by all templates.

    Sets of positions are integers: bit p stands for position p. `work`: steps done so far, each
    an operation on at most 128 positions; exceeding `most` raises TooCostlyError.
    """

    def __init__(self, name: bytes, most: int = sys.maxsize) -> None:
        self.name, self.work, self.most = name, 0, most
        self.cost = 1 + len(name) // _STEP  # steps of one operation on all positions
        self._runs: dict[tuple[bytes, int], int] = {}
        self._growths: dict[Atom, list[tuple[int, int]]] = {}
        self._literals: dict[bytes, int] = {}

    def spend(self, steps: int) -> None:
        """Count steps before they are done. Raises TooCostlyError."""
        if self.work + steps > self.most:
            raise TooCostlyError
        self.work += steps

    @cached_property
    def slashes(self) -> int:
        """Number of slashes in the name."""
        return self.name.count(b"/")

    def run(self, chars: bytes, length: int) -> int:
        """Return the positions followed by `length` bytes of the class."""
        found = self._runs.get((chars, length))
        if found is None:
            self.spend(self.cost)
            if length == 1:
                found = int(self.name[::-1].translate(chars) or b"0", 2)
            else:
                half = length // 2
                found = self.run(chars, length - half) & (self.run(chars, half) >> length - half)
            self._runs[chars, length] = found
        return found

    def growth(self, atom: Atom) -> list[tuple[int, int]]:
        """Return the steps from least to most bytes of an atom: (more bytes, their positions)."""
        found = self._growths.get(atom)
        if found is None:
            found = []
            done, most = 0, atom.most - atom.least
            while done < most:
                more = min(done + 1, most - done)
                run = self.run(atom.chars, more)
                if not run:  # no position has that many bytes
                    break
                found.append((more, run))
                done += more
            self._growths[atom] = found
        return found

    def places(self, literal: bytes) -> int:
        """Return the positions of a literal."""
        found = self._literals.get(literal)
        if found is None:
            found = self._literals[literal] = self._look_up(literal)
        return found

    def _look_up(self, literal: bytes) -> int:
        found, at = 0, -1
        for _ in range(_MAX_SEARCHES):
            at = self.name.find(literal, at + 1)
            if at < 0:
                self.spend(self.cost)
                return found
            found |= 1 << at
        self.spend(self.cost * (_MAX_SEARCHES + len(literal)))
        found = -1
        for offset, byte in enumerate(literal):  # too many: all positions at once, byte by byte
            found &= self.run(_one(byte), 1) >> offset
        return found


def texts_at(where: Places, name: bytes) -> tuple[bytes, ...]:
    """Return the texts at these extents of the name."""
    return tuple([name[place] for place in where])


def _one(byte: int) -> bytes:
    return b"0" * byte + b"1" + b"0" * (255 - byte)


def places(parts: Sequence[Part], subject: Subject) -> Places | None:
    """Return the extent of each placeholder's text, or None if the template does not match.

    Raises TooCostlyError.
    """
    ends = [1 << len(subject.name)]  # from the last part to the first
    for part in reversed(parts):
        ends.append(_places_before(part, ends[-1], subject))
        if not ends[-1]:
            return None
    if not ends[-1] & 1:
        return None
    subject.spend(len(parts))
    ends.reverse()
    caught, at = [], 0
    for part, rest in zip(parts, ends[1:], strict=True):
        start = at
        at = _longest(part, start, rest, subject)
        if isinstance(part, str):
            caught.append(slice(start, at))
    return tuple(caught)


def _places_before(part: Part, rest: int, subject: Subject) -> int:
    """Return the positions from which the part ends at one of the positions `rest`."""
    if isinstance(part, bytes):
        subject.spend(subject.cost)
        return subject.places(part) & (rest >> len(part))
    if part == DIRS:
        return _before_dirs(rest, subject)
    for atom in reversed(HOLES[part].atoms):
        rest = _before_atom(atom, rest, subject)
    return rest


def _before_atom(atom: Atom, rest: int, subject: Subject) -> int:
    """Return the positions from which the atom ends at one of the positions `rest`."""
    if atom.least:
        subject.spend(subject.cost)
        rest = (rest >> atom.least) & subject.run(atom.chars, atom.least)
    if rest:
        growth = subject.growth(atom)
        subject.spend(len(growth) * subject.cost)
        for more, run in growth:
            rest |= (rest >> more) & run
    return rest


_SEGMENT = Atom(_IN_SEGMENT, 1, MAX_SEGMENT)


def _before_dirs(rest: int, subject: Subject) -> int:
    """Return the positions from which up to 64 components end at one of the positions `rest`."""
    found = latest = rest
    slashes = subject.run(_SLASH, 1)
    for _ in range(MAX_SEGMENTS):
        subject.spend(subject.cost)
        latest = (latest >> 1) & slashes
        if not latest:
            break
        latest = _before_atom(_SEGMENT, latest, subject) & ~found
        found |= latest
    return found


def _longest(part: Part, start: int, rest: int, subject: Subject) -> int:
    """Return the last of the positions `rest` where the part from `start` can end."""
    if isinstance(part, bytes):
        return start + len(part)
    if part == DIRS:
        return _longest_dirs(start, rest, subject.name)
    *fixed, last = HOLES[part].atoms
    for atom in fixed:
        start += _run_length(atom, start, subject)
    reach = (rest >> start) & ((2 << _run_length(last, start, subject)) - 1)
    return start + reach.bit_length() - 1


def _longest_dirs(start: int, rest: int, name: bytes) -> int:
    longest = start
    for _ in range(MAX_SEGMENTS):
        end = name.find(b"/", start, start + MAX_SEGMENT + 1) + 1
        if end < start + 2:  # none, or an empty component
            break
        if rest >> end & 1:
            longest = end
        start = end
    return longest


def _run_length(atom: Atom, start: int, subject: Subject) -> int:
    """Return the number of bytes of the atom's class from `start` on, at most `atom.most`."""
    run = subject.run(atom.chars, 1) >> start
    return min(atom.most, (~run & (run + 1)).bit_length() - 1)


MAX_TEMPLATE = 4096  # characters
MAX_HOLES = 48
MAX_AMBIGUOUS = 2
SHORT_PATH = 128  # bytes of a path up to which a backtracking regex is fast


@dataclass(frozen=True)
class Template:
    """A parsed template: a sequence of literals and placeholders."""

    parts: tuple[Part, ...]

    @cached_property
    def text(self) -> str:
        """The template as written in hint files."""
        return "".join(
            "{" + part + "}" if isinstance(part, str) else to_text(part, braces=True)
            for part in self.parts
        )

    @cached_property
    def regex(self) -> str:
        """Full-match regex over the path's bytes read as Latin-1; one group per placeholder."""
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
        """Leading literal, a key of the index."""
        head = self.parts[0] if self.parts else b""
        return head if isinstance(head, bytes) else b""

    @cached_property
    def suffix(self) -> bytes:
        """Trailing literal, a key of the index."""
        tail = self.parts[-1] if self.parts else b""
        return tail if isinstance(tail, bytes) else b""

    @cached_property
    def middle(self) -> bytes:
        """The longest inner literal, a cheap test that most names fail."""
        return max(
            (part for part in self.parts[1:-1] if isinstance(part, bytes)), key=len, default=b""
        )

    @cached_property
    def slashes(self) -> int | None:
        """Number of slashes of every matching path; None: any number."""
        if DIRS in self.parts:
            return None
        return sum(part.count(b"/") for part in self.parts if isinstance(part, bytes))

    @cached_property
    def literal(self) -> bool:
        """Whether the template has no placeholders."""
        return all(isinstance(part, bytes) for part in self.parts)

    @property
    def specificity(self) -> tuple[int, int]:
        """Sort key, larger is more specific: few and narrow placeholders, then literal bytes."""
        wild = sum(HOLES[p].weight for p in self.parts if isinstance(p, str))
        fixed = sum(len(p) for p in self.parts if isinstance(p, bytes))
        return (-wild, fixed)

    def match(self, path: bytes) -> tuple[bytes, ...] | None:
        """Return the text of each placeholder, or None; fast for many paths and few templates."""
        if len(path) > SHORT_PATH and self._ambiguous:
            return self.fit(Subject(path))
        found = self._compile_regex.fullmatch(path)
        return None if found is None else found.groups()

    @cached_property
    def _compile_regex(self) -> re.Pattern[bytes]:
        return _compile_regex(self.regex)

    @cached_property
    def _ambiguous(self) -> bool:
        return ambiguity(self) > 0

    def fit(self, subject: Subject) -> tuple[bytes, ...] | None:
        """Match a name that is tried on many templates, without compiling a regex.

        Raises TooCostlyError.
        """
        where = self.places(subject)
        return None if where is None else texts_at(where, subject.name)

    def places(self, subject: Subject) -> Places | None:
        """Return the extent of each placeholder's text, or None. Raises TooCostlyError."""
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
def _compile_regex(regex: str) -> re.Pattern[bytes]:
    return re.compile(regex.encode("latin-1"), re.DOTALL)


def template_of(parts: list[Part]) -> Template:
    """Return the template of `parts`, with adjacent literals joined and empty ones dropped."""
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
    """Return the number of placeholders that can end at more than one position."""
    count = 0
    parts = template.parts
    for here, after in itertools.pairwise(parts):
        if isinstance(here, str):
            first = {after[0]} if isinstance(after, bytes) else HOLES[after].chars
            count += not HOLES[here].chars.isdisjoint(first)
    return count


@lru_cache(maxsize=65536)
def parse(text: str) -> Template:
    """Parse a template. Raises InputError if it is invalid or could be slow to match."""
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
                    "Known: " + ", ".join("{" + name + "}" for name in HOLES),
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
            "characters that they could also match.",
        )
    return template
