"""The placeholders of templates: what each may stand for, and how little it says.

`atoms` is what `regex` says, in the form that the matcher counts with: runs of characters of one
class, each of a length from least to most. tests/test_hints_fitting.py compares the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DIRS = "dirs"  # the one placeholder that spans slashes
MAX_SEGMENT = 255  # bytes of one component of a path
MAX_SEGMENTS = 64  # components that {dirs} may stand for


@dataclass(frozen=True)
class Atom:
    """`least` to `most` bytes of one class; `chars[b]` is b"1" where byte b belongs to it."""

    chars: bytes
    least: int
    most: int


@dataclass(frozen=True)
class Hole:
    """A placeholder: its regex, its possible characters, how little it says (weight), its atoms."""

    regex: str
    chars: frozenset[int]
    weight: int
    atoms: tuple[Atom, ...]


def members(pattern: str) -> bytes:
    """For each of the 256 bytes b"1" where the class of one character takes it, else b"0"."""
    compiled = re.compile(pattern.encode(), re.DOTALL)
    return b"".join(b"1" if compiled.fullmatch(bytes([b])) else b"0" for b in range(256))


def _chars(pattern: str) -> frozenset[int]:
    return frozenset(b for b, is_one in enumerate(members(pattern)) if is_one == ord("1"))


_DIGIT, _HEX, _DASH = members("[0-9]"), members("[0-9A-Fa-f]"), members("-")
_DASHED_DATE = tuple(
    Atom(chars, least, most)
    for chars, least, most in
    ((_DIGIT, 4, 4), (_DASH, 0, 1), (_DIGIT, 2, 2), (_DASH, 0, 1), (_DIGIT, 2, 2))
)  # fmt: skip  # a table
_UUID = tuple(
    Atom(chars, size, size)
    for chars, size in
    ((_HEX, 8), (_DASH, 1), (_HEX, 4), (_DASH, 1), (_HEX, 4), (_DASH, 1), (_HEX, 4), (_DASH, 1),
     (_HEX, 12))
)  # fmt: skip  # a table

# name -> (regex, characters, weight, atoms)
HOLES: dict[str, Hole] = {
    "n": Hole("[0-9]{1,40}", _chars("[0-9]"), 1, (Atom(_DIGIT, 1, 40),)),
    "uuid": Hole(
        "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
        _chars("[0-9A-Fa-f-]"), 1, _UUID,
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
}  # fmt: skip  # a table
