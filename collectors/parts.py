"""Bundles that are to be joined: what must be known of all at once, and their rows one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tracehint.collectors.same_files import FileTimes, uses
from tracehint.errors import TracehintError
from tracehint.schemas.tables import TABLES

if TYPE_CHECKING:
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle

# identifier -> columns of the tables that hold it
IDENTIFIERS: dict[str, tuple[str, ...]] = {
    "proc": ("proc", "parent", "prev"),
    "file": ("file",),
    "open": ("open",),
    "seq": ("seq",),
}


@dataclass(frozen=True)
class BundlePart:
    """One bundle of several; `table` reads the rows of a table."""

    path: Path
    manifest: Manifest
    problems: list[str]
    rows: dict[str, int]
    highest: dict[str, int]  # of each identifier, in any table
    used: FileTimes  # of the rows of the table `files`
    table: Callable[[str], pa.Table]


def in_memory(bundle: Bundle) -> BundlePart:
    """A bundle whose rows stay where they are."""
    return _part(bundle, bundle.tables.__getitem__)


def set_aside(bundle: Bundle, folder: Path) -> BundlePart:
    """A bundle whose rows wait in a fresh directory. Raises TracehintError: there is no room."""
    try:
        folder.mkdir()
        for name, table in bundle.tables.items():
            _write(table, folder / name)
    except OSError as error:
        raise TracehintError(
            f"{folder.parent}: {bundle.path.name} cannot be set aside: {error.strerror or error}",
            "Name a directory with more room in TMPDIR.",
        ) from None
    return _part(bundle, lambda name: _read(folder / name))


def _part(bundle: Bundle, table: Callable[[str], pa.Table]) -> BundlePart:
    tables = bundle.tables
    return BundlePart(
        path=bundle.path,
        manifest=bundle.manifest,
        problems=bundle.problems,
        rows={name: found.num_rows for name, found in tables.items()},
        highest={key: highest(tables, key) for key in IDENTIFIERS},
        used=uses(tables["names"], tables["files"]),
        table=table,
    )


def highest(tables: dict[str, pa.Table], key: str) -> int:
    """The largest identifier in any table: a damaged bundle may lack its owner's row."""
    found = 0
    for table in tables.values():
        for column in IDENTIFIERS[key]:
            if column in table.schema.names and len(table):
                found = max(found, pc.max(table[column]).as_py() or 0)
    return found


def moved(table: pa.Table, offsets: dict[str, int]) -> pa.Table:
    """The rows with their identifiers moved up."""
    for key, columns in IDENTIFIERS.items():
        for name in columns:
            index = table.schema.get_field_index(name)
            if index < 0 or not offsets[key]:
                continue
            values = pc.add(table[name], pa.scalar(offsets[key], pa.int64()))
            table = table.set_column(index, table.schema.field(index), values)
    return table


def offsets_of(parts: list[dict[str, int]]) -> list[dict[str, int]]:
    """By how much each part's identifiers are moved up, from the highest of each."""
    found = [dict.fromkeys(IDENTIFIERS, 0)]
    for most in parts[:-1]:
        found.append({key: found[-1][key] + most[key] for key in IDENTIFIERS})
    return found


def _write(table: pa.Table, file: Path) -> None:
    if not table.num_rows:
        return
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as out,
    ):
        out.write_table(table)


def _read(file: Path) -> pa.Table:
    if not file.exists():
        return TABLES[file.name].empty_table()
    with pa.OSFile(str(file)) as source:
        return pa.ipc.open_file(source).read_all()
