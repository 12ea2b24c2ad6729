"""The names of a bundle's files in a store that has names and no directories."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from tracehint.errors import BundleError
from tracehint.schemas.manifest import MANIFEST_NAME
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR
from tracehint.schemas.store import as_written
from tracehint.schemas.version import TABLE_NAMES

_SEGMENT = re.compile(r"(host=[^/]*)/([^/.][^/]*\.parquet)")


def segments_among(names: Iterable[str], table: str) -> list[str]:
    """The names of a table's files among those that a store has, in the order of a directory."""
    assert table in TABLE_NAMES
    found = []
    for name in names:
        folder, _, rest = name.partition("/")
        match = _SEGMENT.fullmatch(rest)
        if folder == table and match:
            found.append((match[1], match[2]))
    found.sort(key=lambda name: (name[0], as_written(name[1])))
    return [f"{table}/{host}/{segment}" for host, segment in found]


def check_names(root: str, names: Collection[str]) -> None:
    """Raises BundleError unless these are the names of a whole bundle."""
    if MANIFEST_NAME not in names:
        raise BundleError(
            f"{root}: not a trace bundle (no {MANIFEST_NAME})",
            "Give the directory that `tracehint record` or `import` wrote.",
        )
    if any(name.startswith((f"{SPOOL_DIR}/", f"{RAW_DIR}/")) for name in names):
        raise BundleError(
            f"{root}: its recorder was killed and left data that is not converted",
            "Where it was recorded: tracehint merge BUNDLE -o NEW, and copy that one.",
        )
