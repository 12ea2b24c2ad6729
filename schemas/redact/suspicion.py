"""The cheap question that is asked of every command first: can there be a secret in it at all?

A command in which none of these texts occurs is left as it is; all rules need one of them.
"""

from __future__ import annotations

import re
from functools import cache

from tracehint.schemas.redact.options import OPTIONS, STDIN_READERS
from tracehint.schemas.redact.shapes import SHAPES

_NAMES = (
    "pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "jwt", "bearer", "psk", "otp",
    "cookie", "session", "sas", "sig", "identified", "connect", "://", "@",
)  # fmt: skip  # a table


@cache
def literals() -> tuple[str, ...]:
    """Lower-case texts, none of which contains another one of them."""
    found = {*_NAMES, *(s.literal.lower() for s in SHAPES if len(s.literal) > 1), "akia", "asia",
             "aida", "aroa", *(key.split()[0] for key in OPTIONS), *STDIN_READERS}  # fmt: skip  # a table
    shortest = sorted(found, key=len)
    kept: list[str] = []
    for text in shortest:
        if not any(known in text for known in kept):
            kept.append(text)
    return tuple(kept)


def pattern() -> str:
    """The same as a regular expression of literals (for Arrow; case is ignored)."""
    return "|".join(re.escape(text) for text in literals())


def is_suspicious(text: str) -> bool:
    """Whether one of the literals is in the text."""
    lower = text.lower()
    return any(literal in lower for literal in literals())
