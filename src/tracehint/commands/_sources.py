"""Which files are read by which importer; what is left out, and why.

A directory may hold logs of several kinds beside anything else. Links are not followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.commands._importers import IMPORTERS, Importer
from tracehint.errors import InputError
from tracehint.schemas.manifest import MANIFEST_NAME
from tracehint.schemas.recovery import RAW_DIR

_HEAD = 1 << 16
_OURS = 200  # bytes in which a JSON file of tracehint names its schema
_MAX_FILES = 2_000_000
_SHOWN = 5  # names of one reason
_UNKNOWN = "not a log that tracehint knows"
_LINK = "a symbolic link"
_OF_A_PROCESS = re.compile(r"\.\d{1,8}$")  # strace -ff: equal contents are two processes


@dataclass
class ImportSources:
    """The work of each importer, and by reason the files that nobody reads."""

    work: dict[str, list[Path]] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)  # of those, what may be a log

    def add(self, name: str, path: Path) -> None:
        """The importer `name` reads `path`."""
        self.work.setdefault(name, []).append(path)

    def leave(self, path: Path | str, reason: str) -> None:
        """Nobody reads `path`."""
        self.left_out.setdefault(reason, []).append(str(path))

    def fail(self, path: Path | str, error: OSError) -> None:
        """`path` cannot be read: nobody knows what it holds."""
        self.unreadable.append(str(path))
        self.leave(path, error.strerror or "cannot be read")

    def importers(self) -> list[tuple[Importer, list[Path]]]:
        """In the order of the table."""
        return [(i, self.work[i.name]) for i in IMPORTERS if i.name in self.work]

    def notes(self) -> list[str]:
        """One line per reason."""
        lines = []
        for reason, names in self.left_out.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"left out: {', '.join(names[:_SHOWN])}{more}: {reason}")
        return lines


def sort_sources(sources: Sequence[Path], kind: str | None) -> ImportSources:
    """Sort files, and the files of directories. Raises InputError when nobody reads any."""
    found = ImportSources()
    for source in sources:
        if not os.path.lexists(source):
            raise InputError(f"{source}: no such file or directory", "Check the path.")
        if kind is not None:
            found.add(kind, source)
        elif source.is_dir():
            _refuse_bundle(source)
            _sort_directory(source / RAW_DIR if (source / RAW_DIR).is_dir() else source, found)
        else:
            _sort_file(source, str(source), found)
    if kind is None:
        _tidy(found)
    if not found.work:
        known = ", ".join(f"{i.name} ({i.text})" for i in IMPORTERS)
        reasons = "; ".join(n.removeprefix("left out: ") for n in found.notes()[:3])
        given = ", ".join(map(str, sources[:3]))
        raise InputError(
            f"{given}: nothing to import: {reasons or 'no files in it'}",
            f"Known are: {known}. Say which with --from.",
        )
    return found


def _refuse_bundle(folder: Path) -> None:
    """Raises InputError for a bundle that is complete: it needs no importer."""
    if (folder / MANIFEST_NAME).is_file() and not (folder / RAW_DIR).is_dir():
        name = shlex.quote(str(folder))
        raise InputError(
            f"{folder}: is a trace bundle already",
            f"Look at it: tracehint analyze {name}. Join several: tracehint merge",
        )


def _sort_directory(folder: Path, found: ImportSources) -> None:
    """A directory that an engine left is one source; logs of recorders in it are others."""
    from tracehint.adapters.engines.graphs import sniff

    whole = sniff(folder) is not None
    if whole:
        found.add("graph", folder)
    for count, path in enumerate(_walk(folder, found)):
        if count >= _MAX_FILES:
            raise InputError(f"{folder}: more than {_MAX_FILES:,} files", "Give a part of it.")
        _sort_file(path, os.fspath(path.relative_to(folder)), found, of_engine=whole)


def _walk(folder: Path, found: ImportSources) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        found.fail(str(error.filename), error)

    for base, folders, names in os.walk(folder, onerror=failed):
        folders.sort()
        for name in folders:
            if (Path(base) / name).is_symlink():
                found.leave(os.path.relpath(os.path.join(base, name), folder), _LINK)  # noqa: PTH118
        yield from (Path(base) / name for name in sorted(names))


def _sort_file(path: Path, name: str, found: ImportSources, *, of_engine: bool = False) -> None:
    if path.is_symlink() and name != str(path):
        return found.leave(name, _LINK)
    if not path.is_file():
        return found.leave(name, "not a regular file")
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        return found.fail(name, error)
    if not head:
        return found.leave(name, "empty")
    if b'"tracehint.' in head[:_OURS]:
        return found.leave(name, "written by tracehint itself, not a log")
    for importer in IMPORTERS:
        if importer.recognises(path, head):
            if importer.name == "graph" and of_engine:
                return None  # read as a part of its directory
            return found.add(importer.name, path)
    return None if of_engine else found.leave(name, _UNKNOWN)


def _tidy(found: ImportSources) -> None:
    """Take out copies, and files that are read with another one anyway."""
    from tracehint.adapters.engines.graphs import companions

    for name, paths in found.work.items():
        kept = list(dict.fromkeys(paths))
        for copy, first in copies(kept).items():
            found.leave(copy, f"a copy of {first}")
            kept.remove(copy)
        if name == "graph":
            beside = companions(kept)
            kept = [p for p in kept if p not in beside]
        found.work[name] = kept


def copies(paths: Sequence[Path]) -> dict[Path, Path]:
    """Files with the same contents as an earlier one -> that one. Only files of one size are read,
    and none whose name ends in the number of a process."""
    sizes: dict[int, list[Path]] = {}
    for path in paths:
        if path.is_file() and not _OF_A_PROCESS.search(path.name):
            sizes.setdefault(path.stat().st_size, []).append(path)
    found: dict[Path, Path] = {}
    for same in sizes.values():
        seen: dict[bytes, Path] = {}
        for path in same if len(same) > 1 else []:
            try:
                with path.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").digest()
            except OSError:
                continue  # its reader will say so
            if seen.setdefault(digest, path) is not path:
                found[path] = seen[digest]
    return found
