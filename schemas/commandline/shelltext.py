"""Parse shell text into simple commands, with words and positions. Nothing is executed.

Quotes, comments, here-documents, substitutions, subshells, `case`, `[[ ]]` and arithmetic are
parsed as by bash; unbalanced text is parsed as far as possible. One pass: every quantifier of
a token is bounded or possessive, and nesting is limited.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, NamedTuple


def word_set(text: str) -> frozenset[str]:
    """Return the set of words in the text."""
    return frozenset(text.split())


KEYWORDS = word_set("if then elif else while until do { ! fi done esac }")
HEADS = frozenset({"for", "case", "select", "function"})  # of loops and definitions, not commands
_NESTING = 16  # nested substitutions and subshells
_NAME = 200  # characters of a word before its substitution
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,255}(?:\[[^\]]{0,255}\])?\+?=", re.ASCII)
_FIRST_WORD = re.compile(r"\s{0,999}([\w./+-]{1,999})(?=\s(?!\s{0,99}\())")


class ShellWord(NamedTuple):
    """A word of the text: `text[start:end]`, passed to the program as `value`.

    nested: it contains substitutions, whose commands are reported separately."""

    start: int
    end: int
    value: str
    nested: bool = False


@dataclass(slots=True)
class SimpleCommand:
    """One simple command, head of a loop, or comment.

    here: here-strings and bodies of here-documents. source: the command whose output is piped
    into it. nested: it is part of a substitution, in the word `into` (or after that word)."""

    kind: Literal["command", "head", "comment"]
    words: list[ShellWord]
    here: list[ShellWord]
    source: SimpleCommand | None = None
    nested: bool = False
    into: str = ""

    def argv(self) -> list[str]:
        """Return the words after keywords, assignments and arithmetic."""
        values = [word.value for word in self.words]
        for at, value in enumerate(values):
            if value not in KEYWORDS and value[:2] != "((" and not _ASSIGNMENT.match(value):
                return values[at:]
        return []


def simple_commands(text: str) -> Iterator[SimpleCommand]:
    """Yield the commands of the text; commands of a substitution precede the enclosing command."""
    return _ShellReader(text).read()


def first_word(text: str) -> str:
    """Return the command name at the start of the text if it is an ordinary word, else ""."""
    found = _FIRST_WORD.match(text)
    return "" if found is None or found[1] in KEYWORDS or found[1] in HEADS else found[1]


@cache
def _token() -> re.Pattern[str]:
    return re.compile(
        r"""(?P<space>(?:[^\S\n]|\\\n)++)
        | (?P<heredoc><<(?P<dash>-?)[^\S\n]{0,8}['"\\]?(?P<tag>[A-Za-z_][\w.-]{0,63}+)['"]?)
        | (?P<herestring><<<)
        | (?P<open>\$\((?!\()|[<>]\(|`)
        | (?P<redirect>(?<![^\s;&|()])[0-9]{0,4}+(?!<redacted>)(?:<>|>\||>>|[<>]&?-?)
            | &>>? | (?!<redacted>)[<>]&?-?)
        | (?P<part>\$?\(\((?:[^()\n]|\([^()\n]{0,400}+\)){0,4000}+\)\)
            | (?:<redacted> | \$'(?:\\.|[^'\\])*+' | '[^']*+' | "(?:\\.|[^"\\$`]|\$(?!\())*+"
            | \$\{[^}\n]{0,400}+\} | \\. | [^\s;&|()<>'"\\`$]++ | \$(?!\() | \$(?=\(\())++)
        | (?P<quoted>")
        | (?P<pipe>\|&?(?!\|))
        | (?P<function>\([^\S\n]{0,8}\))
        | (?P<sep>&&|\|\||;;&?|;&|[;&()\n])
        | (?P<rest>['\\<>])""",
        re.VERBOSE | re.DOTALL | re.ASCII,
    )


@cache
def _in_quotes() -> re.Pattern[str]:
    return re.compile(
        r"""(?P<part>(?:\\.|[^"\\$`]|\$(?!\())++|\\|\$\(\() | (?P<open>\$\(|`) | (?P<quoted>")""",
        re.VERBOSE | re.DOTALL | re.ASCII,
    )


@cache
def _quotes_regex() -> re.Pattern[str]:
    return re.compile(
        r"""\$'((?:\\.|[^'\\])*+)' | '([^']*+)' | "((?:\\.|[^"\\])*+)" | \\(.)""",
        re.VERBOSE | re.DOTALL | re.ASCII,
    )


def unquote(word: str) -> str:
    """Return the word as the program receives it; variables are not expanded."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _quotes_regex().sub(_without_quotes, word)


def _without_quotes(found: re.Match[str]) -> str:
    if found[2] is not None:
        return found[2]
    if found[4] is not None:
        return "" if found[4] == "\n" else found[4]
    inside = found[1] if found[1] is not None else found[3]
    return re.sub(r"\\([\\\"'$`])", r"\1", inside)


@dataclass(slots=True)
class _Frame:
    """An open construct: the text itself, `$(`, a backtick, a subshell, or a double quote."""

    kind: str
    start: int
    nested: bool
    into: str = ""
    words: list[ShellWord] = field(default_factory=list)
    here: list[ShellWord] = field(default_factory=list)
    parts: list[str] | None = None  # of the current word
    word_start: int = 0
    holds: bool = False  # the current word contains a substitution
    source: SimpleCommand | None = None
    target: Literal["", "file", "here"] = ""  # role of the next word, after < or <<<
    cases: int = 0
    pattern: bool = False  # in a pattern of `case`
    test: bool = False  # in [[ ]]


class _ShellReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.frames = [_Frame("", 0, False)]
        self._tags: list[tuple[tuple[bool, str], list[ShellWord]]] = []
        self._lines: dict[tuple[bool, str], list[int]] | None = None
        self._last_quote = text.rfind('"')

    def read(self) -> Iterator[SimpleCommand]:
        at, text = 0, self.text
        plain, quoted = _token().match, _in_quotes().match
        while at < len(text):
            frame = self.frames[-1]
            found = (quoted if frame.kind == '"' else plain)(text, at)
            if found is None:
                at += 1
                continue
            start, at = at, found.end()
            kind, value = found.lastgroup, found.group()
            if kind == "part" and value[0] == "#" and frame.kind != '"' and frame.parts is None:
                end = text.find("\n", start)
                at = len(text) if end < 0 else end
                body = ShellWord(start + 1, at, text[start + 1 : at])
                yield SimpleCommand("comment", [body], [], nested=frame.nested)
            elif kind == "part" or kind == "rest":
                self._add(start, value if frame.kind == '"' else unquote(value))
            elif kind == "quoted":
                self._quote(start, at)
            elif kind == "open" and not (value == "`" and frame.kind == "`"):
                self._open(start, value)
            elif kind == "redirect":
                self._redirect(at, value)
            else:
                yield from self._operator(kind or "", at, found)
                if value == "\n" and self._tags:
                    at = self._bodies(at)
        while self.frames:
            yield from self._close(len(text))
            frame = self.frames.pop()
            if self.frames and frame.kind not in ("", "("):
                self._add(frame.start, text[frame.start :], holds=True)

    def _add(self, start: int, value: str, *, holds: bool = False) -> None:
        frame = self.frames[-1]
        if frame.parts is None:
            frame.parts, frame.word_start, frame.holds = [], start, False
        frame.parts.append(value)
        frame.holds |= holds

    def _quote(self, start: int, at: int) -> None:
        frame = self.frames[-1]
        if frame.kind != '"':
            if start >= self._last_quote or len(self.frames) >= _NESTING:
                self._add(start, '"')  # unterminated
            else:
                self.frames.append(
                    _Frame('"', start, frame.nested, into=self._so_far(frame, start))
                )
            return
        self.frames.pop()
        self._add(frame.start, "".join(frame.parts or ()), holds=frame.holds)

    def _open(self, start: int, value: str) -> None:
        if len(self.frames) >= _NESTING:
            self._add(start, value)
            return
        frame = self.frames[-1]
        into = (frame.into if frame.kind == '"' else "") + self._so_far(frame, start)
        if not into and frame.words:
            into = frame.words[-1].value
        kind = "`" if value == "`" else "$("
        self.frames.append(_Frame(kind, start, True, into=into))

    def _so_far(self, frame: _Frame, at: int) -> str:
        """Return the beginning of the current word, as written."""
        begin = frame.word_start
        return "" if frame.parts is None else self.text[begin : min(at, begin + _NAME)]

    def _redirect(self, at: int, value: str) -> None:
        frame = self.frames[-1]
        self._end_word(at - len(value))
        if not frame.test:
            frame.target = "" if value.endswith("-") else "file"

    def _operator(self, kind: str, at: int, found: re.Match[str]) -> Iterator[SimpleCommand]:
        """Handle a token that ends a word."""
        frame, value = self.frames[-1], found.group()
        self._end_word(found.start())
        if found["heredoc"] is not None:
            self._tags.append(((bool(found["dash"]), found["tag"]), frame.here))
        elif kind == "herestring":
            frame.target = "here"
        elif kind == "space" or (frame.test and value != "\n"):
            pass
        elif kind == "function" and len(frame.words) != 1:
            yield from self._close(at)
        elif value == "(" and not frame.pattern and len(self.frames) < _NESTING:
            source = frame.source
            yield from self._close(at)
            inner = _Frame("(", found.start(), frame.nested, frame.into, source=source)
            self.frames.append(inner)
        elif frame.pattern:
            frame.pattern = value != ")"
            if value == ")":
                yield from self._close(at, head=True)
        elif (value == ")" and frame.kind in ("(", "$(")) or (value == "`" and frame.kind == "`"):
            yield from self._close(at)
            self._leave(at)
        else:
            yield from self._close(at, piped=kind == "pipe", head=kind == "function")
            frame.pattern = frame.cases > 0 and value.startswith((";;", ";&"))

    def _leave(self, at: int) -> None:
        """End a substitution, which is part of a word, or a subshell."""
        frame = self.frames.pop()
        if frame.kind != "(":
            self._add(frame.start, self.text[frame.start : at], holds=True)

    def _end_word(self, at: int) -> None:
        frame = self.frames[-1]
        if frame.parts is None or frame.kind == '"':
            return
        word = ShellWord(frame.word_start, at, "".join(frame.parts), frame.holds)
        frame.parts = None
        target, frame.target = frame.target, ""
        if target:
            if target == "here":
                frame.here.append(word)
            return
        first = all(w.value in KEYWORDS for w in frame.words)
        frame.words.append(word)
        raw = self.text[word.start : word.end]
        if first and raw == "[[":
            frame.test = True
        elif raw == "]]":
            frame.test = False
        elif first and raw == "case":
            frame.cases += 1
        elif raw == "esac" and (first or frame.pattern):
            frame.cases, frame.pattern = max(0, frame.cases - 1), False
        elif raw == "in" and frame.cases and len(frame.words) > 2 and _is_case(frame.words):
            frame.pattern = True

    def _close(
        self, at: int, *, piped: bool = False, head: bool = False
    ) -> Iterator[SimpleCommand]:
        frame = self.frames[-1]
        self._end_word(at)
        words, here, source = frame.words, frame.here, frame.source
        frame.words, frame.here, frame.target, frame.test = [], [], "", False
        frame.source = None
        if not words and not here and not any(h is here for _, h in self._tags):
            return
        names = (w.value for w in words if w.value not in KEYWORDS)
        head = head or next(names, "") in HEADS
        kind: Literal["command", "head"] = "head" if head else "command"
        command = SimpleCommand(kind, words, here, source, frame.nested, frame.into)
        if piped:
            frame.source = command
        yield command

    def _bodies(self, at: int) -> int:
        """Read the here-documents from the line at `at`; return the position after them."""
        for tag, here in self._tags:
            end = self._line_of(tag, at)
            here.append(ShellWord(at, end, self.text[at:end]))
            newline = self.text.find("\n", end)
            at = len(self.text) if newline < 0 else newline + 1
        self._tags = []
        return at

    def _line_of(self, tag: tuple[bool, str], at: int) -> int:
        """Return the start of the next line that is only the tag; else the end of the text."""
        if self._lines is None:
            self._lines, start = {}, 0
            for line in self.text.split("\n"):
                self._lines.setdefault((False, line), []).append(start)
                self._lines.setdefault((True, line.lstrip("\t")), []).append(start)
                start += len(line) + 1
        starts = self._lines.get(tag, [])
        index = bisect_left(starts, at)
        return starts[index] if index < len(starts) else len(self.text)


def _is_case(words: list[ShellWord]) -> bool:
    names = [w.value for w in words if w.value not in KEYWORDS]
    return len(names) == 3 and names[0] == "case"
