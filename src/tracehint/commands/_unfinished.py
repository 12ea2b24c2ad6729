"""Bundles whose recorder was killed before it converted its log: a job that ran out of time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.schemas.store import RAW_DIR, read_bundle

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


def read_finished(path: Path) -> Bundle:
    """The bundle; of an unfinished one what its log tells, as `tracehint import` reads it.

    Raises BundleError, and InputError where the log is of no use.
    """
    bundle = read_bundle(path)
    if bundle.tables["processes"].num_rows or not (path / RAW_DIR).is_dir():
        return bundle
    from tracehint.commands._sources import sort_sources

    (importer, sources), *_ = sort_sources([path], None).importers()
    with tempfile.TemporaryDirectory(prefix="tracehint-") as folder:
        importer.run(sources, Path(folder) / "converted", force=False)
        found = read_bundle(Path(folder) / "converted")
    found.manifest.complete = False
    found.manifest.notes.append(
        f"The recorder of {path.name} was killed: its last accesses may be missing."
    )
    return found
