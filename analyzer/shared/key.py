"""What an analysis depends on, as one checksum: equal keys, equal analyses.

The bytes of the bundle's manifest and tables, the options, this version of the analyzer, and
what it looks up on this machine: symbolic links on the way to the workflow's script.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.base import script_names
from tracehint.analyzer.roots import argument_names, started_in
from tracehint.limits import LIMITS, limit
from tracehint.schemas.manifest import MANIFEST_NAME, read_manifest
from tracehint.schemas.recovery import unfinished
from tracehint.schemas.store import segment_files
from tracehint.schemas.version import TABLE_NAMES
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.schemas.manifest import Manifest

_BLOCK = 1 << 20


def key_of(root: Path, options: Options) -> str | None:
    """Hexadecimal checksum; None where it would not be the whole truth: a recorder was killed
    and left a log, or a file cannot be read. Raises BundleError: no bundle there."""
    manifest = read_manifest(root)
    if unfinished(root, manifest):
        return None
    sum_ = hashlib.sha256(json.dumps(_besides(manifest, options)).encode())
    try:
        for path in _files(root):
            sum_.update(os.fsencode(path.relative_to(root)) + b"\0" + _checksum(path))
    except OSError:
        return None
    return sum_.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    yield root / MANIFEST_NAME
    for name in TABLE_NAMES:
        yield from segment_files(root, name)


def _checksum(path: Path) -> bytes:
    found = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.digest()


def _besides(manifest: Manifest, options: Options) -> list[Any]:
    """All that is not in the bundle."""
    cwd = started_in(manifest)
    found = [*script_names(manifest, cwd), *sorted(argument_names(manifest, cwd))]
    names = [os.fsdecode(name) for name in found]
    limits = {name: limit(name) for name in LIMITS if name != "cache-bytes"}
    return [__version__, _program(), dataclasses.asdict(options), names, limits]


@lru_cache(maxsize=1)
def _program() -> list[tuple[str, int, int]]:
    """Name, bytes and time of each source file that an analysis is made by: a version that is
    being worked on keeps its number."""
    import tracehint.analyzer
    import tracehint.schemas

    found = []
    for package in (tracehint.analyzer, tracehint.schemas):
        for folder in package.__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                info = path.stat()
                found.append((f"{package.__name__}/{path.name}", info.st_size, info.st_mtime_ns))
    return found
