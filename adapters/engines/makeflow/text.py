"""The text of a classic Makeflow file: its rules, and the position of each command.

Annotations only need positions: a command is found by its offset in the text, so everything else in
the file stays unchanged. The lexical rules were tested with makeflow 9.9: `#` outside quotes begins
a comment anywhere, a backslash at the end of a line joins lines, quotes may span lines, `$NAME` and
`${NAME}` are substituted except in single quotes, and the result is split again.
"""

from __future__ import annotations

import os
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tracehint.errors import InputError
from tracehint.limits import check, limit, limit_error

_ASSIGN = re.compile(r"(export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*(\+?=)[ \t]*(.*)", re.DOTALL)
_LOCAL = re.compile(r"LOCAL[ \t]+")
_NESTED = re.compile(r"MAKEFLOW[ \t]")


@dataclass(frozen=True, kw_only=True)
class Task:
    """One rule. `at`: offset of its command in a classic file's text; None: no command, or a nested
    workflow. `header`: start and end offsets of the line that names its files."""

    targets: tuple[bytes, ...]
    sources: tuple[bytes, ...]
    command: str
    at: int | None
    header: tuple[int, int] = (0, 0)
    cores: str = ""  # requested, as written
    memory: str = ""  # MB

    @cached_property
    def type(self) -> str:
        """Task type, named as the analyzer names it."""
        from tracehint.analyzer.tasks.describe import type_of_text

        return type_of_text(self.command)


def parse_rules(text: str) -> list[Task]:
    """Parse the rules in Makeflow's numbering order; `text` is the file decoded as Latin-1."""
    known = Variables()
    rules: list[Task] = []
    header: tuple[tuple[bytes, ...], tuple[bytes, ...]] | None = None
    named = (0, 0)
    for start, end in _logical_lines(text):
        line = _join_line(text[start:end])
        if not line.strip():
            continue
        if line[0] in " \t":
            if header is None:
                raise _make_syntax_error(text, start, "a command without a rule")
            rules.append(replace(_rule(text, start, line, header, known), header=named))
            check("workflow-rules", "the Makeflow file", len(rules))
            header = None
            known.of_rule.clear()
        elif line[0] == "@" and (assigned := _ASSIGN.match(line, 1)) is not None:
            known.of_rule[assigned[2]] = known.substitute(assigned[4].rstrip(), known.all)
        elif line[0] in "@.":
            continue
        elif (assigned := _ASSIGN.match(line)) is not None:
            known.assign(assigned)
        elif not line.startswith("export"):
            if header is not None:
                raise _make_syntax_error(text, start, "a rule without a command")
            header = _header(text, start, known.substitute(line, known.of_file))
            named = (start, end)
    return rules


def rule_spans(text: str) -> list[tuple[int, int]] | None:
    """Return (start, end) of each rule with the comments above it, from the first rule's own line.

    None: assignments or settings between the rules affect the rules below them.
    """
    spans: list[tuple[int, int]] = []
    begin = head = -1
    for start, end in _logical_lines(text):
        line = _join_line(text[start:end])
        if not line.strip():
            continue
        if line[0] in " \t":
            begin = spans[-1][1] if spans else head
            spans.append((begin, min(end + 1, len(text))))
        elif line[0] != "@":
            apart = line[0] == "." or line.startswith("export") or _ASSIGN.match(line)
            if apart and spans:
                return None
            head = start
    return spans or None


def _make_syntax_error(text: str, at: int, what: str) -> InputError:
    line = text.count("\n", 0, at) + 1
    return InputError(f"the Makeflow file, line {line}: {what}", "Check it: makeflow_analyze -k F")


