"""Redact secrets in commands: in the arguments of a program, or in shell text.

Secrets become `<redacted>`; the rest is unchanged, so that a command can still be recognised.
docs/reference/secrets.md lists the secrets that are recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from tracehint.schemas.commandline.shelltext import ShellWord, SimpleCommand, simple_commands
from tracehint.schemas.redact.rules import (
    CREDENTIAL_ARGUMENTS,
    FIRST_ONLY,
    KEYS,
    NAME_OPTIONS,
    NO_PASSWORD,
    PASSWORD_OPTIONS,
    PLACES,
    PRINTING,
    REDACTED,
    SETTERS,
    SHELL_SETTERS,
    SPEAKERS,
    STDIN_READERS,
    TEXT_TAKERS,
    USER_OPTIONS,
    VALUES,
    VERBS,
    SecretPlace,
    places,
    programs,
)
from tracehint.schemas.redact.text import hide_fields, hide_header
from tracehint.schemas.redact.values import (
    Kind,
    is_flag,
    is_random,
    is_secret,
    is_strange,
    is_suspicious,
    kind_of_name,
    parts_of,
)

_DEPTH = 5  # nested shells whose text is parsed; deeper, only names and shapes are searched
_OPTION = re.compile(r"--?[A-Za-z][\w.-]{1,100}", re.ASCII)
_NAME = re.compile(r"/?[A-Za-z][\w.:/-]{1,100}", re.ASCII)
_USER = re.compile(r"[A-Za-z_][\w@\\-]{0,63}", re.ASCII)
_SECRET_INPUT = re.compile(
    r"--?(?:pass(?:word|wd|phrase)?|pwd?|token|secret|key)-?(?:std)?in|password_stdin"
)
_ACTION = re.compile(r"[a-z]{2,20}(?:[_-][a-z]{2,20}){1,4}")  # `reset-admin-password`
_READER = re.compile(r"(?:/(?:usr/)?s?bin/)?[a-z][a-z_-]{1,40}")  # `sudo chpasswd`
_STRANGE = SecretPlace("", strange=True)
_CREDENTIALS = places(CREDENTIAL_ARGUMENTS)
_AUTH = SecretPlace("", sign=":")  # of --auth: USER:SECRET, or a token
_CURL = "curl "  # options in a variable with a secret's name are parsed as options of this program


def redact_argv(argv: Sequence[bytes], *, asked: bool = False) -> tuple[list[bytes], int]:
    """Return the redacted arguments and the number of replacements.

    asked: the arguments are known to be suspicious (values.py); this is not checked again."""
    new, hits = redact_words_of([arg.decode("latin-1") for arg in argv], asked=asked)
    return [word.encode("latin-1") for word in new], hits


def redact_text(text: bytes) -> tuple[bytes, int]:
    """Redact shell text (a recipe, a line of a job log); return it and the replacement count."""
    new, hits = redact_string(text.decode("latin-1"))
    return new.encode("latin-1"), hits


def redact_words_of(argv: list[str], *, asked: bool = False) -> tuple[list[str], int]:
    """As redact_argv, for str."""
    if not asked and not is_suspicious("\0".join(argv)):
        return argv, 0
    new = _redact_words(argv, lambda text: _text(text, _DEPTH))
    return new, _hits(zip(argv, new, strict=True))


def redact_string(text: str) -> tuple[str, int]:
    """As redact_text, for str."""
    if not is_suspicious(text):
        return text, 0
    new = _text(text, _DEPTH)
    return new, _hits([(text, new)])


def _hits(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(
        max(1, new.count(REDACTED) - old.count(REDACTED)) for old, new in pairs if old != new
    )


# --- the words of one program -------------------------------------------------------------------


def _redact_words(words: Sequence[str], text: Callable[[str], str]) -> list[str]:
    """Redact the words. `text` redacts a word that is command text itself."""
    reader = _WordReader(text)
    return [reader.read(word, first=not at) for at, word in enumerate(words)]


class _WordReader:
    """Reads the words in one pass. `expected`: role of the next word, set by the word before it."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self.text = text
        self.program = ""
        self.secret_places: tuple[SecretPlace, ...] = ()
        self.subcommands = programs()["*"]
        self.place = 0
        self.expected: SecretPlace | Kind = ""
        self.sets = False  # an earlier word was `set`, `login` or similar
        self.names = False  # a later word was the name of a secret
        self.user = 0  # words since `-u USER`; 0: none
        self.last = ""

    def read(self, word: str, *, first: bool) -> str:
        """Return the next word without its secret."""
        expected, self.expected = self.expected, ""
        last, self.last = self.last, word
        self._count_words(word, last)
        if expected and (word[:1] != "-" or len(word) == 1 or isinstance(expected, SecretPlace)):
            if isinstance(expected, SecretPlace):
                return self._value(expected, word)
            return self._named_value(expected, word, last)
        if last in KEYS and is_random(word):
            return REDACTED
        if (first or last not in NAME_OPTIONS) and self._is_program(word, first=first):
            return word
        if word[:1] in "-/" or not first:
            done = self._option(word)
            if done is not None:
                return done
        if word[:1] != "-" and not first:
            done = self._argument(word)
            if done is not None:
                return done
        return self._plain(word, last)

    def _count_words(self, word: str, last: str) -> None:
        """Update `user`: a password may follow `-u USER`, with only options and values between."""
        if last in USER_OPTIONS and _USER.fullmatch(word) and self.program not in NO_PASSWORD:
            self.user = 1
        elif self.user:
            bare = word[:1] != "-"
            self.user = 0 if bare and last[:1] != "-" else self.user + 1

    def _is_program(self, word: str, *, first: bool) -> bool:
        name = word.rpartition("/")[2]
        if first:
            self.program = name
        if (name in FIRST_ONLY or name == "*") and not first:
            return False
        known = programs().get(name)
        if known is None and name not in TEXT_TAKERS and name not in SHELL_SETTERS:
            kind = kind_of_name(name) if first else ""
            if kind == "strong" or (kind and VERBS.intersection(parts_of(name))):
                self.secret_places = _CREDENTIALS
            return False
        if known is None or name != self.program or first:
            self.program = name
            general = {} if name in TEXT_TAKERS else programs()["*"]
            self.subcommands = {**general, **(known or {})}
            self.secret_places, self.place, self.user = self.subcommands.get("", ()), 0, 0
            self.sets = self.names = False
        return True

    def _option(self, word: str) -> str | None:
        for entry in self.secret_places:
            name = entry.word
            if not name:
                continue
            if word == name:
                self.expected = entry if entry.separate else ""
                return word
            if not entry.attached or name[0] not in "-/":
                continue
            short = len(name) == 2 or not entry.separate
            if word.startswith(name + "=") or ((short or name[0] == "/") and word.startswith(name)):
                cut = len(name) + (word[len(name)] == "=" and not short)
                return word[:cut] + self._value(entry, word[cut:])
            if short and entry.sign and word[:1] == "-" and word[1:2] not in ("-", ""):
                flags, letter, rest = word.partition(name[1])
                if letter and flags[1:].isalpha() and len(flags) < 9:
                    if not rest:
                        self.expected = entry
                        return word
                    if entry.sign in rest:
                        return flags + letter + self._value(entry, rest)
        if self.names and word in VALUES:
            self.expected = _STRANGE
            return word
        if self.user and word[:2] in PASSWORD_OPTIONS:
            if len(word) == 2:
                self.expected = _STRANGE
                return word
            if is_strange(word[2:]):
                return word[:2] + REDACTED
        if word in USER_OPTIONS:
            self.expected = SecretPlace("", sign=":", strange=True)
            return word
        return None

    def _argument(self, word: str) -> str | None:
        """Redact a word without a dash: a subcommand, or an argument with a place in the table."""
        if word in self.subcommands and word != self.program:
            general = self.subcommands.get("", ())
            self.secret_places = (*self.subcommands[word], *(e for e in general if e.word))
            self.place, self.sets = 0, self.sets or word in SETTERS
            return word
        if _ACTION.fullmatch(word) and VERBS.intersection(parts_of(word)) and kind_of_name(word):
            self.secret_places, self.place = (*self.secret_places, *_CREDENTIALS), 0
            return word
        self.names |= self.sets and bool(kind_of_name(word))
        self.place += 1
        for entry in self.secret_places:
            if entry.place == self.place:
                return self._value(entry, word)
            if entry.place < 0 and "=" in word:
                return self._value(entry, word)
        return None

    def _value(self, entry: SecretPlace, word: str) -> str:
        """Redact the value of an option or argument of the table."""
        if not entry.sign:
            good = is_strange(word) if entry.strange else is_secret(word, "strong")
            return REDACTED if good else self._plain(word, "")
        if entry.sign == ":" and ("://" in word or word.startswith(PLACES)):
            return hide_fields(word)
        head, sign, secret = word.partition(entry.sign)
        if entry.sign == "=" and ";" in word:
            return _cookies(word)
        good = is_strange(secret) if entry.strange else is_secret(secret, "strong")
        if sign and good:
            return f"{head}{sign}{REDACTED}"
        if (
            (entry is _AUTH or entry.word.endswith("auth"))
            and any(map(str.isdigit, word))
            and is_strange(word)
        ):
            return REDACTED
        return self._plain(word, "")

    def _named_value(self, kind: Kind, word: str, name: str) -> str:
        """Redact the word after a secret's name."""
        if "," in word and word.startswith(("id=", "type=")):
            return hide_fields(word)  # `id=tok,src=file` of `docker build --secret`
        if not any(map(str.isalnum, word)):
            return word  # `password = ...` of some program's text
        if name[:1] != "-" and not self.sets and not is_strange(word):
            return self._plain(word, name)
        if kind_of_name(word) and self.sets:
            self.expected = _STRANGE  # `config set --secret NAME VALUE`
        stored = name[:1] != "-" and kind == "weak" and is_strange(word)
        return REDACTED if stored or is_secret(word, kind) else self._plain(word, name)

    def _plain(self, word: str, last: str) -> str:
        header = hide_header(word)
        if header is None and word[:2] == "-H":
            inside = hide_header(word[2:])
            header = None if inside is None else "-H" + inside
        if header is not None:
            return header
        blank = any(c in " \t\n" for c in word)
        is_text = blank and (self.program in TEXT_TAKERS or (last[:1] == "-" and last[-1:] in "ec"))
        done = self._assignment(word, blank=blank, is_text=is_text)
        if done is not None:
            return done
        if blank:
            return self._redact_call(word, last) if _prints(last) else self.text(word)
        self.sets |= word in SETTERS
        self._expect_value(word)
        return word if self.expected else hide_fields(word)

    def _assignment(self, word: str, *, blank: bool, is_text: bool) -> str | None:
        """Redact NAME=VALUE; None if no rule for assignments applies."""
        name, equals, value = word.partition("=")
        if not equals or not name or any(c.isspace() or c in "\"'$({:&?," for c in name):
            return None
        inside = hide_header(value)
        if inside is not None and blank:
            return f"{name}={inside}"
        kind = kind_of_name(name)
        if not is_text and kind and not is_flag(name) and "=" not in value[:1]:
            if is_secret(value, kind, code=blank):
                return f"{name}={REDACTED}"
            if value[:1] == "-" and blank:  # AUTH='-u USER:SECRET'
                return f"{name}={self.text(_CURL + value)[len(_CURL) :]}"
            if name.lower().endswith("auth"):
                return f"{name}={self._value(_AUTH, value)}"
        elif blank and not is_text:
            return f"{name}={self._redact_call(value, name) if _prints(name) else self.text(value)}"
        elif name in USER_OPTIONS and ":" in value:
            return f"{name}={self._value(SecretPlace('', sign=':', strange=True), value)}"
        return None

    def _expect_value(self, word: str) -> None:
        """Set `expected` if the word is a name that is followed by a secret."""
        if self.program in SHELL_SETTERS or (_OPTION.fullmatch(word) and not is_flag(word)):
            self.expected = kind_of_name(word)
            if self.expected == "weak" and word.lower().endswith("auth"):
                self.expected = _AUTH
        elif _NAME.fullmatch(word) and word[:1] != "-":
            kind = kind_of_name(re.split("[:/]", word)[-1])
            self.expected = kind if self.sets or (kind == "strong" and "/" not in word) else ""

    def _redact_call(self, word: str, name: str) -> str:
        """Redact a command whose output is a secret: `--password-command 'echo S'`."""
        return _text(word, _DEPTH, into=name)


