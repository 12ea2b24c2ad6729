"""Reading trace bundles: `NAME.trace/<table>/host=<host>/<segment>.parquet`.

What cannot be read is left out and stated in the `losses` table, never raised as a traceback.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest, read_manifest
from tracehint.schemas.recovery import recovered, unfinished

if TYPE_CHECKING:
    import pyarrow as pa


def table_from_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """An Arrow table of the bundle's schema from Python rows (small tables and tests only)."""
    import pyarrow as pa

    from tracehint.schemas.tables import TABLES

    return pa.Table.from_pylist(list(rows), schema=TABLES[name])


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
    root = Path(path)
    try:
        bundle, raw = _read_once(root, leave_out or {}, without)
    except BundleError:
        # what it left cannot be read, or is gone since we looked
        if unfinished(root, read_manifest(root)):
            raise
        bundle, raw = _read_once(root, leave_out or {}, without)
    if raw and not unfinished(root, read_manifest(root)):
        # its recorder ended meanwhile, and took away what we were reading
        bundle, _ = _read_once(root, leave_out or {}, without)
    return stated(bundle)


def _read_once(
    root: Path, leave_out: Mapping[str, Collection[str]], without: Collection[str]
) -> tuple[Bundle, bool]:
    """As `read_bundle`; whether it was recovered. Problems are not in a table yet."""
    from tracehint.schemas.tables import TABLES

    manifest = read_manifest(root)
    problems: list[str] = []
    raw = unfinished(root, manifest)
    less = {} if raw else leave_out
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
        from tracehint.schemas.footer import rows_of

        counts = {
            name: rows_of(segment_files(root, name)) if name in without else table.num_rows
            for name, table in tables.items()
        }
        state_missing(bundle, counts)
    return bundle, raw


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
    found: list[Path] = []
    for folder in _entries(base):
        if folder.name.startswith("host=") and folder.is_dir(follow_symlinks=False):
            segments = [
                entry.name
                for entry in _entries(folder.path)
                if entry.name.endswith(".parquet")
                and entry.name[0] != "."
                and entry.is_file(follow_symlinks=False)
            ]
            found += [base / folder.name / name for name in sorted(segments, key=as_written)]
    return found


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    """What lies in a directory, by name; nothing where that is not to be known."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except PermissionError:
        return []


def as_written(segment: str) -> tuple[int, str]:
    """A key that puts `10.parquet` behind `9.parquet`."""
    return len(segment), segment


def _read_table(
    root: Path, name: str, problems: list[str], leave_out: Collection[str] = ()
) -> pa.Table:
    from tracehint.schemas.ahead import readers

    files = segment_files(root, name)
    parts = ((os.fspath(file.relative_to(root)), file) for file in files)
    return read_parts(name, parts, problems, leave_out, readers(files))


def read_parts(
    name: str,
    parts: Iterable[tuple[str, Path | BinaryIO]],
    problems: list[str],
    leave_out: Collection[str] = (),
    threads: int = 1,
) -> pa.Table:
    """One table from its Parquet files (name inside the bundle, where to read it).

    What cannot be read is left out and added to `problems`. With `leave_out`, the columns come
    in the smallest types that hold their values (schemas/compact.py). With several `threads`
    files are asked for before those before them have been read.
    """
    import pyarrow as pa

    from tracehint.schemas.ahead import in_their_order
    from tracehint.schemas.compact import read_compact, together
    from tracehint.schemas.one_file import read_wide, tried
    from tracehint.schemas.segments import grouped
    from tracehint.schemas.tables import ADDED, TABLES

    added = ADDED.get(name, ())
    schema = pa.schema([field for field in TABLES[name] if field.name not in leave_out])
    compact = bool(leave_out)
    one = partial(tried, read_compact if compact else read_wide, schema, added)

    def each() -> Iterator[pa.Table]:
        for found in in_their_order(one, parts, threads):
            if isinstance(found, str):
                problems.append(found)
            else:
                yield found

    tables = list(grouped(each(), schema if compact else None))
    if not tables:
        return schema.empty_table()
    return together(tables) if compact else pa.concat_tables(tables)
