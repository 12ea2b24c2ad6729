"""What readers of files from outside take at most; every number can be raised or lowered.

    TRACEHINT_LIMITS=rows=50_000_000,match-work=100_000 tracehint import ...

Each limit is one row of LIMITS; `limit(NAME)` is its number, `exceeded(NAME, what)` the error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

from tracehint.errors import InputError, UsageError

VARIABLE = "TRACEHINT_LIMITS"
_MOST = 1 << 62


@dataclass(frozen=True)
class Limit:
    """`most` `unit`s of what `bounds` names."""

    most: int
    unit: str
    bounds: str


LIMITS: dict[str, Limit] = {
    "match-work": Limit(
        1_500, "steps of matching",
        "work of one file name against all rules of a hint file; a step goes over 128 bytes. A "
        "name that needs more gets no hint, and is counted as too costly",
    ),
}  # fmt: skip  # a table


def limit(name: str) -> int:
    """The number in force. Raises UsageError where TRACEHINT_LIMITS is not understood."""
    return _set(os.environ.get(VARIABLE, "")).get(name, LIMITS[name].most)


def exceeded(name: str, what: str, kind: type[InputError] = InputError) -> InputError:
    """The error for a file, or a thing in it, that goes beyond the limit."""
    return kind(
        f"{what}: more than {limit(name):,} {LIMITS[name].unit}",
        f"If it is what you mean, set {VARIABLE}={name}=N (docs/reference/limits.md).",
    )


@lru_cache(maxsize=8)
def _set(text: str) -> dict[str, int]:
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, number = part.partition("=")
        digits = number.replace("_", "")
        if name not in LIMITS or not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            raise UsageError(
                f"{VARIABLE}: {part[:80]!r} is not NAME=N", "Known are: " + ", ".join(LIMITS)
            )
        found[name] = min(int(digits), _MOST)
    return found