def _prints(name: str) -> bool:
    """Whether an option's value is a command that prints a secret: `--password-command`."""
    *before, last = parts_of(name) or [""]
    return last in PRINTING and bool(kind_of_name("-".join(before)))


def _cookies(word: str) -> str:
    """Redact all values of `name=value; name=value`; a file name stays."""
    parts = []
    for part in word.split(";"):
        name, equals, _ = part.partition("=")
        parts.append(f"{name}={REDACTED}" if equals else part)
    return ";".join(parts)


# --- shell text ---------------------------------------------------------------------------------


def _text(text: str, depth: int, into: str = "") -> str:
    """Redact shell text. into: the name that receives the output of the text."""
    if depth == 0:
        return hide_fields(text)
    changes: list[tuple[int, int, str]] = []
    for command in simple_commands(text):
        if command.kind == "comment":
            changes += _redact_here_text(command.words[0], depth, secret=False)
            continue
        reads = _reads_secret(command)
        if reads and command.source is not None:
            changes += _redact_printed(command.source)
        if _receives_secret(command.into or into):
            changes += _redact_printed(command)
        names = command.here and any(_receives_secret(word.value) for word in command.words)
        for here in command.here:
            changes += _redact_here_text(
                here, depth, secret=reads or (bool(names) and is_strange(here.value))
            )
        changes += _redact_text_words(text, command, depth)
    return hide_fields(_splice_changes(text, changes))


