"""Write trace bundles: `NAME.trace/<table>/host=<host>/<segment>.parquet`.

A bundle grows by complete segments: a segment's files are written under a temporary name and
renamed, so a reader never reads a partial file.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tracehint.errors import BundleError
from tracehint.schemas.manifest import (
    HINTS_NAME,
    MANIFEST_NAME,
    TABLE_NAMES,
    Manifest,
    hide_command,
    manifest_to_json,
    read_manifest,
)
from tracehint.schemas.plain import HeldFolder, hold, is_own_folder
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.redact.tables import Redactor


_ELSEWHERE = "Choose another name with -o."


class Writer(Protocol):
    """Interface for writing the parts of a bundle: `BundleWriter`."""

    def write_table(self, name: str, table: pa.Table) -> None: ...

    def write_manifest(self, manifest: Manifest) -> None: ...


def refuse_existing(path: Path, *, force: bool) -> None:
    """Raise BundleError if other files are there, or a bundle and `force` is not set."""
    if str(path) == "-":
        raise BundleError("a bundle is a directory: it cannot go to stdout", "Name it with -o.")
    try:
        if path.is_symlink():
            raise BundleError(f"{path}: is a symbolic link", "Name the directory itself with -o.")
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


def make_folder(path: Path) -> HeldFolder:
    """Create and hold the directory of a bundle, for its owner only. Raises BundleError."""
    try:
        if not (isinstance(path, HeldFolder) and path.fd >= 0):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = hold(path)
        os.fchmod(held.fd, 0o700)
        return held
    except OSError as error:
        raise BundleError(
            f"{path}: cannot be created: {error.strerror}", "Choose another place with -o."
        ) from None


def write_bundle(writer: Writer, tables: Mapping[str, pa.Table], manifest: Manifest) -> None:
    """Write the tables that have rows, and the manifest last. Raises BundleError."""
    manifest.rows = {name: table.num_rows for name, table in tables.items() if table.num_rows}
    for name, table in tables.items():
        if table.num_rows:
            writer.write_table(name, table)
    writer.write_manifest(manifest)


_HOST_LENGTH = 200  # `host=`, a checksum and a suffix fit into 255 bytes


def safe_host(name: str) -> str:
    """Return the host name as part of a file name: unique per host, never `.` or `..`.

    Other characters become `_`; a changed or truncated name gets a checksum.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    if cleaned == name and len(name) <= _HOST_LENGTH and cleaned.strip("."):
        return name
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{cleaned[:_HOST_LENGTH].strip('.') or 'host'}-{digest}"


