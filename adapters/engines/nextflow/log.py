"""Nextflow: `.nextflow.log`, which every run writes, with or without a trace file.

It contains the name and work directory of each completed task. Work directories are read only below
the log's directory. Results from the cache did not run and are not tasks.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    bounded_int,
    folder_of,
    number,
    raw_name,
)
from tracehint.adapters.engines.nextflow.graph import add_files, process_of, script_of
from tracehint.adapters.engines.unpack import read_lines

NAME = ".nextflow.log"
_BEGINS = b"nextflow.cli.Launcher - $> "
_TASK = re.compile(
    r"Task completed > TaskHandler\[(?:jobId: [^;]*; )?id: (?P<id>\d+); name: (?P<name>.*);"
    r" status: [A-Z]+; exit: (?P<exit>[^;]*); error: .*?; workDir: (?P<workdir>/.*?)"
    r"(?: started: \S+; exited: .*)?\]$"
)


def sniff(_path: Path, head: bytes) -> bool:
    """Whether the head contains the line with which each run begins."""
    return _BEGINS in head


def read(path: Path) -> DeclaredGraph:
    """Read one task per completed task in the log. Raises InputError."""
    out = GraphBuilder("nextflow", folder_of(path))
    for line in read_lines(path):
        found = _TASK.search(line)
        if found is not None:
            _add(out, found, path.parent)
    return out.graph()


def _add(out: GraphBuilder, found: re.Match[str], base: Path) -> None:
    where = posixpath.normpath(found["workdir"])
    folder = _work_directory(where, base)
    task = "/".join(where.rsplit("/", 2)[-2:])
    out.task(
        task,
        name=found["name"],
        type=process_of(found["name"]),
        workdir=raw_name(where),
        command=script_of(folder),
        exit_status=bounded_int(number(found["exit"])),
    )
    if folder is not None:
        add_files(out, task, folder)


def _work_directory(where: str, base: Path) -> Path | None:
    """Return the work directory if it is below the log's directory and not reached by a link."""
    folder, top = Path(os.fsdecode(raw_name(where))), Path(os.fsdecode(folder_of(base / NAME)))
    try:
        inside = folder.is_relative_to(top) and folder.resolve() == top.resolve() / (
            folder.relative_to(top)
        )
        return folder if inside and folder.is_dir() else None
    except (OSError, ValueError):
        return None
