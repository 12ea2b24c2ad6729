"""Concrete paths to match rules against: from the data directory, the next run and the rules."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import InputError
from tracehint.hintgen.hints.pathtext import to_bytes, to_text
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.text.textfile import TextFile

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Declared


_NAMES = TextFile(kind="A list of names", limit="names-bytes", check="Check --names.")
PRIVATE = b".tracehint"  # tracehint's own directory below a root; never gets hints


@dataclass(frozen=True)
class Paths:
    """Concrete paths below the root.

    `declared`: files in the workflow's graph, with one entry per file in every column of `known`;
    `files`: other files, known by name only. `sizes`: bytes of existing files that are not empty
    (an empty one may not be written yet). `names`: all files of the next run, if known without a
    graph. `planned`: the graph is the one that the hint file's plan was made for, so `declared`
    files that the plan does not name get no hints.
    """

    files: Sequence[bytes]
    existing: frozenset[bytes] = frozenset()
    declared: Sequence[bytes] = ()
    known: Declared | None = None
    sizes: Mapping[bytes, int] = field(default_factory=dict)
    names: frozenset[bytes] = frozenset()
    planned: bool = False

    def add_sizes(self, files: Sequence[bytes], known: Declared | None) -> Declared | None:
        """Return `known` with the sizes of existing files, which override the declared sizes."""
        if not self.sizes:
            return known
        from tracehint.hintgen.match.match import Declared

        known = known or Declared()
        before = known.sizes if known.sizes is not None else [None] * len(files)
        sizes = [self.sizes.get(path, old) for path, old in zip(files, before, strict=True)]
        return replace(known, sizes=sizes)


def remembered_paths(hints: HintFile, *, literal_only: bool = False) -> list[bytes]:
    """Return the paths that the rules contain, each once; paths outside the root are left out.

    `literal_only`: only paths that every run uses (literal templates and files of the plan).
    """
    found: dict[bytes, None] = {}
    for rule in hints.rules:
        template = parse(rule.template)
        texts: Iterable[str] = () if literal_only else (*rule.per_file, *rule.examples)
        if template.literal:
            texts = (*texts, rule.template)
        for text in texts:
            try:
                path = to_bytes(text)
            except InputError:
                continue
            if inside(path):
                found[path] = None
    found.update(dict.fromkeys(planned_files(hints)))
    return list(found)


def planned_files(hints: HintFile) -> dict[bytes, Mapping[str, str]]:
    """Return the files of the hint file's plan with the hints of each."""
    files = hints.plan.files if hints.plan else ()
    by_path = {to_bytes(file.path): file.hints for file in files}
    return {path: values for path, values in by_path.items() if inside(path)}


def inside(path: bytes) -> bool:
    """Return whether a path is relative, stays below its root and is outside `.tracehint`."""
    parts = path.split(b"/")
    return (
        bool(path)
        and b"" not in parts
        and b".." not in parts
        and parts[0] != PRIVATE
        and (b"\0" not in path and b"." not in parts)
    )


def read_names(path: Path) -> list[bytes]:
    """Read file names, one per line or NUL-separated. Raise InputError for names outside the root.

    A leading `./` is dropped, empty names are skipped.
    """
    data = _NAMES.read(path)
    parts = data.split(b"\0" if b"\0" in data else b"\n")
    names = [part.removeprefix(b"./") for part in parts if part]
    for name in names:
        if not inside(name):
            raise InputError(
                f"{path}: {to_text(name)[:200]} is not below the data's directory",
                "Give names relative to it.",
            )
    return list(dict.fromkeys(names))


def tree_paths(root_fd: int) -> Iterator[tuple[bytes, int]]:
    """Yield the regular files below an open directory with their sizes; links are skipped."""
    walk = os.fwalk(b".", dir_fd=root_fd, follow_symlinks=False)
    for folder, folders, files, fd in walk:
        base = folder[2:]
        if not base:
            folders[:] = [f for f in folders if f != PRIVATE]
        for name in files:
            size = _size(name, fd)
            if size is not None:
                yield base + b"/" + name if base else name, size


def _size(name: bytes, fd: int) -> int | None:
    """Return the size of a regular file in bytes; None if it is something else or is gone."""
    try:
        info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    return info.st_size if stat.S_ISREG(info.st_mode) else None


@dataclass(frozen=True)
class RunPaths:
    """Paths below the data root, and their producing and consuming tasks (columns of `known`)."""

    files: list[bytes]
    known: Declared


def run_paths(run: str | Path) -> RunPaths:
    """Read the paths of a bundle or of the JSON of `analyze`. Raise BundleError or InputError."""
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.hintgen.learn.facts import facts_of

    analysis = load_run(run, Options()).analysis
    facts, tasks = facts_of(analysis), analysis.tasks
    del analysis  # frees most of the memory of a large run
    return paths_in(tasks, facts)


def paths_in(tasks: pa.Table, facts: pa.Table) -> RunPaths:
    """Return the paths of a loaded run, given its analysis's tasks and its facts."""
    import pyarrow as pa

    from tracehint.hintgen.declared import declared_of

    type_of = dict(zip(*(tasks[name].to_pylist() for name in ("task", "type")), strict=True))
    files = facts["path"].to_pylist()
    below = [inside(path) for path in files]
    if not all(below):
        facts = facts.filter(pa.array(below, pa.bool_()))
        files = facts["path"].to_pylist()
    known = declared_of(facts, lambda task: f"{type_of[task]}:{task}")
    return RunPaths(files, replace(known, sizes=facts["size_bytes"].to_pylist()))
