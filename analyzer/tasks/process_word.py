"""The word by which a process is known while it runs: its program, or the script it interprets.

    process_word([b"/usr/bin/python3.11", b"-u", b"bin/mix.py", b"7"])  # b"mix.py"

It is made of nothing but /proc/PID/cmdline, so that who sets a hint while a file is made comes to
the same word as the analysis of a recording: collectors/preload/tag/word.c is its twin, and
tests/test_maker_words.py compares both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_BYTES = 4096  # of a command line that are looked at
LONGEST = 255  # bytes of a word

_SHELLS = b"sh bash dash zsh ksh mksh ash rbash".split()


@dataclass(frozen=True)
class _Options:
    """Options of an interpreter: those with a value, before text, before a module or archive."""

    values: tuple[bytes, ...] = ()
    texts: tuple[bytes, ...] = ()
    modules: tuple[bytes, ...] = ()


# As `interpreters` of the twin. Versions behind the name (python3.11) are the same program.
_INTERPRETERS = {
    b"python": _Options((b"-W", b"-X"), (b"-c",), (b"-m",)),
    b"pypy": _Options((b"-W", b"-X"), (b"-c",), (b"-m",)),
    b"perl": _Options((b"-I", b"-M"), (b"-e", b"-E", b"-ne", b"-pe", b"-le", b"-lne")),
    b"ruby": _Options((b"-I", b"-r"), (b"-e",)),
    b"Rscript": _Options((), (b"-e",)),
    b"java": _Options((b"-cp", b"-classpath", b"--class-path", b"-p", b"--module-path"), (),
                      (b"-jar", b"-m")),
    b"node": _Options((b"-r",), (b"-e", b"-p")),
    b"julia": _Options((b"-p", b"-t", b"-J"), (b"-e",)),
    b"lua": _Options((), (b"-e",)),
    b"php": _Options((), (b"-r",), (b"-f",)),
}  # fmt: skip  # a table


def is_interpreter(first: bytes) -> bool:
    """Whether more than the first word of a command line tells its word."""
    name = _base(first)
    return name in _SHELLS or name.rstrip(b"0123456789.-") in _INTERPRETERS


def process_word(argv: Sequence[bytes]) -> bytes:
    """Its word; empty: nothing tells it (a shell with text, an interpreter's own prompt)."""
    if not argv:
        return b""
    whole = b"".join(word + b"\0" for word in argv)[:MOST_BYTES]
    words = whole.split(b"\0")[:-1]  # the last one has no end: it was cut
    name = _base(words[0]) if words else b""
    options = _INTERPRETERS.get(name.rstrip(b"0123456789.-"))
    if name in _SHELLS:
        name = _base(_shell_script(words[1:]))
    elif options is not None:
        name = _base(_script(words[1:], options))
    return name if len(name) <= LONGEST else b""


def _base(path: bytes) -> bytes:
    """The last component, without the dash of a login shell."""
    return path.rpartition(b"/")[2].lstrip(b"-")


def _shell_script(words: Sequence[bytes]) -> bytes:
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word[:1] in (b"-", b"+") and len(word) > 1:
            if word[:1] == b"-" and word[:2] != b"--" and b"c" in word:
                return b""
            skip = word[:2] != b"--" and word[-1:] in (b"o", b"O")  # `-euo pipefail`
        else:
            return word
    return b""


def _script(words: Sequence[bytes], options: _Options) -> bytes:
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word in options.texts:
            return b""
        elif word in options.modules:
            return words[at + 1] if at + 1 < len(words) else b""
        elif word in options.values:
            skip = True
        elif not word.startswith(b"-"):
            return word
    return b""
