"""Whether a value can be a secret: no reference, no file, no number where one is meant."""

from __future__ import annotations

import re

from tracehint.schemas.redact.names import Kind, word_set
from tracehint.schemas.redact.shapes import REDACTED

# $X, ${X}, ${X%.*}, $1, $(cat f), `cat f`, {wildcard}, {{ x }}, %s, <placeholder>, ***
_REFERENCE = re.compile(
    r"\$(?:[A-Za-z_]\w{0,99}|[0-9#@*?]|\{\w{1,99}(?:[#%/^,@\[][^}]{0,200})?\}|\(.*\)?)|`.*"
    r"|\{\{?[\s\w.:\[\]]{0,99}\}?\}|%[a-z]|%\(\w{0,99}\)s|</?[\w -]{1,40}>|\*{2,99}|\.{3}"
    r"|\.[a-z_]\w{0,99}|\.[*+].*|\\[A-Za-z].*|\[\^?.{0,99}\][*+]?",  # of jq and regular expressions
    re.DOTALL | re.ASCII,
)
_WORDS = word_set("true false yes no none null nil auto ask prompt stdin on off env default")
_FILE = re.compile(
    r"[\w./~+@-]{0,400}\.(?:json|txt|pem|key|crt|cer|ya?ml|ini|cfg|conf|cnf|csv|tsv|env|toml|xml|p12"
    r"|pfx|jks|enc|gpg|asc|ngc|ppk|netrc|token|jwt|keytab|fa|bed|tbl)",
    re.IGNORECASE | re.ASCII,
)
_PATH = re.compile(r"(?:~|\.\.?)?(?:/[\w.+@-]{0,200})+|@.{1,400}|file:.{1,400}|\.", re.ASCII)
_LONG = re.compile(r"[A-Za-z0-9+_=-]{20,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{0,5}(?:\.[0-9]{0,9})?(?:e-?[0-9]{1,3})?")
_CODE = re.compile(
    r"[\w.$]{0,200}[(\[].*|lambda\b.*|\$\w.*|[\w]{1,100}\.[A-Za-z_]\w{0,100}(?:\.\w{1,100}){0,5}",
    re.ASCII,
)


def is_random(text: str) -> bool:
    """Whether the text looks made by chance: long, with letters and digits."""
    body = text.rstrip("=")
    return (
        len(body) >= 20
        and _LONG.fullmatch(body) is not None
        and any(c.isdigit() for c in body)
        and sum(c.isalpha() for c in body) >= 4
        and sum(c.isdigit() for c in body) >= 3
    )


def is_secret(value: str, kind: Kind, *, code: bool = False) -> bool:
    """Whether what a name of this kind names is to be taken out.

    code: the value stands unquoted in a program's text, where it may be an expression.
    """
    if not value or not kind or value == REDACTED or _REFERENCE.fullmatch(value):
        return False
    if value.lower() in _WORDS or (
        _NUMBER.fullmatch(value) and (kind != "strong" or len(value) < 3)
    ):
        return False
    if _is_place(value) or (code and _CODE.fullmatch(value)):
        return False
    return kind != "weak" or _is_strange(value)


def _is_place(value: str) -> bool:
    """A file's name."""
    if _FILE.fullmatch(value):
        return True
    return _PATH.fullmatch(value) is not None and not any(map(is_random, value.split("/")))


def _is_strange(value: str) -> bool:
    """Not a plain word, name or formula: for names that are ordinary ones (KEY, AUTH)."""
    if is_random(value):
        return True
    if len(value) < 5 or any(c.isspace() for c in value):
        return False
    kinds = sum(
        (any(map(str.islower, value)), any(map(str.isupper, value)), any(map(str.isdigit, value)))
    )
    return kinds == 3 or (kinds == 2 and any(map(str.isdigit, value)) and len(value) >= 6)
