"""Which recordings a bundle holds, so that none is counted twice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR
from tracehint.schemas.store import segment_files

# What was observed; other tables may be added to a bundle later.
_OBSERVED = ("processes", "files", "names", "opens", "extents")


class Recorded(Protocol):
    """A bundle, or what is known of one."""

    @property
    def path(self) -> Path: ...

    @property
    def manifest(self) -> Manifest: ...


def recordings(bundle: Recorded) -> list[str]:
    """The identities of the recordings in a bundle; of an older one a digest of its content."""
    manifest = bundle.manifest
    return manifest.parts or [manifest.recording or f"sha256:{_digest(bundle.path)}"]


def refuse_twice(bundles: Sequence[Recorded]) -> None:
    """Raises BundleError, naming both, where two bundles hold the same recording."""
    known: dict[str, Path] = {}
    for bundle in bundles:
        for identity in recordings(bundle):
            other = known.setdefault(identity, bundle.path)
            if other is not bundle.path:
                raise BundleError(
                    f"{other} and {bundle.path} hold the same recording ({identity})",
                    "Give each recording once: no copies, and no parts of a merged bundle.",
                )


def _digest(root: Path) -> str:
    files = [path for name in _OBSERVED for path in segment_files(root, name)]
    for folder in (SPOOL_DIR, RAW_DIR):
        files += sorted(p for p in (root / folder).glob("*") if p.is_file() and not p.is_symlink())
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.relative_to(root)}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()
