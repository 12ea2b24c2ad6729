"""The cheap question that is asked of every command first: can there be a secret in it at all?

A command with none of these texts in it is left as it is; every rule needs one of them.
"""

from __future__ import annotations

import re
from functools import cache

from tracehint.schemas.redact.options import OPTIONS, STDIN_READERS
from tracehint.schemas.redact.shapes import SHAPES

# Parts of names, and of what fields.py looks for. Lower case; compared without regard to case.
_PARTS = (
    "pass", "pwd", "pw", "secret", "token", "key", "cred", "auth", "jwt", "bearer", "psk", "otp",
    "cookie", "sessionid", "sas", "sig", "identified", "connect",
)  # fmt: skip  # a table


@cache
def literals() -> tuple[str, ...]:
    """Texts of which one is in every command with a secret that has a name or a shape."""
    found = {*_PARTS, *(text.lower() for shape in SHAPES for text in shape.literals.split("|"))}
    return tuple(t for t in sorted(found) if not any(o in t for o in found - {t}))


@cache
def _programs() -> frozenset[str]:
    return frozenset({*(key.split()[0] for key in OPTIONS), *STDIN_READERS})


@cache
def pattern() -> str:
    """The question as a regular expression for RE2 (Arrow), with case ignored."""
    names = "|".join(re.escape(name) for name in sorted(_programs()))
    texts = "|".join(re.escape(text) for text in literals())
    return rf"(?s){texts}|(?:^|[^\w.-])(?:{names})(?:$|[^\w.-])|:.*@"


def is_suspicious(text: str) -> bool:
    """Whether there can be a secret in the text."""
    lower = text.lower()
    if any(literal in lower for literal in literals()):
        return True
    if -1 < lower.find(":") < lower.rfind("@"):
        return True
    return not _programs().isdisjoint(re.findall(r"[\w.-]+", lower, re.ASCII))
