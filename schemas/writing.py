"""What is the same wherever a bundle is written: where it may be, and its rows before its manifest.

`BundleWriter` (store.py) writes; a name that cannot be used is told before a long run, not after.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tracehint.errors import BundleError
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest
from tracehint.schemas.plain import is_own_folder

if TYPE_CHECKING:
    import pyarrow as pa

_ELSEWHERE = "Choose another name with -o."


class Writer(Protocol):
    """Who writes the parts of a bundle: `BundleWriter`."""

    def write_table(self, name: str, table: pa.Table) -> None: ...

    def write_manifest(self, manifest: Manifest) -> None: ...


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raises BundleError where something else is, or a bundle that `force` does not give away."""
    if str(path) == "-":
        raise BundleError("a bundle is a directory: it cannot go to stdout", "Name it with -o.")
    try:
        if path.is_symlink():
            raise BundleError(f"{path}: is a symbolic link", "Give the directory itself.")
        if not path.exists():
            return
        if not path.is_dir():
            raise BundleError(f"{path}: exists and is not a directory", _ELSEWHERE)
        if not is_own_folder(path):
            raise BundleError(f"{path}: belongs to another user", _ELSEWHERE)
        bundle = (path / MANIFEST_NAME).exists()
        if bundle and not force:
            raise BundleError(f"{path}: exists", "Give --force to replace it, or another -o.")
        if not bundle and any(path.iterdir()):
            raise BundleError(f"{path}: exists and is not a trace bundle", _ELSEWHERE)
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror}", _ELSEWHERE) from None


def make_folder(path: Path) -> None:
    """The directory of a bundle, for its owner only. Raises BundleError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "it belongs to another user")
            os.fchmod(fd, 0o700)
        finally:
            os.close(fd)
    except OSError as error:
        raise BundleError(
            f"{path}: cannot be made: {error.strerror}", "Choose another place with -o."
        ) from None


def write_bundle(writer: Writer, tables: Mapping[str, pa.Table], manifest: Manifest) -> None:
    """The tables that have rows, and the manifest last. Raises BundleError."""
    manifest.rows = {name: table.num_rows for name, table in tables.items() if table.num_rows}
    for name, table in tables.items():
        if table.num_rows:
            writer.write_table(name, table)
    writer.write_manifest(manifest)
