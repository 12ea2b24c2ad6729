"""Read trace bundles: `NAME.trace/<table>/host=<host>/<segment>.parquet`.

Unreadable parts are left out and reported in the `losses` table, never raised as a traceback.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from tracehint.errors import BundleError
from tracehint.schemas.compact import check_values, narrow, open_parquet
from tracehint.schemas.manifest import Manifest, read_manifest
from tracehint.schemas.recovery import JOB_SUFFIX, is_unfinished, read_job, recover_tables

if TYPE_CHECKING:
    import pyarrow as pa


def table_from_rows(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Build an Arrow table of the bundle's schema from Python rows (small tables, tests only)."""
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
    """Read a bundle, recovering the data of a killed recorder; or the file of a job's recording.

    `leave_out`: columns by table that the caller does not need; they may be missing then, and
    the other columns of that table have the narrowest types that hold their values.
    `without`: tables that are not read and have no rows, unless something is recovered.

    Unreadable parts are listed in `problems` and in the `losses` table (kind
    `damaged_segment`). Raises BundleError if there is no bundle at all.
    """
    root = Path(path)
    if root.suffix == JOB_SUFFIX and root.is_file():
        return Bundle(root, *read_job(root))
    try:
        bundle, raw = _read_once(root, leave_out or {}, without)
    except BundleError:
        # its output cannot be read, or was removed meanwhile
        if is_unfinished(root, read_manifest(root)):
            raise
        bundle, raw = _read_once(root, leave_out or {}, without)
    if raw and not is_unfinished(root, read_manifest(root)):
        # its recorder ended meanwhile and removed the output that was being read
        bundle, _ = _read_once(root, leave_out or {}, without)
    return state_problems(bundle)


def _read_once(
    root: Path, leave_out: Mapping[str, Collection[str]], without: Collection[str]
) -> tuple[Bundle, bool]:
    """Read a bundle; also return whether it was recovered. Problems are in no table yet."""
    from tracehint.schemas.tables import TABLES

    manifest = read_manifest(root)
    problems: list[str] = []
    raw = is_unfinished(root, manifest)
    less = {} if raw else leave_out
    tables = {
        name: TABLES[name].empty_table()
        if name in without and not raw
        else _read_table(root, name, problems, less.get(name, ()))
        for name in TABLES
    }
    bundle = Bundle(root, manifest, tables, problems)
    if raw:
        bundle.tables, more = recover_tables(root, manifest, tables)
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
    """Report rows that were written but are missing now in the table `losses`."""
    written = bundle.manifest.rows
    gone = {name: n - counts.get(name, 0) for name, n in written.items() if name in bundle.tables}
    add_losses(bundle, [("missing_rows", n, name) for name, n in gone.items() if n > 0])
    if not written and counts.get("extents") and not counts.get("opens"):
        opened = bundle.tables["extents"]["open"]
        if len(opened) > opened.null_count:
            bundle.problems.append("opens: the table is missing")


def add_losses(bundle: Bundle, rows: Iterable[tuple[str, int, str]]) -> None:
    """Add rows (kind, count, detail) of no process to the table `losses`."""
    import pyarrow as pa

    more = losses_table(bundle.manifest, rows)
    if more.num_rows:
        bundle.tables["losses"] = pa.concat_tables([bundle.tables["losses"], more])


def losses_table(manifest: Manifest, rows: Iterable[tuple[str, int, str]]) -> pa.Table:
    """Build a `losses` table of rows (kind, count, detail) of no process."""
    host = manifest.hosts[0].name if manifest.hosts else "unknown"
    return table_from_rows(
        "losses",
        [
            {"host": host, "proc": None, "kind": kind, "count": n, "detail": text}
            for kind, n, text in rows
        ],
    )


def state_problems(bundle: Bundle) -> Bundle:
    """Report the bundle's problems in its table `losses` too; return the bundle."""
    add_losses(bundle, [("damaged_segment", 1, text) for text in bundle.problems])
    return bundle


