"""What a task's work directory of Nextflow tells: its script, its inputs and outputs.

Links are read, never followed.
"""

from __future__ import annotations

import os
import posixpath
import stat
from pathlib import Path

from tracehint.adapters.engines.graph_base import GraphBuilder

MAX_FILES = 100_000  # of one task
_DEPTH = 8


def process_of(name: str) -> str:
    """The process of a task called `WORKFLOW:PROCESS (tag)`."""
    return name.partition(" (")[0].rpartition(":")[2]


def script_of(folder: Path | None) -> bytes:
    """The text of `.command.sh` without its first line."""
    try:
        if folder is None or (folder / ".command.sh").is_symlink():
            return b""
        with (folder / ".command.sh").open("rb") as stream:
            return stream.read(1 << 16).partition(b"\n")[2].strip()
    except OSError:
        return b""


def add_files(out: GraphBuilder, task: str, folder: Path) -> None:
    """Its inputs, which are links, and outputs; of more than MAX_FILES the first ones."""
    count = 0
    for where, folders, files in os.walk(os.fsencode(folder), followlinks=False):
        if where.count(b"/") - os.fsencode(folder).count(b"/") > _DEPTH:
            folders.clear()
        for name in sorted([*files, *folders]):
            path = posixpath.join(where, name)
            if name.startswith(b".command.") or name == b".exitcode":
                continue
            count += 1
            if count > MAX_FILES:
                out.notes.append(f"task {task}: of more than {MAX_FILES:,} files the first ones")
                return
            _one_file(out, task, path)


def _one_file(out: GraphBuilder, task: str, path: bytes) -> None:
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            to = os.readlink(path)  # noqa: PTH115 (bytes)
            out.file(task, "in", posixpath.join(posixpath.dirname(path), to))
        elif stat.S_ISREG(facts.st_mode):
            out.file(task, "out", path, facts.st_size)
    except OSError:
        out.notes.append("a file of a work directory could not be looked at")
