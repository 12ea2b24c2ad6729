"""Reading and writing trace bundles: `NAME.trace/<table>/host=<host>/<segment>.parquet`.

A bundle grows by whole segments: a segment's files are written under a
temporary name and renamed, so a reader never sees half of one. What cannot be
read is left out and stated in the `losses` table, never raised as a traceback.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tracehint.errors import BundleError
from tracehint.schemas.manifest import (
    MANIFEST_NAME,
    Manifest,
    hide_command,
    manifest_to_json,
    read_manifest,
)
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR, recovered, unfinished
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


def table_from_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """An Arrow table of the bundle's schema from Python rows (small tables and tests only)."""
    import pyarrow as pa

    from tracehint.schemas.tables import TABLES

    return pa.Table.from_pylist(list(rows), schema=TABLES[name])


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
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        from tracehint.schemas.tables import TABLES

        if not table.schema.equals(TABLES[name]):
            table = table.cast(TABLES[name])
        if not self.keep_args:
            table = self._without_secrets(name, table)
        for host in table.column("host").unique().to_pylist():
            folder = self.path / name / f"host={safe_host(host)}"
            target = folder / f"{segment}.parquet"
            temporary = folder / f".{segment}.parquet.tmp"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                part = table.filter(pc.equal(table.column("host"), host))
                pq.write_table(part, temporary, compression="zstd")
                temporary.replace(target)
            except (OSError, pa.ArrowException) as error:
                raise BundleError(
                    f"{target}: cannot be written: {error}",
                    "Free some space or choose another place with -o; rows already written stay.",
                ) from None

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


def _remove_bundle(path: Path) -> None:
    """Remove only what a bundle consists of, never through a symbolic link."""
    import shutil

    for name in [*TABLE_NAMES, SPOOL_DIR, RAW_DIR, "cache"]:
        part = path / name
        if part.is_symlink():
            part.unlink()
        elif part.is_dir():
            shutil.rmtree(part)
    for name in (HINTS_NAME, MANIFEST_NAME):
        (path / name).unlink(missing_ok=True)


@dataclass
class Bundle:
    """A trace bundle in memory: the manifest and one Arrow table per name in TABLES."""

    path: Path
    manifest: Manifest
    tables: dict[str, pa.Table]
    problems: list[str] = field(default_factory=list)


def read_bundle(
    path: Path | str,
    leave_out: Mapping[str, Collection[str]] | None = None,
    without: Collection[str] = (),
) -> Bundle:
    """Read a bundle, recovering what a killed recorder left.

    `leave_out`: columns by table that the caller does not need; they may be missing then, and
    the other columns of that table come in the smallest types that hold their values.
    `without`: tables that are not read and have no rows, unless something is recovered.

    Unreadable parts are listed in `problems` and in the `losses` table (kind
    `damaged_segment`). Raises BundleError when there is no bundle at all.
    """
    from tracehint.schemas.tables import TABLES

    root = Path(path)
    manifest = read_manifest(root)
    problems: list[str] = []
    raw = unfinished(root, manifest)
    less = leave_out if leave_out and not raw else {}
    tables = {
        name: TABLES[name].empty_table()
        if name in without and not raw
        else _read_table(root, name, problems, less.get(name, ()))
        for name in TABLES
    }
    bundle = Bundle(root, manifest, tables, problems)
    if raw:
        bundle.tables, more = recovered(root, manifest, tables)
        problems += more
    else:
        from tracehint.schemas.compact import rows_of

        counts = {
            name: rows_of(segment_files(root, name)) if name in without else table.num_rows
            for name, table in tables.items()
        }
        state_missing(bundle, counts)
    return stated(bundle)


