"""Bundles that are named: by themselves, by the directory that they are in, or by a URL."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tracehint.errors import BundleError


def bundles_at(named: Sequence[str]) -> list[str]:
    """Paths and URLs of the bundles; for a directory, or a URL, that is none itself those that are
    in it, by their names. Raises BundleError where a URL cannot be read, or has none."""
    found: list[str] = []
    for where in named:
        found += _at_url(where) if is_url(where) else _in(where)
    return found


def is_url(where: str) -> bool:
    """Whether it is the name of something in an object store."""
    from tracehint.analyzer.execution.bundle_files import URL

    return URL.match(where) is not None and not where.startswith("file://")


def fetched(where: str, folder: Path) -> Path:
    """The bundle as a directory of this machine: objects are copied below `folder`."""
    from tracehint.analyzer.execution.bundle_files import files_at
    from tracehint.analyzer.execution.remote import RemoteObjects

    files = files_at(where)
    if not isinstance(files, RemoteObjects):
        return Path(files.root)
    target = folder / (where.rstrip("/").rpartition("/")[2] or "run.trace")
    files.copied_to(target)
    return target


def _at_url(url: str) -> list[str]:
    from tracehint.analyzer.execution.remote import RemoteObjects

    found = RemoteObjects.bundles_at(url)
    if not found:
        raise BundleError(
            f"{url}: no trace bundle is there, and none directly below it",
            "Name a bundle, or what bundles were copied below.",
        )
    return found


def _in(where: str) -> list[str]:
    """The bundles of a directory; whatever else it is stays as it is named."""
    from tracehint.schemas.kinds import bundles_in

    return [os.fspath(path) for path in bundles_in(Path(where))] or [where]
