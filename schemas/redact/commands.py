"""Commands without their secrets: the words of a program, or shell text.

What is secret is replaced by `<redacted>`; the rest stays as it was, so that a command can still
be recognised. docs/reference/recording.md lists what is recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tracehint.schemas.redact.fields import hide_fields
from tracehint.schemas.redact.options import STDIN_READERS
from tracehint.schemas.redact.shapes import REDACTED as _REDACTED
from tracehint.schemas.redact.shelltext import ShellWord, Simple, requote, simple_commands
from tracehint.schemas.redact.suspicion import is_suspicious
from tracehint.schemas.redact.values import is_secret
from tracehint.schemas.redact.words import redact_words

REDACTED = _REDACTED.encode()
_DEPTH = 5  # shells within shells whose text is read; below that only names and shapes are
_SPEAKERS = ("echo", "printf", "print", "/bin/echo", "builtin")
_SECRET_FLAG = re.compile(
    r"--?(?:pass(?:word|wd|phrase)?|token|secret|key)-?(?:std)?in|password_stdin"
)


def redact_argv(argv: Sequence[bytes]) -> tuple[list[bytes], int]:
    """The arguments without secrets, and how many were replaced."""
    new, hits = redact_words_of([arg.decode("latin-1") for arg in argv])
    return [word.encode("latin-1") for word in new], hits


def redact_text(text: bytes) -> tuple[bytes, int]:
    """Shell text (a recipe, the line of a job log) without secrets, and how many were replaced."""
    new, hits = redact_string(text.decode("latin-1"))
    return new.encode("latin-1"), hits


def redact_words_of(argv: list[str]) -> tuple[list[str], int]:
    """As redact_argv, of text."""
    if not is_suspicious("\0".join(argv)):
        return argv, 0
    new = redact_words(argv, lambda text: _text(text, _DEPTH))
    return new, _hits(zip(argv, new, strict=True))


def redact_string(text: str) -> tuple[str, int]:
    """As redact_text, of text."""
    if not is_suspicious(text):
        return text, 0
    new = _text(text, _DEPTH)
    return new, _hits([(text, new)])


def _hits(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(
        max(1, new.count(_REDACTED) - old.count(_REDACTED)) for old, new in pairs if old != new
    )


def _text(text: str, depth: int) -> str:
    if depth == 0:
        return hide_fields(text)
    changes: list[tuple[int, int, str]] = []
    commands = simple_commands(text)
    for number, command in enumerate(commands):
        before = commands[number - 1] if number else None
        told = _reads_secret(command)
        if told and before is not None and before.piped and _speaks(before):
            changes += [_hidden(w) for w in before.words[1:] if _is_content(w.value, before)]
        for here in command.here:
            changes += _here(here, depth, told=told)
        changes += _changed(text, command, depth)
    return hide_fields(_spliced(text, changes))


def _changed(text: str, command: Simple, depth: int) -> list[tuple[int, int, str]]:
    old = [word.value for word in command.words]
    new = redact_words(old, lambda inner: _text(inner, depth - 1))
    return [
        (word.start, word.end, requote(value, text[word.start : word.end]))
        for word, value in zip(command.words, new, strict=True)
        if value != word.value
    ]


def _here(word: ShellWord, depth: int, *, told: bool) -> list[tuple[int, int, str]]:
    """A here-string or the body of a here-document, each line of it as text of its own."""
    if told:
        return [_hidden(word)]
    if "\n" not in word.value:
        new = hide_fields(word.value)
    else:
        lines = hide_fields(word.value).split("\n")
        new = "\n".join(_text(line, depth - 1) for line in lines)
    return [(word.start, word.end, new)] if new != word.value else []


def _hidden(word: ShellWord) -> tuple[int, int, str]:
    return word.start, word.end, _REDACTED + ("\n" if word.value.endswith("\n") else "")


def _spliced(text: str, changes: list[tuple[int, int, str]]) -> str:
    out: list[str] = []
    done = 0
    for start, end, new in sorted(changes):
        if start >= done:
            out += (text[done:start], new)
            done = end
    return "".join((*out, text[done:]))


def _reads_secret(command: Simple) -> bool:
    """Whether the command takes a secret from its standard input."""
    words = [word.value for word in command.words]
    for word in words:
        wanted = STDIN_READERS.get(word.rpartition("/")[2])
        if wanted is not None and (not wanted or wanted in words):
            return True
    return any(_SECRET_FLAG.search(word) for word in words if "stdin" in word)


def _speaks(command: Simple) -> bool:
    return bool(command.words) and command.words[0].value in _SPEAKERS


def _is_content(value: str, command: Simple) -> bool:
    """What echo prints: no option; of printf no format beside other words."""
    if value[:1] == "-" or not is_secret(value, "strong"):
        return False
    return not ("%" in value and command.words[0].value == "printf" and len(command.words) > 2)