class BundleWriter:
    """Writes one bundle directory (mode 0700).

    All output passes the redactor (schemas/redact), unless `keep_args`; with `no_args` only the
    program of a command is written. The directory is held open: a user who controls its parent
    directory cannot redirect the output.
    """

    def __init__(
        self, path: Path, *, force: bool = False, keep_args: bool = False, no_args: bool = False
    ) -> None:
        self._redactor: Redactor | None = None
        self._given = isinstance(path, HeldFolder)
        if not self._given:
            refuse_existing(path, force=force)
        self.path = make_folder(path)
        self.keep_args, self.no_args = keep_args and not no_args, no_args
        if any(self.path.inside.iterdir()):
            if not force:
                raise BundleError(f"{path}: exists", "Give --force to replace it, or another -o.")
            _remove_bundle(self.path.inside)

    @classmethod
    def append_to(cls, path: Path) -> BundleWriter:
        """Return a writer that adds segments to an existing bundle; raises BundleError if none."""
        writer = cls.__new__(cls)
        try:
            writer.path = hold(path)
        except OSError as error:
            why = f"{path}: cannot be written: {error.strerror}"
            raise BundleError(why, "Give the bundle's own directory.") from None
        manifest = read_manifest(writer.path.inside)
        writer.keep_args, writer.no_args = manifest.kept_args, manifest.no_args
        writer._redactor = None
        return writer

    def discard(self) -> None:
        """Remove all output; also the directory, unless the caller holds it."""
        for part in self.path.inside.iterdir():
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part, ignore_errors=True)
            else:
                part.unlink(missing_ok=True)
        if not self._given:
            with suppress(OSError):
                self.path.rmdir()

    def write_table(self, name: str, table: pa.Table, segment: int = 0) -> None:
        """Write the rows of one table, one file per host. Raises BundleError (disk full...)."""
        from tracehint.schemas.tables import TABLES

        if not table.schema.equals(TABLES[name]):
            table = table.cast(TABLES[name])
        if not self.keep_args:
            table = self._without_secrets(name, table)
        parts = [
            (part, self.path, f"{name}/host={safe_host(host)}", segment)
            for host, part in _by_host(table)
        ]
        if len(parts) == 1:  # a recording: threads would cost more than they save
            _write_part(*parts[0])
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for _ in pool.map(lambda part: _write_part(*part), parts):
                pass  # an error of one of them is raised here

    def _without_secrets(self, name: str, table: pa.Table) -> pa.Table:
        from tracehint.schemas.redact.tables import Redactor

        if self._redactor is None:
            self._redactor = Redactor(no_args=self.no_args)
        return self._redactor.table(name, table)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace `manifest.json` atomically.

        `manifest` itself is changed: its command is redacted, and the secrets redacted in the
        tables are counted.
        """
        manifest.kept_args, manifest.no_args = self.keep_args, self.no_args
        if not self.keep_args:
            hide_command(manifest)
            if self._redactor is not None:
                manifest.redacted_args += self._redactor.take_count()
        folder = self.path.inside
        temporary = folder / f".{MANIFEST_NAME}.tmp"
        try:
            temporary.write_text(manifest_to_json(manifest), encoding="utf-8")
            temporary.replace(folder / MANIFEST_NAME)
        except OSError as error:
            raise BundleError(
                f"{self.path / MANIFEST_NAME}: cannot be written: {error}",
                "Free some space or choose another place with -o.",
            ) from None


def _write_part(part: pa.Table, bundle: HeldFolder, name: str, segment: int) -> None:
    """Write the rows of one host. Raises BundleError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = bundle.inside / name
    target, temporary = folder / f"{segment}.parquet", folder / f".{segment}.parquet.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, temporary, compression="zstd")
        temporary.replace(target)
    except (OSError, pa.ArrowException) as error:
        raise BundleError(
            f"{bundle / name / target.name}: cannot be written: {error}",
            "Free some space or choose another place with -o; rows already written are kept.",
        ) from None


def _by_host(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each host in order, with one sort for any number of hosts."""
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
    """Yield where to write a bundle that replaces `output` at the end, completely or not at all.

    Raises BundleError.
    """
    refuse_existing(output, force=force)
    made = output.with_name(f".{output.name[:200]}.{os.getpid()}.tmp")
    try:
        if made.exists():  # left by a killed process
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
    """Move a complete bundle to its name; other files in a directory of that name stay."""
    if not os.path.lexists(output):
        made.rename(output)
        return
    source, target = hold(made), hold(output)
    _remove_bundle(target.inside)
    parts = source.inside.iterdir()
    for part in sorted(parts, key=lambda path: path.name == MANIFEST_NAME):
        part.rename(target.inside / part.name)
    os.fchmod(target.fd, 0o700)


def _remove_bundle(path: Path) -> None:
    """Remove only the parts of a bundle, never through a symbolic link."""
    for name in [*TABLE_NAMES, SPOOL_DIR, RAW_DIR, "cache"]:
        part = path / name
        if part.is_symlink():
            part.unlink()
        elif part.is_dir():
            shutil.rmtree(part)
    for name in (HINTS_NAME, MANIFEST_NAME):
        (path / name).unlink(missing_ok=True)
