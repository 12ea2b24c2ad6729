"""Writing trace bundles: `NAME.trace/<table>/host=<host>/<segment>.parquet`.

A bundle grows by whole segments: a segment's files are written under a temporary name and
renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import BundleError
from tracehint.schemas.manifest import (
    MANIFEST_NAME,
    Manifest,
    hide_command,
    manifest_to_json,
    read_manifest,
)
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR
from tracehint.schemas.version import HINTS_NAME, TABLE_NAMES
from tracehint.schemas.writing import make_folder, refuse_existing

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.redact.tables import Redactor

_HOST_LENGTH = 200  # `host=`, a checksum and a suffix fit into 255 bytes


def safe_host(name: str) -> str:
    """The host name as a part of a file name: never `.` or `..`, and no two hosts have the same.

    Other characters become `_`; what was changed or cut is told apart by a checksum.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    if cleaned == name and len(name) <= _HOST_LENGTH and cleaned.strip("."):
        return name
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{cleaned[:_HOST_LENGTH].strip('.') or 'host'}-{digest}"


class BundleWriter:
    """Writes one bundle directory (mode 0700).

    Whatever is written passes the redactor (schemas/redact), unless `keep_args`.
    """

    def __init__(self, path: Path, *, force: bool = False, keep_args: bool = False) -> None:
        self.path, self.keep_args = path, keep_args
        self._redactor: Redactor | None = None
        refuse_existing(path, force=force)
        if path.exists():
            _remove_bundle(path)
        make_folder(path)

    @classmethod
    def append_to(cls, path: Path) -> BundleWriter:
        """A writer that adds segments to a bundle that is there; raises BundleError if none is."""
        writer = cls.__new__(cls)
        writer.path, writer.keep_args = path, read_manifest(path).kept_args
        writer._redactor = None
        return writer

    def write_table(self, name: str, table: pa.Table, segment: int = 0) -> None:
        """Write the rows of one table, one file per host. Raises BundleError (disk full...)."""
        from tracehint.schemas.tables import TABLES

        if not table.schema.equals(TABLES[name]):
            table = table.cast(TABLES[name])
        if not self.keep_args:
            table = self._without_secrets(name, table)
        parts = [
            (part, self.path / name / f"host={safe_host(host)}", segment)
            for host, part in _by_host(table)
        ]
        if len(parts) == 1:  # a recording: threads would take longer than they save
            _write_part(*parts[0])
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for _ in pool.map(lambda part: _write_part(*part), parts):
                pass  # an error of one of them is raised here

    def _without_secrets(self, name: str, table: pa.Table) -> pa.Table:
        from tracehint.schemas.redact.tables import Redactor

        if self._redactor is None:
            self._redactor = Redactor()
        return self._redactor.table(name, table)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace `manifest.json` atomically.

        `manifest` itself is changed: its command loses its secrets, and those that were taken out
        of the tables are counted.
        """
        manifest.kept_args = self.keep_args
        if not self.keep_args:
            hide_command(manifest)
            if self._redactor is not None:
                manifest.redacted_args += self._redactor.taken()
        temporary = self.path / f".{MANIFEST_NAME}.tmp"
        try:
            temporary.write_text(manifest_to_json(manifest), encoding="utf-8")
            temporary.replace(self.path / MANIFEST_NAME)
        except OSError as error:
            raise BundleError(
                f"{self.path / MANIFEST_NAME}: cannot be written: {error}",
                "Free some space or choose another place with -o.",
            ) from None


def _write_part(part: pa.Table, folder: Path, segment: int) -> None:
    """The rows of one host. Raises BundleError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target, temporary = folder / f"{segment}.parquet", folder / f".{segment}.parquet.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, temporary, compression="zstd")
        temporary.replace(target)
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{target}: cannot be written: {error}",
            "Free some space or choose another place with -o; rows already written stay.",
        ) from None


def _by_host(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each host, in their order: one sort, however many hosts there are."""
    import numpy as np

    encoded = table.column("host").combine_chunks().dictionary_encode()
    hosts, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    if len(hosts) > 1 and (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        table, codes = table.take(order), codes[order]
    ends = np.searchsorted(codes, np.arange(len(hosts) + 1)).tolist()
    for host, start, end in zip(hosts, ends, ends[1:], strict=False):
        yield host, table.slice(start, end - start)


@contextmanager
def whole_bundle(output: Path, *, force: bool = False) -> Iterator[Path]:
    """Where to write a bundle that takes the place of `output` at the end, whole or not at all.

    Raises BundleError.
    """
    refuse_existing(output, force=force)
    made = output.with_name(f".{output.name[:200]}.{os.getpid()}.tmp")
    try:
        if made.exists():  # of a process that was killed
            refuse_existing(made, force=True)
            shutil.rmtree(made)
        yield made
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            _take_place(made, output)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except OSError as error:
        raise BundleError(
            f"{output}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _take_place(made: Path, output: Path) -> None:
    """Move a whole bundle to its name; what else lies in a directory of that name stays."""
    if not output.exists():
        made.rename(output)
        return
    _remove_bundle(output)
    for part in sorted(made.iterdir(), key=lambda path: path.name == MANIFEST_NAME):
        part.rename(output / part.name)
    output.chmod(0o700)


def _remove_bundle(path: Path) -> None:
    """Remove only what a bundle consists of, never through a symbolic link."""
    for name in [*TABLE_NAMES, SPOOL_DIR, RAW_DIR, "cache"]:
        part = path / name
        if part.is_symlink():
            part.unlink()
        elif part.is_dir():
            shutil.rmtree(part)
    for name in (HINTS_NAME, MANIFEST_NAME):
        (path / name).unlink(missing_ok=True)
