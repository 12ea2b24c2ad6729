"""The grammar of every value that reaches a tool or a policy: others are rejected or left out.

A *word* is one named value of a command (`size=1048576`). Its kind defines its form; values of a
hint file, a map or a journal are accepted in no other form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from msgspec import Struct

from tracehint.adapters.stores.places import NAME, Places
from tracehint.errors import InputError
from tracehint.schemas.fields import Positive

# kind of a word -> pattern of its value
KINDS: dict[str, re.Pattern[str]] = {
    "count": re.compile(r"-1|[0-9]{1,9}"),
    "size": re.compile(r"[1-9][0-9]{0,17}"),
    "name": NAME,
    "class": re.compile(r"[A-Z]{1,2}(_[0-9]{1,2}(P[0-9])?G)?([0-9]{1,4}|X)"),  # of DAOS objects
}
HOST = "@host"  # in a name: placeholder for the node that a script runs on
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([bkmgt]?)(?:ib?|b)?", re.IGNORECASE)
_REMEDY = "The grammar of stores' values is in docs/reference/stores.md."


class Grid(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of a store for a number of bytes: multiples or powers of two, within bounds."""

    multiple: Positive = 1
    power2: bool = False
    least: Positive = 1
    most: Positive = 1 << 60
    divide: Positive = 1  # unit of the store, in bytes

    def fit(self, value: int) -> int:
        """Return the smallest valid value for at least `value` bytes, or the largest one."""
        value = max(-(-value // self.divide), self.least)
        value = -(-value // self.multiple) * self.multiple
        if self.power2:
            value = 1 << (value - 1).bit_length()
        return min(value, self.most)


def number_of(text: str) -> int | None:
    """Parse a hint's number, of at most 18 plain digits; None: not a number."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def bytes_of(text: str) -> int | None:
    """Parse a number of bytes as tools print it (`1048576`, `512K`, `1.0MiB`); None: invalid.

    >>> bytes_of("512K"), bytes_of("1.5MiB")
    (524288, 1572864)
    """
    found = _SIZE.fullmatch(text.strip())
    return int(Fraction(found[1]) * _UNITS[found[2].lower()]) if found else None


def check_word(kind: str, name: str, value: str) -> str:
    """Return `value` if it is valid for the kind of word; raises InputError otherwise."""
    pattern = KINDS.get(kind)
    allowed = pattern.fullmatch(value) if pattern else value in kind.split("|")
    if not allowed:
        raise InputError(f"{value[:80]!r} is not a value of {name[:80]!r} ({kind})", _REMEDY)
    return value


def join_words(words: Mapping[str, str]) -> bytes:
    """Join words to one value: `count=1 size=65536`, sorted by name."""
    return " ".join(f"{name}={words[name]}" for name in sorted(words)).encode("ascii")


def parse_words(value: bytes, kinds: Mapping[str, str]) -> dict[str, str]:
    """Parse a value of `join_words` and check each word. Raises InputError."""
    found: dict[str, str] = {}
    for part in value.decode("ascii", "replace").split(" "):
        name, equals, text = part.partition("=")
        if not equals or name not in kinds or name in found:
            raise InputError(f"{part[:80]!r} is not a word of this store", _REMEDY)
        found[name] = text
        check_word(kinds[name], name, text.replace(HOST, "h"))
    return found


def same_words(wanted: Mapping[str, str], got: Mapping[str, str]) -> bool:
    """Whether a tool reports the wanted words; -1 (all that exist) matches any count."""
    return all(
        name in got and (got[name] == value or (value == "-1" and got[name].isdecimal()))
        for name, value in wanted.items()
    )


PlainField = Literal["value", "arg", "block", "region"]
PLAIN: tuple[PlainField, ...] = get_args(PlainField)
PLACED = ("local", "group", "copies", "server", "site")
_FIELD = re.compile(r"\{([a-z][a-z0-9_]{0,30})\}")
_NO_PLACE = {
    "local": "name the place of each node in a --map file (local)",
    "group": "name the places of groups in a --map file (groups)",
    "copies": "name the places by number of copies in a --map file (copies, reads_spread)",
    "server": "name the server in a --map file (server)",
    "site": "name the metadata server of each site in a --map file (sites)",
}


class MissingError(Exception):
    """A field has no value; the message is the reason."""


class Field(Grid, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field that a table defines: its plain source field, and its grid or its words."""

    of: PlainField
    map: dict[str, str] = {}


@dataclass(frozen=True)
class HintFields:
    """The fields that one hint's templates may use."""

    value: str
    hints: Mapping[str, str]
    places: Places
    late: bool = False

    def text(self, name: str, fields: Mapping[str, Field]) -> str:
        """Return the value of one field; raises MissingError."""
        if name in fields:
            number = self.text(fields[name].of, {})
            if fields[name].map:
                if number not in fields[name].map:
                    raise MissingError(f"the store has no word for {number[:40]}")
                return fields[name].map[number]
            plain = number_of(number)
            if plain is None:
                raise MissingError(f"its {fields[name].of} is not a number")
            return str(fields[name].fit(plain))
        found = self._plain(name) if name in PLAIN else self._place(name)
        if found is None:
            raise MissingError(_NO_PLACE[name])
        return found

    def _plain(self, name: str) -> str:
        arg, block = self.value.partition("|")[2], self.hints.get("BlockSize", "")
        if name == "region":
            parts, bytes_ = number_of(arg), number_of(block)
            return "" if parts is None or bytes_ is None else str(parts * bytes_)
        return {"value": self.value, "arg": arg, "block": block}[name]

    def _place(self, name: str) -> str | None:
        if name == "local":
            return self.places.of_host(late=self.late)
        if name == "group":
            return self.places.of_group(self.value.partition("|")[2])
        if name == "copies":
            copies = number_of(self.value)
            return None if copies is None else self.places.of_copies(copies)
        if name == "site":
            return self.places.of_site(self.value)
        return self.places.server or None


def fill(template: str, known: HintFields, fields: Mapping[str, Field]) -> str:
    """Return the template with the values of its fields; raises MissingError."""
    return _FIELD.sub(lambda found: known.text(found[1], fields), template)


def unknown_field(template: str, fields: Mapping[str, Field]) -> bool:
    """Whether the template has a brace that is not part of a known field."""
    names = {*PLAIN, *PLACED, *fields}
    rest = _FIELD.sub(lambda found: "" if found[1] in names else "{", template)
    return "{" in rest or "}" in rest
