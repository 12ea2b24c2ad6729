"""Check the sizes that a Parquet file's footer states against the size of the file.

A few bytes may represent billions of equal rows, or a page that decompresses to gigabytes: such
files are rejected before any data is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tracehint.limits import limit

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_FEW_ROWS = 10_000_000  # allowed for any file size
_FREE = 1 << 30  # uncompressed bytes allowed for any file size


def check_footer(source: pq.ParquetFile, where: Path | BinaryIO) -> None:
    """Raise ValueError (naming the limit) for a file that states implausibly much data."""
    facts, size = source.metadata, _size(where)
    rows = facts.num_rows
    if rows > limit("bundle-rows"):
        raise ValueError(f"{rows:,} rows (limit bundle-rows)")
    if rows > max(_FEW_ROWS, size * limit("bundle-rows-per-byte")):
        raise ValueError(f"{rows:,} rows in {size:,} bytes (limit bundle-rows-per-byte)")
    held = sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
    if held > max(_FREE, size * limit("bundle-ratio")):
        raise ValueError(f"{held:,} bytes packed into {size:,} (limit bundle-ratio)")


def check_texts(column: pa.ChunkedArray, name: str) -> None:
    """Raise ValueError if the texts of a dictionary column, decoded for each row, are too large."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return
    total = 0
    for chunk in column.chunks:
        if len(chunk) * chunk.dictionary.nbytes <= _FREE:  # upper bound: each row has all texts
            continue
        lengths = pc.binary_length(chunk.dictionary)
        if len(chunk) * (pc.max(lengths).as_py() or 0) > _FREE:
            total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
    if total and total > limit("bundle-text-bytes"):
        raise ValueError(f"column {name}: {total:,} bytes of texts (limit bundle-text-bytes)")


def _size(where: Path | BinaryIO) -> int:
    if isinstance(where, Path):
        return where.stat().st_size
    at = where.tell()
    size = where.seek(0, os.SEEK_END)
    where.seek(at)
    return size


def rows_of(files: Iterable[Path | BinaryIO]) -> int:
    """Return the total rows of Parquet files, from their footers; damaged files count 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    for file in files:
        try:
            with pq.ParquetFile(file) as source:
                check_footer(source, file)
                rows += source.metadata.num_rows
        except (OSError, pa.ArrowException, ValueError):
            continue
    return rows
