"""JSON documents whose long lists are made row by row in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb

_COMMA = ",\n"  # between the members of a list


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[str]:
    """The one text column of the result: members of a list, some thousands at a time."""
    for batch in query.arrow_batches(con, sql):
        yield _COMMA.join(batch.column(0).to_pylist())


def joined(items: Iterable[str]) -> Iterator[str]:
    """The items with commas between them."""
    first = True
    for item in items:
        yield item if first else _COMMA + item
        first = False


def write(target: Path, parts: Iterable[str]) -> None:
    """Write the parts one after the other."""
    with target.open("w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.writelines(parts)
