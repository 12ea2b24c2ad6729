"""JSON documents whose long lists are made row by row in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_BATCH = 10_000


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[str]:
    """The one text column of the result, in batches."""
    cursor = con.execute(sql)
    while batch := cursor.fetchmany(_BATCH):
        yield from (row[0] for row in batch)


def joined(items: Iterable[str]) -> Iterator[str]:
    """The items with commas between them."""
    first = True
    for item in items:
        yield item if first else ",\n" + item
        first = False


def write(target: Path, parts: Iterable[str]) -> None:
    """Write the parts one after the other."""
    with target.open("w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.writelines(parts)
