"""Tables of a bundle that are too large to be read at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tracehint.schemas.compact import check_values, opened
from tracehint.schemas.one_file import problem

if TYPE_CHECKING:
    import pyarrow as pa


def batches_of(
    name: str,
    file: Path | BinaryIO,
    relative: str,
    problems: list[str],
    leave_out: Collection[str],
    rows: int,
) -> Iterator[pa.Table | None]:
    """The rows of one Parquet file of a table, at most `rows` at one time; texts as numbers into
    the distinct ones.

    Ends with None, and an entry in `problems`, where it cannot be read on.
    """
    import pyarrow as pa

    from tracehint.schemas.tables import TABLES

    schema = pa.schema([field for field in TABLES[name] if field.name not in leave_out])
    try:
        with opened(file, schema) as source:
            for batch in source.iter_batches(rows, columns=schema.names):
                yield _checked(pa.Table.from_batches([batch]), schema)
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        problems.append(problem(relative, error))
        yield None


def _checked(part: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns as the schema wants them. Raises ArrowException or ValueError."""
    import pyarrow as pa

    columns = []
    for field in schema:
        column = part.column(field.name)
        check_values(column, field)
        columns.append(column if pa.types.is_dictionary(column.type) else column.cast(field.type))
    return pa.table(columns, names=schema.names)
