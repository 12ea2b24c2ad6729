"""Programs that a workflow names: in its command, and in the scripts that the command names.

Nothing is run. A word counts as a program when an executable file of that name is found, so a word
of a text may count that is none; what a program starts by a name that it makes up is not found.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

_WORD = re.compile(r"[\w./+~-]+", re.ASCII)
_COMMENT = re.compile(r"^\s*(#|//).*$", re.MULTILINE)
_MOST_BYTES = 1 << 20  # of one script
_MOST_FILES, _MOST_WORDS = 200, 50_000
# What these read without being told.
_DEFAULTS = {
    "snakemake": ("Snakefile", "workflow/Snakefile", "snakefile"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "nextflow": ("main.nf",),
}


def programs_named(command: Sequence[str], folder: Path) -> dict[str, str]:
    """Path of each program -> where it was named first; `folder`: where the command would run."""
    found: dict[str, str] = {}
    seen = set[Path]()
    waiting = [(word, "the command") for word in command]
    waiting += [(name, "the command") for name in _DEFAULTS.get(Path(command[0]).name, ())]
    for _ in range(_MOST_WORDS):
        if not waiting:
            break
        word, where = waiting.pop(0)
        for path in _files(word, folder):
            if path in seen:
                continue
            seen.add(path)
            if os.access(path, os.X_OK):
                found.setdefault(str(path), where)
            if len(seen) <= _MOST_FILES:
                waiting += [(w, str(path)) for w in dict.fromkeys(_words(path))]
    return found


def _files(word: str, folder: Path) -> Iterator[Path]:
    """What the word means as a program, and as a file of the workflow."""
    program = None if "/" in word else shutil.which(word)
    if program:
        yield Path(program)
    path = folder / Path(word).expanduser() if word.startswith("~/") else folder / word
    try:
        if path.is_file():
            yield path
    except (OSError, ValueError):
        return


def _words(path: Path) -> list[str]:
    """The words of a script; none of a program."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        data = path.read_bytes()
    except OSError:
        return []
    if b"\0" in data[:4096]:
        return []
    text = data.decode(errors="replace")
    first = text.partition("\n")[0]
    rest = _COMMENT.sub("", text)
    return _WORD.findall(first) + _WORD.findall(rest) if first[:2] == "#!" else _WORD.findall(rest)
