"""A small reader of shell text: the simple commands in it, in order. It runs nothing.

Enough of the grammar for `sh -c TEXT` of workflow engines: quotes, separators, redirections,
keywords. What it does not understand it skips.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MAX_TEXT = 8192  # characters looked at
MAX_COMMANDS = 64

_TOKEN = re.compile(
    r"""\\\n | (?P<word>(?: '[^']*' | "(?:\\.|[^"\\])*" | \\. | \$\([^()]*\) | `[^`]*`
          | \$\{[^}]*\} | [^\s;&|()<>'"\\`] | ['"\\`] )+)
      | (?P<redirect>\d*(?:<<<|<<-?|<>|>>|>\||[<>]&?|&>>?)-?)
      | (?P<separator>&&|\|\||\|&|;;|[;&|()\n])
      | (?P<space>[^\S\n]+)""",
    re.VERBOSE | re.DOTALL,
)
# A text that starts with an ordinary word, which is a command's name unless it is a keyword.
FIRST_WORD = re.compile(r"\s*([\w./+-]+)(?=\s)")
_QUOTED = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""", re.DOTALL)
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*\+?=")
_OPENERS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time"})
_CLOSERS = frozenset({"fi", "done", "esac", "}"})
KEYWORDS = _OPENERS | _CLOSERS
# Loop heads are no commands; the rest up to the separator is skipped.
_HEADS = frozenset({"for", "case", "select", "function"})


def simple_commands(text: str) -> Iterator[list[str]]:
    """The words of each simple command, without assignments, keywords and redirections."""
    words: list[str] = []
    skip_next = False
    given = 0
    for token in _TOKEN.finditer(text[:MAX_TEXT]):
        kind, value = token.lastgroup, token.group()
        if kind == "separator":
            if words:
                yield words
                given += 1
                if given >= MAX_COMMANDS:
                    return
            words, skip_next = [], False
        elif kind == "redirect":
            # `2>&1` names its target itself; otherwise the next word is a file
            skip_next = not value.endswith("-")
        elif kind == "word":
            if value.startswith("#") and not words:
                continue
            if skip_next:
                skip_next = False
            elif words or not _is_prefix(value):
                words.append(unquote(value))
    if words:
        yield words


def _is_prefix(word: str) -> bool:
    return word in _OPENERS or word in _CLOSERS or bool(_ASSIGNMENT.match(word))


def unquote(word: str) -> str:
    """The word as the program gets it, variables left as they are."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _QUOTED.sub(lambda m: m[1] or m[2] or m[3] or "", word)


def first_word(text: str) -> str:
    """The command name that the text starts with, where that is plain to see; else empty."""
    found = FIRST_WORD.match(text)
    return "" if found is None or found[1] in KEYWORDS or found[1] in _HEADS else found[1]


def is_loop_head(words: list[str]) -> bool:
    """Whether the words are the head of a loop or a case, not a command."""
    return words[0] in _HEADS
