"""One Parquet file of a bundle, or one line about why it cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa


def tried(
    read: Callable[[Path | BinaryIO, pa.Schema, Collection[str]], pa.Table],
    schema: pa.Schema,
    added: Collection[str],
    part: tuple[str, Path | BinaryIO],
) -> pa.Table | str:
    """What `read` finds in the file, or why it cannot be read."""
    import pyarrow as pa

    relative, where = part
    try:
        return read(where, schema, added)
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        return problem(relative, error)


def read_wide(where: Path | BinaryIO, schema: pa.Schema, added: Collection[str]) -> pa.Table:
    """The columns in the types of the schema. Raises as `read_compact` does."""
    from tracehint.schemas.compact import columns_of, opened, present, with_nulls
    from tracehint.schemas.footer import check_texts

    # One file, without the dataset layer: the host is a column of the file, the folder name is
    # not trusted. pq.read_table would import pandas where it is installed.
    with opened(where, schema, added) as source:
        names = present(source, schema)
        table = with_nulls(columns_of(source, names), schema)
    for name in schema.names:
        check_texts(table.column(name), name)
    return table.cast(schema)


def problem(relative: str, error: Exception) -> str:
    """One line about a file that cannot be read."""
    first = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], bytes):
        first = f"no column {os.fsdecode(error.args[0])}"  # that was to be read as a dictionary
    return f"{relative}: {first[:200]}"
