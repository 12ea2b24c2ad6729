"""Shell text as words with their places: enough of the grammar to find what each program gets.

It runs nothing. One pass over the text; every part of a token is bounded or possessive.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import NamedTuple

from tracehint.schemas.redact.shapes import REDACTED


class ShellWord(NamedTuple):
    """A word of the text: `text[start:end]`, which the program gets as `value`.

    here: it is a here-string or the body of a here-document."""

    start: int
    end: int
    value: str
    here: bool = False


class Simple(NamedTuple):
    """A simple command; `piped`: its output goes into the next one."""

    words: list[ShellWord]
    here: list[ShellWord]
    piped: bool


@cache
def _token() -> re.Pattern[str]:
    return re.compile(
        r"""(?P<space>(?:[^\S\n]|\\\n)++)
        | (?P<heredoc><<-?[^\S\n]{0,8}(?P<q>['"\\]?)(?P<tag>[A-Za-z_]\w{0,63}+)['"]?)
        | (?P<herestring><<<)
        | (?P<word>(?:<redacted>
            | \$'(?:\\.|[^'\\])*+' | '[^']*+' | "(?:\\.|[^"\\])*+"
            | \$\{[^}\n]{0,400}+\} | \\. | [^\s;&|()<>'"\\`$]++ | \$(?!\() )++ | ['"\\])
        | (?P<redirect>[<>]&?-?|&>>?)
        | (?P<pipe>\|&?(?!\|))
        | (?P<sep>&&|\|\||;;|[;&()\n`]|\$\()""",
        re.VERBOSE | re.DOTALL | re.ASCII,
    )


@cache
def _quoted() -> re.Pattern[str]:
    return re.compile(
        r"""\$'((?:\\.|[^'\\])*+)' | '([^']*+)' | "((?:\\.|[^"\\])*+)" | \\(.)""",
        re.VERBOSE | re.DOTALL | re.ASCII,
    )


def unquote(word: str) -> str:
    """The word as the program gets it, variables left as they are."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _quoted().sub(_plain, word)


def _plain(found: re.Match[str]) -> str:
    if found[2] is not None:
        return found[2]
    if found[4] is not None:
        return found[4]
    inside = found[1] if found[1] is not None else found[3]
    return re.sub(r"\\([\\\"'$`])", r"\1", inside)


def simple_commands(text: str) -> list[Simple]:
    """The simple commands of the text, in order, with the bodies of their here-documents."""
    reader = _ShellReader(text)
    reader.read()
    return reader.commands


class _ShellReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.commands: list[Simple] = []
        self._words: list[ShellWord] = []
        self._here: list[ShellWord] = []
        self._tags: list[tuple[str, list[ShellWord]]] = []
        self._lines: dict[str, list[int]] | None = None

    def read(self) -> None:
        at, here_next = 0, False
        scan = _token().match
        while at < len(self.text):
            found = scan(self.text, at)
            if found is None:
                at += 1
                continue
            kind, at = found.lastgroup, found.end()
            if kind == "word":
                word = ShellWord(found.start(), at, unquote(found.group()), here_next)
                (self._here if here_next else self._words).append(word)
                here_next = False
            elif kind == "herestring":
                here_next = True
            elif found["heredoc"] is not None:
                self._tags.append((found["tag"], self._here))
            elif kind in ("sep", "pipe"):
                newline = found.group() == "\n"
                self._close(piped=kind == "pipe")
                if newline and self._tags:
                    at = self._bodies(at)
        self._close(piped=False)

    def _close(self, *, piped: bool) -> None:
        if self._words or self._here or self._tags:
            self.commands.append(Simple(self._words, self._here, piped))
        self._words, self._here = [], []

    def _bodies(self, at: int) -> int:
        """The here-documents that begin at the line `at`; the place behind them."""
        for tag, here in self._tags:
            end = self._line_of(tag, at)
            here.append(ShellWord(at, end, self.text[at:end], here=True))
            newline = self.text.find("\n", end)
            at = len(self.text) if newline < 0 else newline + 1
        self._tags = []
        return at

    def _line_of(self, tag: str, at: int) -> int:
        """Where the next line begins that holds the tag only; the end of the text if none does."""
        if self._lines is None:
            self._lines, start = {}, 0
            for line in self.text.split("\n"):
                self._lines.setdefault(line.strip(), []).append(start)
                start += len(line) + 1
        starts = self._lines.get(tag, [])
        index = bisect_right(starts, at - 1)
        return starts[index] if index < len(starts) else len(self.text)


def requote(value: str, raw: str) -> str:
    """The value as a word of shell text, quoted as `raw` was where it must be."""
    rest = value.replace(REDACTED, "")
    if not re.search(r"[\s;&|()<>'\"\\`]", rest) or (
        raw[:1] not in "'\"$" and not re.search(r"['\"\\]", raw)
    ):
        return value
    if "'" not in value:
        return f"'{value}'" if "=" not in raw or raw[0] in "'\"" else _after_equals(value, "'")
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _after_equals(value: str, quote: str) -> str:
    name, _, rest = value.partition("=")
    return f"{name}={quote}{rest}{quote}"
