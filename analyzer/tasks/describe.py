"""Name, type and text of a task from the argument list that started it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tracehint.analyzer.tasks.classify import DAEMONS, LAUNCHERS
from tracehint.analyzer.tasks.command import (
    INTERPRETERS,
    LAUNCH_OPTIONS,
    MULTI_CALL,
    SHELLS,
    WRAPPERS,
    base_name,
    script_of,
    shell_parts,
)
from tracehint.analyzer.tasks.shelltext import first_word, is_loop_head, simple_commands

NAME_LENGTH = 80
COMMAND_LENGTH = 8192
_DEPTH = 4  # shells in wrappers in shells ...
# Commands that feed another one, leave something, or prepare: the type of a shell text is its first
# other command; where there is none, the first that feeds; else the first that leaves something.
_FEEDING = "cat seq yes zcat bzcat xzcat zstdcat"
_LEAVING = "date echo hostname ln ls printf printenv ps rm rmdir sleep touch"
_SETTING_UP = """: [ [[ alias bash_completion break cd chmod conda continue dirname eval exit export
    false getopts hash local mkdir module ml popd pushd pwd read readonly return set shift shopt
    source . test trap true type ulimit umask unset wait"""
_LEVELS = (_FEEDING, _LEAVING, _SETTING_UP)
PREPARING = {word: level for level, words in enumerate(_LEVELS) for word in words.split()}
# Programs that are not the type themselves, or not always.
LOOKED_INTO = (
    PREPARING.keys()
    | SHELLS
    | LAUNCHERS
    | frozenset(WRAPPERS)
    | frozenset(INTERPRETERS)
    | MULTI_CALL
    | {"", " ", "exec", "command", "builtin", "snakemake", "tracehint"}
)
_SNAKEMAKE_COPY = re.compile(r"^tmp[a-z0-9_]{8}\.(?=.)")
_BREAKS = b"\n\r\t"  # a name is one line: blanks there, escapes in the command
_SPACES = bytes.maketrans(_BREAKS, b"   ")
_COUNTER = re.compile(r"[-_.:#/ ]*\d+$")


@dataclass(frozen=True)
class Description:
    """name: short, for tables; type: equal for tasks of one kind; command: whole, for people."""

    name: str
    type: str
    command: str


def printable(raw: bytes | str) -> str:
    """Text that is safe on a terminal: other bytes and control characters as `\\xNN`."""
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(ord(c)) for c in text)


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def describe(argv: Sequence[bytes]) -> Description:
    """The description of a task that was started with these arguments."""
    if not argv:  # a forked shell that ran built-in commands only
        return Description("subshell", "subshell", "")
    words = without_shim(argv)
    text = command_text(words)
    kind = type_of(words) or "unknown"
    lines = any(word.translate(None, _BREAKS) != word for word in words)
    flat = command_text([word.translate(_SPACES) for word in words]) if lines else text
    return Description(shorten(_without_folder(flat)), printable(kind), text)


def without_shim(argv: Sequence[bytes]) -> list[bytes]:
    """The words as typed: version managers (pyenv, rbenv, asdf) put a script of theirs in front.

    `/usr/bin/env bash /home/me/.pyenv/shims/python3 a.py` was typed `python3 a.py`. Of
    `busybox sort a`, `sort a` says what it does.
    """
    if len(argv) > 1 and base_name(argv[0]) in MULTI_CALL:
        return list(argv[1:])
    for i, word in enumerate(islice(argv, 3)):
        if word.rpartition(b"/")[0].endswith(b"/shims") and i:
            return [word.rpartition(b"/")[2], *argv[i + 1 :]]
        if base_name(word) not in SHELLS and base_name(word) != "env":
            break
    return list(argv)


_LOOKED_AT = 1 << 16  # characters of a command; what names it stands before


def shorten(text: str) -> str:
    """At most NAME_LENGTH characters on one line."""
    flat = " ".join(text[:_LOOKED_AT].split())
    return flat if len(flat) <= NAME_LENGTH else flat[: NAME_LENGTH - 1] + "…"


def command_text(argv: Sequence[bytes]) -> str:
    """The command for people: the text of `sh -c`, else the words."""
    if argv and base_name(argv[0]) in SHELLS:
        inline, _ = shell_parts(argv[1:])
        if inline and argv[-1] == inline:  # words after the text tell tasks apart: keep all
            return printable(inline.strip()[:COMMAND_LENGTH])
    return printable(b" ".join(argv)[:COMMAND_LENGTH])


def _without_folder(text: str) -> str:
    first, blank, rest = text.removeprefix("set -euo pipefail;").strip().partition(" ")
    if "/" in first and "=" not in first and not first.startswith(("'", '"')):
        first = first.rstrip("/").rpartition("/")[2] or first
    return first + blank + rest


def type_of(argv: Sequence[bytes], depth: int = 0) -> str:
    """The program or script that the arguments really run; empty: nothing found."""
    if argv and base_name(argv[0]) not in LOOKED_INTO:
        return base_name(argv[0])
    words = [w.decode("utf-8", "backslashreplace") for w in islice(argv, 256)]
    return _type_of_words(words, depth)


def _type_of_words(words: list[str], depth: int) -> str:
    words = strip_wrappers(words)
    if not words:
        return ""
    name = base_name(words[0])
    raw = [w.encode("utf-8", "surrogateescape") for w in words[1:]]
    if name in SHELLS:
        inline, file = shell_parts(raw)
        if inline is not None and depth < _DEPTH:
            return type_of_text(inline.decode("utf-8", "backslashreplace"), depth + 1) or name
        return base_name(file) if file else name
    if name in INTERPRETERS:
        script = base_name(script_of(name, raw) or name)
        # Snakemake copies the script of a rule to a name of its own
        return _job_name(words) or _SNAKEMAKE_COPY.sub("", script)
    return _job_name(words) or name


def _job_name(words: list[str]) -> str:
    """The rule of `snakemake --target-jobs 'rule:wildcards'`."""
    if "--target-jobs" not in words:
        return ""
    target = words[words.index("--target-jobs") + 1 :][:1]
    return target[0].partition(":")[0] if target else ""


def type_of_text(text: str, depth: int = 0) -> str:
    """The type of a shell text: its first command that does more than prepare."""
    text = text[:_LOOKED_AT]
    plain = base_name(first_word(text) or " ")
    if plain not in LOOKED_INTO:
        return plain
    first, best = "", len(_LEVELS)
    for words in simple_commands(text):
        if is_loop_head(words):
            continue
        name = base_name(words[0])
        level = PREPARING.get(name)
        if level is None:
            return _type_of_words(words, depth)
        if level < best:
            first, best = name, level
    return first


def strip_wrappers(words: list[str]) -> list[str]:
    """The words without leading `env A=B`, `nice`, `timeout 5`, `mpirun -n 4` and the like."""
    while words:
        name = base_name(words[0])
        if name in ("exec", "command", "builtin", "nohup"):
            words = words[1:]
        elif name in WRAPPERS:
            takes, positional = WRAPPERS[name]
            rest = _after_options(words[1:], takes, positional, name == "env")
            if not rest:
                return words
            words = rest
        elif name in LAUNCHERS and name not in DAEMONS:
            rest = _after_options(words[1:], LAUNCH_OPTIONS, 0, False)
            if not rest:
                return words
            words = rest
        elif name == "tracehint" and words[1:2] == ["task"]:
            words = words[words.index("--") + 1 :] if "--" in words else words[3:]
        else:
            break
    return words


def _after_options(
    words: list[str], takes: frozenset[str], positional: int, assignments: bool
) -> list[str]:
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            i += 1
            break
        if word in takes:
            i += 1
        elif not (word.startswith("-") and len(word) > 1) and not (
            assignments and "=" in word and not word.startswith("=")
        ):
            break
        i += 1
    return words[i + positional :]


def type_of_name(name: str) -> str:
    """The type of a task that somebody named: `align_17` and `align_18` are of type `align`."""
    return _COUNTER.sub("", name) or name