def _redact_text_words(text: str, command: SimpleCommand, depth: int) -> list[tuple[int, int, str]]:
    """Return changes of words with secrets; substitutions are redacted as commands themselves."""
    old = ["" if word.nested else word.value for word in command.words]
    new = _redact_words(old, lambda inner: _text(inner, depth - 1))
    return [
        (word.start, word.end, _requote(value, text[word.start : word.end]))
        for word, before, value in zip(command.words, old, new, strict=True)
        if value != before
    ]


def _redact_here_text(word: ShellWord, depth: int, *, secret: bool) -> list[tuple[int, int, str]]:
    """Redact a here-string, comment, or body of a here-document, each line as separate text."""
    if secret:
        return [_hide_word(word)]
    if "\n" not in word.value:
        new = hide_fields(word.value)
    else:
        lines = hide_fields(word.value).split("\n")
        new = "\n".join(_text(line, depth - 1) for line in lines)
    return [(word.start, word.end, new)] if new != word.value else []


def _hide_word(word: ShellWord) -> tuple[int, int, str]:
    return word.start, word.end, REDACTED + ("\n" if word.value.endswith("\n") else "")


def _splice_changes(text: str, changes: list[tuple[int, int, str]]) -> str:
    out: list[str] = []
    done = 0
    for start, end, new in sorted(changes, key=lambda change: change[0]):  # the first one wins
        if start >= done:
            out += (text[done:start], new)
            done = end
    return "".join((*out, text[done:]))


