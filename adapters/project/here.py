"""The store that a directory of this machine is on, and the map that its hints need."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.project.classes import map_text
from tracehint.adapters.project.mounts import LOCAL, store_of
from tracehint.collectors.hostinfo import host_name, mounts


@dataclass(frozen=True)
class Here:
    """A name for --store, a file for --map, and in words how it was found (empty: it was not)."""

    store: str
    places: Path | None
    why: str


@contextmanager
def store_here(place: Path) -> Iterator[Here]:
    """What takes the hints of files below the directory; the map is there while this is.

    A disk of one node, and what is not known, keeps attributes.
    """
    store, why = store_of(place, mounts())
    if store in ("", LOCAL):
        yield Here("xattr", None, "")
        return
    text = map_text(place, host_name()) if store == "moosefs" else ""
    if not text:
        yield Here(store, None, why)
        return
    with tempfile.TemporaryDirectory(prefix="tracehint-") as folder:
        path = Path(folder, "map.toml")
        path.write_text(text)
        yield Here(store, path, f"{why}; a storage class for each node")
