"""What `tracehint import` understands. Adding a source is one line in IMPORTERS."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.schemas.manifest import Manifest

Import = Callable[..., Manifest]


@dataclass(frozen=True)
class Importer:
    """A source of bundles: how it is recognised and which function reads it.

    `recognises(path, head)` gets a file and its first 64 KiB. The function has the
    signature (sources: Sequence[Path], output: Path, *, force: bool) -> Manifest.
    """

    name: str
    text: str  # one line for --help
    recognises: Callable[[Path, bytes], bool]
    module: str
    function: str

    def run(self, sources: Sequence[Path], output: Path, *, force: bool) -> Manifest:
        """Read the sources, write the bundle."""
        reader: Import = getattr(importlib.import_module(self.module), self.function)
        return reader(sources, output, force=force)


def _strace(path: Path, head: bytes) -> bool:
    _ = path
    from tracehint.collectors.strace.sources import looks_like_strace

    return looks_like_strace(head)


def _darshan(path: Path, head: bytes) -> bool:
    _ = head
    return path.suffix == ".darshan"


def _graph(path: Path, head: bytes) -> bool:
    from tracehint.adapters.engines.graphs import recognises

    return recognises(path, head)


IMPORTERS: tuple[Importer, ...] = (
    Importer(
        "darshan",
        "Darshan logs",
        _darshan,
        "tracehint.collectors.darshan.importer",
        "import_darshan",
    ),
    Importer(
        "strace",
        "logs of strace -f or -ff",
        _strace,
        "tracehint.collectors.strace.importer",
        "import_strace",
    ),
    Importer(
        "graph",
        "graphs and logs of workflow engines, WfFormat",
        _graph,
        "tracehint.adapters.engines.graphs",
        "import_graphs",
    ),
)