def _reads_secret(command: SimpleCommand) -> bool:
    """Whether the command reads a secret from its standard input."""
    words = [word.value for word in command.words]
    for word in words:
        name = word.rpartition("/")[2]
        wanted = STDIN_READERS.get(name)
        if wanted is not None and (not wanted or wanted in words):
            return True
    if any(_READER.fullmatch(word) and kind_of_name(word) == "strong" for word in words[:3]):
        return True
    return any(_SECRET_INPUT.search(word) for word in words if "stdin" in word)


def _receives_secret(into: str) -> bool:
    """Whether output for it is secret: `PASSWORD=`, `--password-file=`, `--password-command`."""
    return any(kind_of_name(part) not in ("", "weak") for part in parts_of(into)[:4])


def _redact_printed(command: SimpleCommand) -> list[tuple[int, int, str]]:
    """Redact arguments of echo, but no options, and no format of a printf with other arguments."""
    if not command.words or command.words[0].value not in SPEAKERS:
        return []
    several = command.words[0].value == "printf" and len(command.words) > 2
    return [
        _hide_word(word)
        for word in command.words[1:]
        if word.value[:1] != "-"
        and is_secret(word.value, "strong")
        and not ("%" in word.value and several)
    ]


def _requote(value: str, raw: str) -> str:
    """Return the value as a word of shell text, quoted as `raw` if it needs quotes."""
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
