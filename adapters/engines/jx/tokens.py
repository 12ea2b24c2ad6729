"""JX text as tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tracehint.adapters.engines.jx.tree import JxError

KEYWORDS = frozenset({"and", "or", "not", "for", "in", "if", "error"})
_CONSTANTS = {"true": True, "false": False, "null": None}
_SAME = {"&&": "and", "||": "or", "!": "not"}
_TOKEN = re.compile(
    r"""[ \t\r\n\v\f]+ | \#[^\n\r]*
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>(?:[0-9]|\.[0-9])(?:[eE][-+]?|[0-9.])*)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<mark>[=!<>]=|&&|\|\||[-+*/%!<>()\[\]{},:;.])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u(.{0,4})|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_INTEGER_MAX = 2**63 - 1


class Token(NamedTuple):
    """kind: a mark or keyword itself, "value" (constants, numbers, texts), "name", or "end"."""

    kind: str
    value: Any
    line: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens, an "end" last. Raises JxError."""
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            what = "a quote that is not closed" if text[at] == '"' else f"{text[at]!r}"
            raise JxError(f"line {line}: {what}")
        kind, word = found.lastgroup, found[0]
        if kind == "text":
            yield Token("value", _unescaped(word[1:-1], line), line)
        elif kind == "number":
            yield Token("value", _number(word, line), line)
        elif kind == "mark":
            yield Token(_SAME.get(word, word), word, line)
        elif kind == "name":
            yield _word(word, line)
        line += word.count("\n")
        at = found.end()
    yield Token("end", None, line)


def _word(word: str, line: int) -> Token:
    if word in _CONSTANTS:
        return Token("value", _CONSTANTS[word], line)
    return Token(word if word in KEYWORDS else "name", word, line)


def _number(word: str, line: int) -> int | float:
    if word.isdigit():
        return _INTEGER_MAX if len(word) > 19 else min(int(word), _INTEGER_MAX)
    try:
        return float(word)
    except ValueError:
        raise JxError(f"line {line}: {word[:40]} is not a number") from None


def _unescaped(text: str, line: int) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] is None:
            return _ESCAPES.get(found[2], found[2])
        try:
            code = int(found[1], 16) if len(found[1]) == 4 else 0
        except ValueError:
            code = 0
        if not code:
            raise JxError(f"line {line}: \\u{found[1]} is not a character")
        return chr(code)

    return _ESCAPE.sub(one, text) if "\\" in text else text
