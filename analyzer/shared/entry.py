"""One kept analysis as the bytes of a file, out and in.

A line of JSON (format, key, where each table lies), the tables as Arrow streams, and a checksum of
all that at the end. Read are only files of this user, but a disk may be full or a program killed:
what is not whole and of the right schema is no entry.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis, Options

FORMAT = "tracehint.shared-analysis/1"
_SUM = hashlib.sha256
_SUM_BYTES = 32


def write(stream: BinaryIO, key: str, analysis: Analysis) -> None:
    """Write an analysis that was made of a bundle. Raises OSError."""
    tables = {name: _packed(table) for name, table in _tables(analysis).items()}
    sizes = {name: len(text) for name, text in tables.items()}
    head = {"format": FORMAT, "key": key, "sizes": sizes, "run": analysis.run}
    total = _SUM()
    for piece in (json.dumps(head, allow_nan=False).encode() + b"\n", *tables.values()):
        total.update(piece)
        stream.write(piece)
    stream.write(total.digest())


def read(data: bytes, key: str, options: Options) -> Analysis | None:
    """The analysis in `data`; None: damaged, of another key or format."""
    from tracehint.analyzer.model import Analysis

    whole = memoryview(data)[:-_SUM_BYTES]
    if len(data) < _SUM_BYTES or _SUM(whole).digest() != data[-_SUM_BYTES:]:
        return None
    try:
        line = data.index(b"\n")
        head = json.loads(data[:line])
        if (head["format"], head["key"]) != (FORMAT, key):
            return None
        tables = _unpacked(whole[line + 1 :], head["sizes"])
        return None if tables is None else Analysis(head["run"], options=options, **tables)
    except (ValueError, TypeError, KeyError, OSError):  # Arrow's errors are among these
        return None


def _schemas() -> dict[str, pa.Schema]:
    from tracehint.analyzer.model import ANALYSIS_TABLES
    from tracehint.analyzer.tasks.model import DECLARED_TASK, PROC_TASK

    return ANALYSIS_TABLES | {"proc_task": PROC_TASK, "declared_task": DECLARED_TASK}


def _tables(analysis: Analysis) -> dict[str, pa.Table]:
    return {name: getattr(analysis, name) for name in _schemas()}


def _packed(table: pa.Table) -> bytes:
    import pyarrow as pa

    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    return stream.getvalue()


def _unpacked(data: memoryview, sizes: dict[str, int]) -> dict[str, Any] | None:
    """The tables by name; None: not these, or not of their schemas."""
    import pyarrow as pa

    schemas = _schemas()
    if list(sizes) != list(schemas):
        return None
    found, at = {}, 0
    for name, size in sizes.items():
        table = pa.ipc.open_stream(pa.py_buffer(data[at : at + size])).read_all()
        if not table.schema.equals(schemas[name]):
            return None
        found[name] = table
        at += size
    return found