def state_missing(bundle: Bundle, counts: Mapping[str, int]) -> None:
    """Rows that were written and are not there any more, in the table `losses`."""
    written = bundle.manifest.rows
    gone = {name: n - counts.get(name, 0) for name, n in written.items() if name in bundle.tables}
    add_losses(bundle, [("missing_rows", n, name) for name, n in gone.items() if n > 0])
    if not written and counts.get("extents") and not counts.get("opens"):
        opened = bundle.tables["extents"]["open"]
        if len(opened) > opened.null_count:
            bundle.problems.append("opens: the table is missing")


def add_losses(bundle: Bundle, rows: Iterable[tuple[str, int, str]]) -> None:
    """Rows (kind, count, detail) of no process, in the table `losses`."""
    import pyarrow as pa

    more = losses_table(bundle.manifest, rows)
    if more.num_rows:
        bundle.tables["losses"] = pa.concat_tables([bundle.tables["losses"], more])


def losses_table(manifest: Manifest, rows: Iterable[tuple[str, int, str]]) -> pa.Table:
    """The table `losses` of rows (kind, count, detail) of no process."""
    host = manifest.hosts[0].name if manifest.hosts else "unknown"
    return table_from_rows(
        "losses",
        [
            {"host": host, "proc": None, "kind": kind, "count": n, "detail": text}
            for kind, n, text in rows
        ],
    )


def stated(bundle: Bundle) -> Bundle:
    """The bundle with its problems in the table `losses` too."""
    add_losses(bundle, [("damaged_segment", 1, text) for text in bundle.problems])
    return bundle


def segment_files(root: Path, name: str) -> list[Path]:
    """The Parquet files of one table, below the bundle only, in a fixed order."""
    base = root / name
    if base.is_symlink() or not base.is_dir():
        return []
    found = []
    for folder in sorted(base.iterdir()):
        if folder.is_symlink() or not folder.is_dir() or not folder.name.startswith("host="):
            continue
        found += sorted(
            p
            for p in folder.glob("*.parquet")
            if p.is_file() and not p.is_symlink() and p.name[0] != "."
        )
    return found


def _read_table(
    root: Path, name: str, problems: list[str], leave_out: Collection[str] = ()
) -> pa.Table:
    parts = ((os.fspath(f.relative_to(root)), f) for f in segment_files(root, name))
    return read_parts(name, parts, problems, leave_out)


def read_parts(
    name: str,
    parts: Iterable[tuple[str, Path | BinaryIO]],
    problems: list[str],
    leave_out: Collection[str] = (),
) -> pa.Table:
    """One table from its Parquet files (name inside the bundle, where to read it).

    What cannot be read is left out and added to `problems`. With `leave_out`, the columns come
    in the smallest types that hold their values (schemas/compact.py).
    """
    import pyarrow as pa

    from tracehint.schemas.compact import read_compact, together
    from tracehint.schemas.tables import TABLES

    schema = pa.schema([field for field in TABLES[name] if field.name not in leave_out])
    compact = bool(leave_out)
    tables = []
    for relative, where in parts:
        try:
            tables.append(read_compact(where, schema) if compact else _read(where, schema))
        except (OSError, pa.ArrowException, KeyError, ValueError) as error:
            problems.append(problem(relative, error))
    if not tables:
        return schema.empty_table()
    return together(tables) if compact else pa.concat_tables(tables)


def _read(where: Path | BinaryIO, schema: pa.Schema) -> pa.Table:
    from tracehint.schemas.compact import opened
    from tracehint.schemas.footer import check_texts

    # One file, without the dataset layer: the host is a column of the file, the folder name is
    # not trusted. pq.read_table would import pandas where it is installed.
    with opened(where, schema) as source:
        table = source.read(columns=schema.names).select(schema.names)
    for name in schema.names:
        check_texts(table.column(name), name)
    return table.cast(schema)


def problem(relative: str, error: Exception) -> str:
    """One line about a file that cannot be read."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], bytes):
        first = f"no column {os.fsdecode(error.args[0])}"  # that was to be read as a dictionary
    return f"{relative}: {first[:200]}"