def _logical_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of lines, with joined lines as one; comments end at their newline."""
    start = at = 0
    quote = ""
    while at < len(text):
        char = text[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#":
            at = text.find("\n", at)
            at = len(text) if at < 0 else at
            continue
        elif char == "\n":
            yield start, at
            start = at + 1
        at += 1
    if quote:
        raise _make_syntax_error(text, start, f"a {quote} is not closed")
    yield start, len(text)


def _join_line(line: str) -> str:
    """Return the line without comments and line continuations."""
    out: list[str] = []
    quote = ""
    at = 0
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'" and at + 1 < len(line):
            out.append(" " if line[at + 1] == "\n" else line[at : at + 2])
            at += 2
            continue
        if char == "#" and not quote:
            break
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        out.append(char)
        at += 1
    return "".join(out)


def _header(text: str, start: int, line: str) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    sides: tuple[list[bytes], list[bytes]] = ([], [])
    side = 0
    for word in _words(line):
        if word is None:
            side = 1
        else:
            sides[side].append(word)
    if side == 0:
        raise _make_syntax_error(text, start, "neither a rule nor an assignment")
    return tuple(sides[0]), tuple(sides[1])


def _words(line: str) -> Iterator[bytes | None]:
    """Yield unquoted file names, and None for the colon. In `a->b`, b is the name in the job's
    sandbox: rules are connected by a (as makeflow_viz -D dot draws them)."""
    word: list[str] | None = None
    quote = ""
    at = 0
    while at < len(line):
        char = line[at]
        at += 1
        if char == "\\" and quote != "'" and at < len(line):
            char = line[at]
            at += 1
        elif quote and char == quote:
            quote = ""
            continue
        elif not quote and char in "'\"":
            quote, word = char, word or []
            continue
        elif not quote and char in " \t\n\r:":
            if word is not None:
                yield _local_name(word)
                word = None
            if char == ":":
                yield None
            continue
        word = word or []
        word.append(char)
    if word is not None:
        yield _local_name(word)


def _local_name(word: list[str]) -> bytes:
    return "".join(word).partition("->")[0].encode("latin-1", "replace")


def _rule(
    text: str,
    start: int,
    line: str,
    header: tuple[tuple[bytes, ...], tuple[bytes, ...]],
    known: Variables,
) -> Task:
    at = start
    while text[at] in " \t":
        at += 1
    local = _LOCAL.match(text, at)
    at = local.end() if local else at
    command = _LOCAL.sub("", known.substitute(line.strip(), known.all), count=1)
    nested = _NESTED.match(text, at) is not None
    return Task(
        targets=header[0],
        sources=header[1],
        command=command,
        at=None if nested else at,
        cores=known.find_request("CORES"),
        memory=known.find_request("MEMORY"),
    )


# The variables of a classic Makeflow file.


_NAME = r"([A-Za-z_][A-Za-z0-9_]*)"
_VARIABLE = re.compile(rf"\$(?:\{{{_NAME}\}}|\({_NAME}\)|{_NAME})")


class Variables:
    """Variables of the file and of one rule, with a bound on the substituted text: thirty lines
    that each use the line before twice would exceed the memory."""

    def __init__(self) -> None:
        self.of_file: dict[str, str] = dict(os.environ)
        self.of_rule: dict[str, str] = {}
        self._of_category: dict[tuple[str, str], str] = {}
        self.all: Mapping[str, str] = ChainMap(self.of_rule, self.of_file)
        self._left = limit("substituted-bytes")

    def _count_text(self, value: str) -> str:
        self._left -= len(value)
        if self._left < 0:
            raise limit_error("substituted-bytes", "the Makeflow file: text from its variables")
        return value

    def assign(self, found: re.Match[str]) -> None:
        """Apply the file's `NAME=value` or `NAME+=value`."""
        name, value = found[2], self.substitute(found[4].rstrip(), self.of_file)
        if found[3] == "+=" and name in self.of_file:
            value = f"{self._count_text(self.of_file[name])} {value}"
        self.of_file[name] = value
        self._of_category[self.of_file.get("CATEGORY", ""), name] = value

    def find_request(self, name: str) -> str:
        """Return the rule's request of a resource: its own, its category's, or the default."""
        category = self.of_rule.get("CATEGORY", self.of_file.get("CATEGORY", ""))
        default = self._of_category.get(("", name), "")
        return self.of_rule.get(name, self._of_category.get((category, name), default))

    def substitute(self, text: str, known: Mapping[str, str]) -> str:
        """Substitute variables outside single quotes; unknown ones become empty."""
        out: list[str] = []
        at = 0
        quoted = False
        while at < len(text):
            char = text[at]
            if char == "'":
                quoted = not quoted
            elif char == "\\" and not quoted:
                out.append(text[at : at + 2])
                at += 2
                continue
            elif char == "$" and not quoted and (found := _VARIABLE.match(text, at)) is not None:
                out.append(self._count_text(known.get(found[found.lastindex or 0], "")))
                at = found.end()
                continue
            out.append(char)
            at += 1
        return "".join(out)


# Makeflow's unescaping of a rule's command before the shell (tested with makeflow 9.9).


_CONTROL = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def shell_text(command: str) -> str:
    """Return the command that Makeflow passes to the shell, without Makeflow's backslashes.

    A backslash escapes the next character; in double quotes some escapes are control characters.
    """
    out: list[str] = []
    quote = ""
    chars = iter(command)
    for char in chars:
        if char == "\\":
            escaped = next(chars, "")
            out.append(_CONTROL.get(escaped, escaped) if quote == '"' else escaped)
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        out.append(char)
    return "".join(out)