def segment_files(root: Path, name: str) -> list[Path]:
    """Return the Parquet files of one table, below the bundle only, in a fixed order."""
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
    """Return the entries of a directory by name; none without permission to read it."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except PermissionError:
        return []


def as_written(segment: str) -> tuple[int, str]:
    """Return a sort key that puts `10.parquet` after `9.parquet`."""
    return len(segment), segment


def _read_table(
    root: Path, name: str, problems: list[str], leave_out: Collection[str] = ()
) -> pa.Table:

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
    """Read one table from its Parquet files (name inside the bundle, path or stream).

    Unreadable files are left out and added to `problems`. With `leave_out`, the columns have
    the narrowest types that hold their values (schemas/compact.py). With several `threads`,
    files are requested before the previous ones have been read.
    """
    import pyarrow as pa

    from tracehint.schemas.compact import concat_parts, read_compact
    from tracehint.schemas.tables import ADDED, TABLES

    added = ADDED.get(name, ())
    schema = pa.schema([field for field in TABLES[name] if field.name not in leave_out])
    compact = bool(leave_out)
    one = partial(try_read, read_compact if compact else read_wide, schema, added)

    def each() -> Iterator[pa.Table]:
        for found in map_in_order(one, parts, threads):
            if isinstance(found, str):
                problems.append(found)
            else:
                yield found

    tables = list(coalesce_tables(each(), schema if compact else None))
    if not tables:
        return schema.empty_table()
    return concat_parts(tables) if compact else pa.concat_tables(tables)


T = TypeVar("T")
R = TypeVar("R")
_MIN_FILES_FOR_THREADS = 64  # number of files from which threads pay off
_SMALL = 1 << 18  # bytes of a file: larger ones are decompressed by several threads anyway
_MAX_WAITING = 4  # maximum number of waiting results per thread


def readers(files: Sequence[Path]) -> int:
    """Return the number of threads to read these files."""
    if len(files) < _MIN_FILES_FOR_THREADS:
        return 1
    try:
        small = all(file.stat().st_size <= _SMALL for file in files)
    except OSError:  # its reader will report this
        return 1
    return len(os.sched_getaffinity(0)) if small else 1


def map_in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield `work` of each item in order; with several `threads`, a few results ahead."""
    if threads < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[R]] = deque()
        for item in items:
            begun.append(pool.submit(work, item))
            if len(begun) > _MAX_WAITING * threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, none of which is None; each is computed while the previous is in use."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def try_read(
    read: Callable[[Path | BinaryIO, pa.Schema, Collection[str]], pa.Table],
    schema: pa.Schema,
    added: Collection[str],
    part: tuple[str, Path | BinaryIO],
) -> pa.Table | str:
    """Return the table that `read` reads from the file, or why it cannot be read."""
    import pyarrow as pa

    relative, where = part
    try:
        return read(where, schema, added)
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        return problem(relative, error)


def read_wide(where: Path | BinaryIO, schema: pa.Schema, added: Collection[str]) -> pa.Table:
    """Read the columns in the types of the schema. Raises the errors of `read_compact`."""
    from tracehint.schemas.compact import columns_of, open_parquet, present, with_nulls
    from tracehint.schemas.footer import check_texts

    # One file, without the dataset layer: the host is a column of the file, the folder name is
    # not trusted. pq.read_table would import pandas where it is installed.
    with open_parquet(where, schema, added) as source:
        names = present(source, schema)
        table = with_nulls(columns_of(source, names), schema)
    for name in schema.names:
        check_texts(table.column(name), name)
    return table.cast(schema)


def problem(relative: str, error: Exception) -> str:
    """Return one line about a file that cannot be read."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], bytes):
        first = f"no column {os.fsdecode(error.args[0])}"  # that was to be read as a dictionary
    return f"{relative}: {first[:200]}"


GROUP = 16 << 20  # maximum bytes of merged segments; larger segments stay as they are


def coalesce_tables(
    parts: Iterable[pa.Table], schema: pa.Schema | None = None
) -> Iterator[pa.Table]:
    """Yield the tables in order, small ones merged, with each column of these as one chunk.

    `schema`: integers are narrowed to the range of their values (`read_compact` does not do so
    for the columns of small files).
    """
    held: list[pa.Table] = []
    size = 0
    for part in parts:
        if held and size + part.nbytes > GROUP:
            yield _merge_tables(held, schema)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield _merge_tables(held, schema)


def _merge_tables(parts: list[pa.Table], schema: pa.Schema | None) -> pa.Table:
    import pyarrow as pa

    whole = parts[0]
    if len(parts) > 1:
        whole = pa.concat_tables(parts, promote_options="permissive")
        whole = whole.unify_dictionaries().combine_chunks()
    if schema is None or (len(parts) == 1 and whole.nbytes > GROUP):
        return whole
    columns = [narrow(whole.column(name), schema.field(name).type) for name in schema.names]
    return pa.table(columns, names=schema.names)


def batches_of(
    name: str,
    file: Path | BinaryIO,
    relative: str,
    problems: list[str],
    leave_out: Collection[str],
    rows: int,
) -> Iterator[pa.Table | None]:
    """Yield the rows of one Parquet file of a table, at most `rows` at a time; texts are
    dictionary-encoded.

    Ends with None, and an entry in `problems`, if reading fails.
    """
    import pyarrow as pa

    from tracehint.schemas.tables import TABLES

    schema = pa.schema([field for field in TABLES[name] if field.name not in leave_out])
    try:
        with open_parquet(file, schema) as source:
            for batch in source.iter_batches(rows, columns=schema.names):
                yield _check_columns(pa.Table.from_batches([batch]), schema)
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        problems.append(problem(relative, error))
        yield None


def _check_columns(part: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns in the types of the schema. Raises ArrowException or ValueError."""
    import pyarrow as pa

    columns = []
    for wanted in schema:
        column = part.column(wanted.name)
        check_values(column, wanted)
        columns.append(column if pa.types.is_dictionary(column.type) else column.cast(wanted.type))
    return pa.table(columns, names=schema.names)
