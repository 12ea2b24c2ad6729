"""The grammar of every value that reaches a tool or a policy: checked here, or not said at all.

A *word* is one named value of a command (`size=1048576`). Its kind decides what it may look like;
nothing that a hint file, a map or a journal says passes in any other form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tracehint.adapters.stores.places import NAME
from tracehint.errors import InputError

# kind of a word -> what its value must look like
KINDS: dict[str, re.Pattern[str]] = {
    "count": re.compile(r"-1|[0-9]{1,9}"),
    "size": re.compile(r"[1-9][0-9]{0,17}"),
    "name": NAME,
    "class": re.compile(r"[A-Z]{1,2}(_[0-9]{1,2}(P[0-9])?G)?([0-9]{1,4}|X)"),  # of DAOS objects
}  # fmt: skip  # a table
HOST = "@host"  # in a name: stands for the node that a script runs on
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"([0-9]{1,18})(?:\.[0-9]+)? ?([bkmgt]?)(?:ib?|b)?", re.IGNORECASE)
_REMEDY = "The grammar of stores' values is in docs/reference/stores.md."


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Where a number of bytes may lie: rounded up to a multiple or a power of two, then bounded."""

    multiple: int = 1
    power2: bool = False
    least: int = 1
    most: int = 1 << 60
    divide: int = 1  # the store counts in units of so many bytes

    def fit(self, value: int) -> int:
        """The nearest value at or above `value` that the store takes, or its largest one."""
        value = max(-(-value // self.divide), self.least)
        value = -(-value // self.multiple) * self.multiple
        if self.power2:
            value = 1 << (value - 1).bit_length()
        return min(value, self.most)


def number_of(text: str) -> int | None:
    """A hint's number, of at most 18 plain digits; None: it is none."""
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else None


def bytes_of(text: str) -> int | None:
    """A number of bytes as tools print it (`1048576`, `512K`, `1.0MiB`); None: it is none.

    >>> bytes_of("512K")
    524288
    """
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def check_word(kind: str, name: str, value: str) -> str:
    """`value` if a word of that kind may have it; raises InputError."""
    pattern = KINDS.get(kind)
    allowed = pattern.fullmatch(value) if pattern else value in kind.split("|")
    if not allowed:
        raise InputError(f"{value[:80]!r} is no value of {name[:80]!r} ({kind})", _REMEDY)
    return value


def say_words(words: Mapping[str, str]) -> bytes:
    """Words as one value: `count=1 size=65536`, in the order of their names."""
    return " ".join(f"{name}={words[name]}" for name in sorted(words)).encode("ascii")


def read_words(value: bytes, kinds: Mapping[str, str]) -> dict[str, str]:
    """Inverse of `say_words`, each word checked. Raises InputError."""
    found: dict[str, str] = {}
    for part in value.decode("ascii", "replace").split(" "):
        name, equals, text = part.partition("=")
        if not equals or name not in kinds or name in found:
            raise InputError(f"{part[:80]!r} is no word of this store", _REMEDY)
        found[name] = text
        check_word(kinds[name], name, text.replace(HOST, "h"))
    return found


def same_words(wanted: Mapping[str, str], got: Mapping[str, str]) -> bool:
    """Whether what was asked for is what a tool reports; -1 (as many as there are) is any count."""
    return all(
        name in got and (got[name] == value or (value == "-1" and got[name].isdecimal()))
        for name, value in wanted.items()
    )
