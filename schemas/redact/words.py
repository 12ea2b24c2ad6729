"""The words that a program gets: which of them are secrets, by program and by name of option."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tracehint.schemas.redact.fields import hide_fields, hide_header
from tracehint.schemas.redact.names import Kind, is_flag, kind_of_name
from tracehint.schemas.redact.options import (
    FIRST_ONLY,
    NAMING,
    SETTERS,
    TEXT_TAKERS,
    Option,
    Program,
    programs,
)
from tracehint.schemas.redact.shapes import REDACTED
from tracehint.schemas.redact.values import is_secret

_NONE = Program((), ())
_NEXT = Option("", attached=False, separate=True, sign="")  # of an option with a secret's name
_PAIR = Option("", attached=False, separate=True, sign=":")  # of --auth: USER:SECRET
_OPTIONS_OF = "curl "  # what options in a variable with a secret's name are read as
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{1,100}", re.ASCII)


def redact_words(words: Sequence[str], text: Callable[[str], str]) -> list[str]:
    """The words without secrets. `text` redacts a word that is command text itself."""
    reader = _WordReader(text)
    return [reader.read(word, first=not at) for at, word in enumerate(words)]


class _WordReader:
    """Goes over the words once, with what the last program among them takes as secret."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self.text = text
        self.program = ""
        self.takes = _NONE
        self.subs: dict[str, Program] = {}
        self.place = 0
        self.next: Option | None = None
        self.last = ""
        self.kind: Kind = ""

    def read(self, word: str, *, first: bool) -> str:
        """The next word without its secret."""
        expected, self.next = self.next, None
        last, self.last = self.last, word
        if expected is not None and (word[:1] != "-" or len(word) == 1 or expected.word):
            return self._value(expected, word)
        if (first or last not in NAMING) and self._is_program(word, first=first):
            return word
        if word[:1] == "-" or word[:1] == "/" or not first:
            done = self._option(word)
            if done is not None:
                return done
        if word[:1] != "-" and not first:
            done = self._at_place(word)
            if done is not None:
                return done
        return self._plain(word, last)

    def _is_program(self, word: str, *, first: bool) -> bool:
        name = word.rpartition("/")[2]
        if name in FIRST_ONLY and not first:
            return False
        known = programs().get(name)
        if known is None and name not in TEXT_TAKERS and name not in SETTERS:
            return False
        if known is None or name != self.program:
            self.program, self.subs = name, known or {}
            self.takes, self.place = self.subs.get("", _NONE), 0
        return True

    def _option(self, word: str) -> str | None:
        for option in self.takes.options:
            name = option.word
            if word == name:
                self.next = option if option.separate else None
                return word
            if not option.attached:
                continue
            short = len(name) == 2 or not option.separate
            if word.startswith(name + "=") or ((short or name[0] == "/") and word.startswith(name)):
                cut = len(name) + (word[len(name)] == "=" and not short)
                return word[:cut] + self._value(option, word[cut:])
            if short and option.sign and word[:1] == "-" and word[1:2] not in ("-", ""):
                flags, letter, rest = word.partition(name[1])
                if letter and flags[1:].isalpha() and len(flags) < 9:
                    if not rest:
                        self.next = option
                        return word
                    if option.sign in rest:
                        return flags + letter + self._value(option, rest)
        return None

    def _at_place(self, word: str) -> str | None:
        if word in self.subs:
            found, general = self.subs[word], self.subs.get("", _NONE)
            self.takes = Program((*found.options, *general.options), found.places)
            self.place = 0
            return word
        self.place += 1
        for number, sign in self.takes.places:
            if number == self.place:
                return self._value(Option("", attached=False, separate=True, sign=sign), word)
        return None

    def _value(self, option: Option, word: str) -> str:
        """The value of an option of the table, or of one with a secret's name."""
        if not option.sign:
            if option is _NEXT and _is_pair(word):
                return hide_fields(word)
            kind = self.kind if option is _NEXT else "strong"
            return REDACTED if is_secret(word, kind) else word
        if option is _PAIR and "://" in word:
            return hide_fields(word)
        head, sign, secret = word.partition(option.sign)
        if option.sign == "=":
            return _cookies(word)
        if not sign or not is_secret(secret, "strong"):
            return hide_fields(word)
        return f"{head}{sign}{REDACTED}"

    def _plain(self, word: str, last: str) -> str:
        header = hide_header(word)
        if header is None and word[:2] == "-H":
            inside = hide_header(word[2:])
            header = None if inside is None else "-H" + inside
        if header is not None:
            return header
        blank = any(c in " \t\n" for c in word)
        is_text = blank and (self.program in TEXT_TAKERS or (last[:1] == "-" and last[-1:] in "ec"))
        name, equals, value = word.partition("=")
        if equals and name and not any(c.isspace() or c in "\"'$({:&?," for c in name):
            inside = hide_header(value)
            if inside is not None and blank:
                return f"{name}={inside}"
            kind = kind_of_name(name)
            if not is_text and kind and not is_flag(name) and "=" not in value[:1]:
                if is_secret(value, kind, code=blank):
                    return f"{name}={REDACTED}"
                inner = self._credentials(name, value)
                if inner != value:
                    return f"{name}={inner}"
            elif blank and not is_text:
                return f"{name}={self.text(value)}"
        if blank:
            return self.text(word)
        if self.program in SETTERS or (_OPTION.fullmatch(word) and not is_flag(word)):
            self.kind = kind_of_name(word)
            if self.kind == "weak" and self.program not in SETTERS:
                self.next = _PAIR if word.lower().endswith("auth") else None
            else:
                self.next = _NEXT if self.kind else None
            if self.kind:
                return word
        return hide_fields(word)

    def _credentials(self, name: str, value: str) -> str:
        """The value of `AUTH=-u USER:SECRET` or `--auth=USER:SECRET` without its secret."""
        if value[:1] == "-" and " " in value:
            return self.text(_OPTIONS_OF + value)[len(_OPTIONS_OF) :]
        return self._value(_PAIR, value) if name.lower().endswith("auth") else value


def _is_pair(word: str) -> bool:
    """`id=tok,src=file` of `docker build --secret`."""
    return "," in word and word.startswith(("id=", "type="))


def _cookies(word: str) -> str:
    """`name=value; name=value` with all values hidden; a file's name stays."""
    parts = []
    for part in word.split(";"):
        name, equals, _ = part.partition("=")
        parts.append(f"{name}={REDACTED}" if equals else part)
    return ";".join(parts)
