"""The files of a bundle where they lie: a directory, or objects below a URL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol
from urllib.parse import unquote

from tracehint.schemas.manifest import Manifest, read_manifest
from tracehint.schemas.recovery import unfinished
from tracehint.schemas.store import (
    Bundle,
    read_bundle,
    read_parts,
    segment_files,
    state_missing,
    stated,
)

if TYPE_CHECKING:
    from collections.abc import Collection

# Columns that no step of an analysis looks at, for `read_bundle`: a sixth of its memory.
NOT_NEEDED = {
    "extents": ("host", "ops", "rank"),
    "opens": ("host", "fd", "seq_ops", "small_ops"),
    "declared_io": ("host",),
}

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class BundleFiles(Protocol):
    """Names inside the bundle are `table/host=HOST/SEGMENT.parquet`."""

    @property
    def root(self) -> Path | str: ...

    def manifest(self) -> Manifest: ...

    def segments(self, table: str) -> list[str]:
        """Names of a table's files, in the order in which they are read."""
        ...

    def open(self, names: Iterable[str]) -> Iterator[tuple[str, Path | BinaryIO]]:
        """The named files, in order, each to be read before the next one is asked for."""
        ...


class Folder:
    """A bundle on this machine, or on a file system that is mounted here."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def root(self) -> Path:
        return self._root

    def manifest(self) -> Manifest:
        return read_manifest(self.root)

    def segments(self, table: str) -> list[str]:
        return [os.fspath(f.relative_to(self.root)) for f in segment_files(self.root, table)]

    def open(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        for name in names:
            yield name, self.root / name

    def killed(self) -> bool:
        """Whether a recorder that was killed left data that is not converted."""
        return unfinished(self.root, self.manifest())


def files_at(where: str) -> BundleFiles:
    """The files of the bundle at a path or URL, read by this process. Raises BundleError."""
    if where.startswith("file://"):
        return Folder(Path(unquote(where.removeprefix("file://"))))
    if URL.match(where):
        from tracehint.analyzer.execution.remote import RemoteObjects

        return RemoteObjects.at(where)
    return Folder(Path(where))


def read(files: BundleFiles, without: Collection[str] = ()) -> Bundle:
    """What an analysis needs of the bundle; tables `without` have no rows, unless recovered."""
    if isinstance(files, Folder):
        return read_bundle(files.root, NOT_NEEDED, without)
    from tracehint.schemas.tables import TABLES

    manifest, problems, tables = files.manifest(), list[str](), dict[str, Any]()
    for name in TABLES:
        parts = files.open(() if name in without else files.segments(name))
        tables[name] = read_parts(name, parts, problems, NOT_NEEDED.get(name, ()))
    bundle = Bundle(Path(files.root), manifest, tables, problems)
    there = {name: 1 << 62 for name in without if files.segments(name)}  # not worth a request
    state_missing(bundle, {name: t.num_rows for name, t in tables.items()} | there)
    return stated(bundle)


def add_problems(bundle: Bundle, problems: Iterable[str]) -> None:
    """State what else cannot be read, in the order of the tables."""
    from dataclasses import replace

    from tracehint.schemas.tables import TABLES

    more = list(problems)
    stated(replace(bundle, problems=more))
    place = {name: i for i, name in enumerate(TABLES)}
    bundle.problems += more
    bundle.problems.sort(key=lambda text: place.get(text.split("/")[0], len(place)))
