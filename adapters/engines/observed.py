"""What the tasks of a recorded run really used, by task: for engines that stage declared files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.pathtext import to_text

_READ = """
    SELECT c.task, f.path FROM consumers c JOIN files f USING (file)
    WHERE f.data AND f.role IN ('input', 'intermediate', 'output')
      AND NOT EXISTS (FROM producers p WHERE p.file = c.file AND p.task = c.task)"""
_MADE = "SELECT p.task, f.path FROM producers p JOIN files f USING (file)"
_NAMED = """
    SELECT t.type, f.path_text AS name
    FROM consumers c JOIN files f USING (file) JOIN work t USING (task)
    UNION SELECT type, path_text FROM b_io
    UNION SELECT t.type, e.path_text FROM b_exe e JOIN work t USING (task)"""
_SIZES = "SELECT path, max(size_bytes) AS size FROM files GROUP BY path"


@dataclass(frozen=True)
class Observed:
    """Paths are below the data root; tasks are numbers of the analysis."""

    types: Mapping[int, str]
    makers: Mapping[bytes, int]  # file -> task that wrote it
    read: Mapping[int, frozenset[bytes]]  # task -> data that it read and did not write itself
    made: Mapping[int, frozenset[bytes]]
    shapes: Mapping[str, frozenset[str]]  # type -> shapes of all names that its tasks opened or ran
    sizes: Mapping[bytes, int]

    def readers(self) -> Mapping[bytes, int]:
        """File -> number of tasks that read it."""
        counts: dict[bytes, int] = {}
        for files in self.read.values():
            for path in files:
                counts[path] = counts.get(path, 0) + 1
        return counts

    def task_of(self, outputs: Iterable[bytes]) -> int | None:
        """The recorded task that wrote one of these files."""
        return next((self.makers[path] for path in outputs if path in self.makers), None)

    def used(self, kind: str, path: bytes) -> bool:
        """Whether any task of that type ever opened or ran a file of such a name.

        Of a set that belongs together (`ref.nsq`, `ref.ntf`) one is enough.
        """
        name = shape(to_text(path))
        known = self.shapes.get(kind, frozenset())
        return name in known or _stem(name) in known


def shape(name: str) -> str:
    """The name with every number as one sign: what differs between tasks of one type.

    >>> shape("out/part_17.bin")
    'out/part_#.bin'
    """
    return re.sub(r"[0-9]+", "#", name)


def _stem(name: str) -> str:
    return re.sub(r"\.[^./]*$", "", name) + ".*"


def observe(run: Path) -> Observed:
    """Read and analyze a bundle; raises InputError, BundleError."""
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.hintgen.lint.context import Context

    found = load_run(run, Options())
    if found.bundle is None:
        raise InputError(
            f"{run}: an analysis does not tell which files a task opened", "Give the trace bundle."
        )
    context = Context(found.analysis, found.bundle)
    names: dict[str, set[str]] = {}
    for row in context.rows(_NAMED):
        if row["name"]:
            name = shape(row["name"])
            names.setdefault(row["type"], set()).update((name, _stem(name)))
    makers = {row["path"]: row["task"] for row in context.rows(_MADE)}
    return Observed(
        types={row["task"]: row["type"] for row in context.rows("SELECT task, type FROM work")},
        makers=makers,
        read=_by_task(context.rows(_READ)),
        made=_by_task(context.rows(_MADE)),
        shapes={kind: frozenset(found) for kind, found in names.items()},
        sizes={row["path"]: row["size"] or 0 for row in context.rows(_SIZES)},
    )


def _by_task(rows: Iterable[Mapping[str, Any]]) -> dict[int, frozenset[bytes]]:
    found: dict[int, set[bytes]] = {}
    for row in rows:
        found.setdefault(row["task"], set()).add(row["path"])
    return {task: frozenset(paths) for task, paths in found.items()}
