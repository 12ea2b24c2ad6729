"""Export of a run to other tools: format name -> module with `write(run, target)`.

Each module writes one file, or one directory (`write(run, target, name)`). Its `COLUMNS` lists
the columns that it reads, by table; modules without it read all.
"""

from __future__ import annotations

import dataclasses
import errno
import importlib
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Any

from tracehint.errors import UsageError
from tracehint.hintgen import query
from tracehint.schemas.plain import is_own_folder, is_stream, replacing

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input


@dataclasses.dataclass(frozen=True)
class Format:
    """`suffix` of the default name; `directory`: the result is a directory."""

    module: str
    suffix: str
    text: str
    directory: bool = False


FORMATS: dict[str, Format] = {
    "wfformat": Format("wfformat", ".json", "WfFormat 1.5 instance (WfCommons)"),
    "prov": Format("prov", ".json", "W3C PROV as PROV-JSON"),
    "ro-crate": Format("crate", "", "Process Run RO-Crate (a directory)", directory=True),
    "perfetto": Format("perfetto", ".json", "trace events for Perfetto and chrome://tracing"),
    "graphml": Format("graphml", ".graphml", "the file/task graph, unfolded"),
    "parquet": Format("tables", "", "the tables of the analysis (a directory)", directory=True),
    "arrow": Format("tables", "", "as parquet, in Arrow IPC files", directory=True),
}


def export(run: Input, name: str, target: Path, *, force: bool = False) -> None:
    """Write the run to `target` (`-`: stdout), whole or not at all.

    Raises UsageError, also for an existing `target` (but a stream) without `force`.
    """
    chosen = FORMATS[name]
    if str(target) == "-":
        _to_stdout(run, name)
        return
    stream = is_stream(target) and not chosen.directory
    if (target.exists() or target.is_symlink()) and not force and not stream:
        raise UsageError(f"{target}: exists", "Give --force to replace it, or another -o.")
    if target.exists() and target.is_dir() != chosen.directory:
        kind = "not a directory" if chosen.directory else "a directory"
        raise UsageError(f"{target}: is {kind}", "Choose another name with -o.")
    try:
        if chosen.directory:
            _write_folder(run, name, target)
        else:
            with replacing(target) as fd:
                _module(name).write(run, Path(f"/proc/self/fd/{fd}"))
    except OSError as error:
        raise UsageError(
            f"{target}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None


def select_input(run: Input, name: str) -> Input:
    """Return the run with only the columns that the format reads: half of a large run is freed."""
    from tracehint.hintgen.inputs import Input

    wanted = getattr(_module(name), "COLUMNS", None)
    if wanted is None:
        return run
    tables = {
        table_name: table.select(wanted[table_name].split())
        if table_name in wanted
        else table.schema.empty_table()
        for table_name, table in run.analysis.tables().items()
    }
    analysis = dataclasses.replace(run.analysis, **tables, proc_task=None, declared_task=None)
    return Input(run.name, analysis)


def _module(name: str) -> Any:
    return importlib.import_module(f"tracehint.hintgen.export.{FORMATS[name].module}")


def _write_folder(run: Input, name: str, target: Path) -> None:
    """Write the files of a directory, each whole or not at all: they are moved there at the end."""
    target.mkdir(parents=True, exist_ok=True)
    if not is_own_folder(target):
        raise PermissionError(errno.EPERM, "it belongs to another user")
    with TemporaryDirectory(prefix=".tracehint-", dir=target) as made:
        _module(name).write(run, Path(made), name)
        for path in sorted(Path(made).iterdir()):
            path.replace(target / path.name)


def _to_stdout(run: Input, name: str) -> None:
    """Write one file to stdout, whole or not at all. Raises UsageError, OSError."""
    if FORMATS[name].directory:
        raise UsageError(
            f"{name} is a directory and cannot be written to stdout", "Name it with -o."
        )
    with TemporaryFile() as made:
        _module(name).write(run, Path(f"/proc/self/fd/{made.fileno()}"))
        made.seek(0)
        shutil.copyfileobj(made, sys.stdout.buffer)
        sys.stdout.buffer.flush()


_COMMA = ",\n"  # between the members of a list


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[str]:
    """Yield the only, textual column of the result as members of a list, joined by batches."""
    for batch in query.arrow_batches(con, sql):
        yield _COMMA.join(batch.column(0).to_pylist())


def join_with_commas(items: Iterable[str]) -> Iterator[str]:
    """Yield the items with commas between them."""
    first = True
    for item in items:
        yield item if first else _COMMA + item
        first = False


def write(target: Path, parts: Iterable[str]) -> None:
    """Write the parts in order."""
    with target.open("w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.writelines(parts)


def timestamp(started: str) -> str:
    """Return the start as `YYYY-MM-DD HH:MM:SS.ffffff`, UTC; the epoch if it is unknown."""
    try:
        when = datetime.fromisoformat(started).astimezone(UTC)
    except ValueError:
        when = datetime.fromtimestamp(0, UTC)
    return when.strftime("%Y-%m-%d %H:%M:%S.%f")
