"""Declared graph of an engine, its builder, and helpers of all readers of graphs and logs.

Input files are untrusted: sizes, depths and counts are bounded, files that they name are opened
only below their own directory, and unrecognised content is counted, not fatal.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.errors import InputError
from tracehint.limits import check
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1 << 17
MAX_WORD = 1 << 16  # bytes kept of one name or command


@dataclass(frozen=True)
class DeclaredGraph:
    """An engine's declared graph: tables DECLARED_TASKS and DECLARED_IO of the bundle.

    Rows of `tasks` with equal `task` are parts of one task (the recipe lines of a make target).
    cwd: base directory of relative names. notes: what was left out, and why.
    placed: times were derived from runtimes and order, not measured.
    """

    engine: str
    tasks: pa.Table
    io: pa.Table
    cwd: bytes
    started_ns: int = 0
    ended_ns: int | None = None
    notes: tuple[str, ...] = ()
    placed: bool = False

    def plain(self) -> DeclaredGraph:
        """Return a copy with plain text columns; readers of large graphs dictionary-encode them."""
        from tracehint.schemas.tables import DECLARED_IO, DECLARED_TASKS

        tasks, io = self.tasks.cast(DECLARED_TASKS), self.io.cast(DECLARED_IO)
        return dataclasses.replace(self, tasks=tasks, io=io)


class _Rows:
    """Rows of one table, converted to Arrow batches incrementally: a graph may have millions."""

    def __init__(self, table: str) -> None:
        self.table, self.count = table, 0
        self._batches: list[pa.RecordBatch] = []
        self._columns: list[list[Any]] = []

    def add(self, *values: Any) -> None:
        """Append one row in the order of the schema. Raise InputError beyond the limit rows."""
        if not self._columns:
            self._columns = [[] for _ in values]
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self.count += 1
        if self.count % _BATCH == 0:
            self._flush()
            check("rows", "the workflow", self.count)

    def _flush(self) -> None:
        import pyarrow as pa

        from tracehint.schemas.tables import TABLES

        schema = TABLES[self.table]
        arrays = [pa.array(c, f.type) for c, f in zip(self._columns, schema, strict=True)]
        self._batches.append(pa.record_batch(arrays, schema=schema))
        self._columns = []

    def arrow(self) -> pa.Table:
        """Return the table."""
        import pyarrow as pa

        from tracehint.schemas.tables import TABLES

        if self._columns:
            self._flush()
        return pa.Table.from_batches(self._batches, schema=TABLES[self.table])


class GraphBuilder:
    """Builder of one graph's tables. `cwd` is an absolute directory."""

    def __init__(self, engine: str, cwd: bytes, host: str = "unknown") -> None:
        self.engine, self.cwd, self.host = engine, cwd, host
        self.notes: list[str] = []
        self._bad_lines: list[int] = []
        self._tasks, self._io = _Rows("declared_tasks"), _Rows("declared_io")

    def task(
        self,
        task: str,
        *,
        name: str = "",
        type: str = "",
        command: bytes = b"",
        workdir: bytes | None = None,
        pid: int | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        exit_status: int | None = None,
        attempt: int = 1,
        parents: Sequence[str] = (),
        read_bytes: int | None = None,
        written_bytes: int | None = None,
        cpu_ns: int | None = None,
        cores: float | None = None,
        memory_bytes: float | None = None,
        peak_bytes: float | None = None,
        host: str = "",
    ) -> None:
        """Add a task (one row per attempt or part)."""
        self._tasks.add(
            clean(host or self.host),
            clean(task),
            clean(name),
            clean(type),
            command[:MAX_WORD],
            workdir,
            bounded_int(pid, 32),
            bounded_int(start_ns),
            bounded_int(end_ns),
            bounded_int(exit_status, 32),
            bounded_int(attempt, 32) or 1,
            [clean(p) for p in parents],
            bounded_int(read_bytes),
            bounded_int(written_bytes),
            self.engine,
            bounded_int(cpu_ns),
            bounded_int(cores, 32),
            bounded_int(memory_bytes),
            bounded_int(peak_bytes),
        )

    def file(
        self, task: str, direction: str, path: bytes, size: int | None = None, *, raw: bool = False
    ) -> None:
        """Add an input ("in") or output ("out"); relative names are below `cwd` unless `raw`."""
        full = path if raw else posixpath.normpath(posixpath.join(self.cwd, path))
        self._io.add(self.host, clean(task), full[:MAX_WORD], direction, bounded_int(size))

    def bad_line(self, number: int) -> None:
        """Record the number of a line that was not understood."""
        self._bad_lines.append(number)

    def graph(self, started_ns: int = 0, ended_ns: int | None = None) -> DeclaredGraph:
        """Return the graph. Raise InputError if it has no task."""
        import pyarrow.compute as pc

        if not self._tasks.count:
            raise InputError(f"no task of {self.engine} found", "Check that the file is complete.")
        if self._bad_lines:
            shown = ", ".join(map(str, self._bad_lines[:10]))
            self.notes.append(f"{plural(len(self._bad_lines), 'line')} not understood: {shown}")
        tasks = self._tasks.arrow()
        first = pc.min(tasks.column("start_ns")).as_py() or 0
        return DeclaredGraph(
            self.engine,
            tasks,
            self._io.arrow(),
            self.cwd,
            started_ns or first,
            ended_ns,
            tuple(self.notes),
        )


def clean(text: str) -> str:
    """Return the text, truncated, with invalid Unicode escaped: tables store text as UTF-8."""
    short = text[:MAX_WORD]
    return short if short.isascii() else short.encode("utf-8", "backslashreplace").decode()


def bounded_int(value: Any, bits: int = 64) -> int | None:
    """Return a number that fits into `bits` as an int, otherwise None: logs hold any value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    if abs(value) >= 2 ** (bits - 1):
        return None
    return int(value)


def number(text: Any) -> float | None:
    """Return the finite number in a text or JSON value, otherwise None."""
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if abs(value) < 1e30 else None


def processor_time(percent: float | None, seconds: float | None) -> int | None:
    """Return CPU nanoseconds from the mean utilisation (100: one processor) over a period."""
    if percent is None or seconds is None or percent < 0 or seconds < 0:
        return None
    return bounded_int(round(percent / 100 * seconds * 1e9))


def nanoseconds(seconds: Any) -> int | None:
    """Convert seconds since the epoch (text or number) to ns, exact to the microsecond."""
    value = number(seconds)
    return None if value is None else bounded_int(round(value * 1e6) * 1000)


def iso_time(text: Any) -> int | None:
    """Convert an ISO 8601 date to nanoseconds since the epoch; None if it is not one."""
    try:
        return nanoseconds(datetime.fromisoformat(text).timestamp())
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def raw_name(text: str) -> bytes:
    """Return the bytes of a name that was decoded with surrogate escapes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # surrogates from escapes in JSON
        return text.encode("utf-8", "replace")


def folder_of(path: Path) -> bytes:
    """Return the absolute directory of a file, without resolving links."""
    return absolute(path.parent)


def absolute(directory: Path) -> bytes:
    """Return the directory as an absolute path, without resolving links."""
    return os.fsencode(posixpath.abspath(directory))
