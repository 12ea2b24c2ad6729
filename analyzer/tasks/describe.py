"""Name, type and text of a task from the argument list that started it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.tasks.tree import Bools
from tracehint.schemas.commandline.programs import (
    INTERPRETERS,
    LAUNCHERS,
    MULTI_CALL,
    SHELLS,
    WRAPPERS,
    base_name,
    command_of_xargs,
    script_of,
    shell_parts,
    strip_wrappers,
)
from tracehint.schemas.commandline.shelltext import first_word, simple_commands

if TYPE_CHECKING:
    import pyarrow as pa


NAME_LENGTH = 80
COMMAND_LENGTH = 8192
_DEPTH = 4  # maximum nesting of shells and wrappers
# Commands that feed another one, leave a result, or prepare. The type of a shell text is its first
# command in none of these lists, else its first command in the earliest list.
_FEEDING = "cat seq yes zcat bzcat xzcat zstdcat"
_PRODUCING = "date echo find hostname ln ls printf printenv ps rm rmdir sleep touch"
_SETTING_UP = """: [ [[ alias bash_completion break cd chmod conda continue dirname eval exit export
    false getopts hash local mkdir module ml popd pushd pwd read readonly return set shift shopt
    source . test trap true type ulimit umask unset wait"""
_LEVELS = (_FEEDING, _PRODUCING, _SETTING_UP)
PREPARING = {word: level for level, words in enumerate(_LEVELS) for word in words.split()}
# Programs that are never, or not always, the type of a task.
INDIRECT_PROGRAMS = (
    PREPARING.keys()
    | SHELLS
    | LAUNCHERS
    | frozenset(WRAPPERS)
    | frozenset(INTERPRETERS)
    | MULTI_CALL
    | {"", " ", "exec", "command", "builtin", "snakemake", "tracehint", "xargs"}
)
_SNAKEMAKE_COPY = re.compile(r"^tmp[a-z0-9_]{8}\.(?=.)")
_SNAKEMAKE_JOB = re.compile(r"--target-jobs '?([^\s']+)'? --")
_BREAKS = b"\n\r\t"  # blanks in a name, which is one line; escapes in a command
_SPACES = bytes.maketrans(_BREAKS, b"   ")
_COUNTER = re.compile(r"[-_.:#/ ]*\d+$")


@dataclass(frozen=True)
class Description:
    """name: short, for tables; type: shared by tasks of one kind; command: in full, for display."""

    name: str
    type: str
    command: str


def printable(raw: bytes | str) -> str:
    """Return text that is safe on a terminal: other bytes and control characters as `\\xNN`."""
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(ord(c)) for c in text)


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def describe(argv: Sequence[bytes]) -> Description:
    """Return the description of a task that was started with these arguments."""
    if not argv:  # a forked shell that ran built-in commands only
        return Description("subshell", "subshell", "")
    words = without_shim(argv)
    text = command_text(words)
    kind = type_of(words) or "unknown"
    lines = any(word.translate(None, _BREAKS) != word for word in words)
    flat = command_text([word.translate(_SPACES) for word in words]) if lines else text
    job = _SNAKEMAKE_JOB.search(flat)  # otherwise the path of Python, before it, fills the name
    name = job[1] if job and job[1].partition(":")[0] == kind else _without_folder(flat)
    return Description(shorten(name), printable(kind), text)


def without_shim(argv: Sequence[bytes]) -> list[bytes]:
    """Return the words as typed: version managers (pyenv, rbenv, asdf) prepend a script of theirs.

    `/usr/bin/env bash /home/me/.pyenv/shims/python3 a.py` was typed as `python3 a.py`.
    `busybox sort a` becomes `sort a`.
    """
    if len(argv) > 1 and base_name(argv[0]) in MULTI_CALL:
        return list(argv[1:])
    for i, word in enumerate(islice(argv, 3)):
        if word.rpartition(b"/")[0].endswith(b"/shims") and i:
            return [word.rpartition(b"/")[2], *argv[i + 1 :]]
        if base_name(word) not in SHELLS and base_name(word) != "env":
            break
    return list(argv)


_MAX_NAMED = 1 << 16  # characters of a command that are searched for its name
_MAX_PARSED = 8192  # characters of shell text that are parsed for its type
_MAX_COMMANDS = 256  # commands in that text, including those in substitutions


def shorten(text: str) -> str:
    """Shorten text to at most NAME_LENGTH characters on one line."""
    flat = " ".join(text[:_MAX_NAMED].split())
    return flat if len(flat) <= NAME_LENGTH else flat[: NAME_LENGTH - 1] + "…"


def command_text(argv: Sequence[bytes]) -> str:
    """Return the command for display: the text of `sh -c`, else the words."""
    if argv and base_name(argv[0]) in SHELLS:
        inline, _ = shell_parts(argv[1:])
        if inline and argv[-1] == inline:  # words after the text distinguish tasks: keep all
            return printable(inline.strip()[:COMMAND_LENGTH])
    return printable(b" ".join(argv)[:COMMAND_LENGTH])


def _without_folder(text: str) -> str:
    first, blank, rest = text.removeprefix("set -euo pipefail;").strip().partition(" ")
    if "/" in first and "=" not in first and not first.startswith(("'", '"')):
        first = first.rstrip("/").rpartition("/")[2] or first
    return first + blank + rest


def type_of(argv: Sequence[bytes], depth: int = 0) -> str:
    """Return the program or script that the arguments actually run; empty if none is found."""
    if argv and base_name(argv[0]) not in INDIRECT_PROGRAMS:
        return base_name(argv[0])
    words = [w.decode("utf-8", "backslashreplace") for w in islice(argv, 256)]
    return _type_of_words(words, depth)


def _type_of_words(words: list[str], depth: int) -> str:
    words = strip_wrappers(words)
    if not words:
        return ""
    name = base_name(words[0])
    if name == "xargs":
        inner = command_of_xargs(words) if depth < _DEPTH else []
        return _type_of_words(inner, depth + 1) if inner else name
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
    """Return the rule of `snakemake --target-jobs 'rule:wildcards'`."""
    if "--target-jobs" not in words:
        return ""
    target = words[words.index("--target-jobs") + 1 :][:1]
    return target[0].partition(":")[0] if target else ""


def type_of_text(text: str, depth: int = 0) -> str:
    """Return the type of a shell text: its first command that does more than prepare."""
    text = text[:_MAX_NAMED]
    plain = base_name(first_word(text) or " ")
    if plain not in INDIRECT_PROGRAMS:
        return plain
    first, best = "", len(_LEVELS)
    for command in islice(simple_commands(text[:_MAX_PARSED]), _MAX_COMMANDS):
        words = command.argv()
        if not words or command.nested or command.kind != "command":
            continue
        name = _type_of_words(words, depth)  # `/bin/sh /usr/bin/zcat` is zcat
        level = PREPARING.get(name)
        if level is None:
            return name
        if level < best:
            first, best = name, level
    return first


def type_of_name(name: str) -> str:
    """Return the type of a task that the user named: `align` for `align_17` and `align_18`."""
    return _COUNTER.sub("", name) or name


_WORD = "^[!-~]+$"
_WORDS = "^[!-~]+( [!-~]+)*$"


def plain_descriptions(argv: pa.ListArray) -> tuple[dict[str, pa.Array], Bools]:
    """Return the columns name, type, command, as from `describe`, and the rows that they cover.

    These are the plain commands: the first word is a program that is itself the type, and all
    words are of printable ASCII and not empty.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    joined = pc.fill_null(pc.binary_join(argv, b" "), b"")
    easy = pc.and_(
        pc.match_substring_regex(joined, _WORDS),
        pc.less_equal(pc.binary_length(joined), COMMAND_LENGTH),
    )
    some = pc.fill_null(pc.greater(pc.list_value_length(argv), 0), False)
    heads = pc.list_element(argv.filter(some), 0)
    encoded = heads.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    good = pc.match_substring_regex(encoded.dictionary, _WORD).to_numpy(zero_copy_only=False)
    bases = [base_name(word) if ok else "" for word, ok in zip(words, good, strict=True)]
    code = np.full(len(argv), len(words), np.int64)
    code[some.to_numpy(zero_copy_only=False)] = encoded.indices.fill_null(len(words)).to_numpy(
        zero_copy_only=False
    )
    known = np.array([base not in INDIRECT_PROGRAMS for base in bases] + [False], bool)
    holds = np.asarray(easy.to_numpy(zero_copy_only=False), bool) & known[code]

    rows = pa.array(code)
    command = pc.if_else(pa.array(holds), joined, pa.scalar(b"", joined.type)).cast(pa.string())
    short = [
        _without_folders(w.decode("ascii")) if ok else "" for w, ok in zip(words, good, strict=True)
    ]
    cut = np.array([len(w) for w in words] + [0])[code]
    name = _names(command, pa.array([*short, ""], pa.string()).take(rows), cut)
    kind = pa.array([*bases, ""], pa.string()).take(rows)
    return {"name": name, "type": kind, "command": command}, holds


def _without_folders(first: str) -> str:
    if "/" not in first or "=" in first or first.startswith(("'", '"')):
        return first
    return first.rstrip("/").rpartition("/")[2] or first


def _names(command: pa.Array, short: pa.Array, cut: np.ndarray) -> pa.Array:
    """Return the commands with `short` instead of their first `cut` characters, length-limited."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rest = command
    for length in np.unique(cut).tolist():  # one pass per distinct length of program paths
        tail = pc.utf8_slice_codeunits(command, length)
        rest = pc.if_else(pa.array(cut == length), tail, rest)
    full = pc.binary_join_element_wise(short, rest, "")
    bounded = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(full, 0, NAME_LENGTH - 1), "…", ""
    )
    return pc.if_else(pc.greater(pc.utf8_length(full), NAME_LENGTH), bounded, full)
