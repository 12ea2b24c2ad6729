"""What a pipeline says itself: directives that its processes or its configuration already have.

A configuration that names a process replaces the directive of the process. So a directive that
stands anywhere in the pipeline is its author's, and is not written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

DIRECTIVES = ("beforeScript", "stageInMode", "stageOutMode", "scratch", "clusterOptions")
_WORD = re.compile(rb"\b(" + "|".join(DIRECTIVES).encode() + rb")\b")
_FILE = TextFile(kind="a pipeline's file", limit="small-bytes", check="Check the path.")
_LEFT = frozenset({"work", "results"})  # folders of runs; those that begin with a dot as well
_MOST = 20_000  # files of one pipeline


def own_directives(pipeline: Path) -> frozenset[str]:
    """Of a script with the folder that it lies in, or of a pipeline's folder.

    Raises InputError: there is no such file, or there are too many.
    """
    folder = pipeline if pipeline.is_dir() else pipeline.parent
    if not pipeline.exists():
        raise InputError(f"cannot read {pipeline}", "Give the pipeline's main.nf or its folder.")
    found: set[str] = set()
    for path in _files(folder):
        found.update(word.decode() for word in _WORD.findall(_FILE.read(path)))
    return frozenset(found)


def _files(folder: Path) -> Iterator[Path]:
    """Scripts and configurations below the folder; links are not followed."""
    count = 0
    for where, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if f not in _LEFT and not f.startswith("."))
        for name in sorted(files):
            path = Path(where, name)
            if path.suffix in (".nf", ".config") and path.is_file():
                count += 1
                if count > _MOST:
                    raise InputError(f"{folder}: more than {_MOST:,} scripts", "Give main.nf.")
                yield path
