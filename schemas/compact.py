"""Tables in the narrowest types that hold their values: a quarter to half of the memory.

Integers are narrowed to the range of their values, texts are dictionary-encoded. For code that
uses columns and not the types of the schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tracehint.schemas.footer import check_footer

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_AT_ONCE = 2  # columns read together: they are in memory twice for a moment
# maximum uncompressed bytes and rows of a file whose columns are all read at once
_SMALL, _FEW_ROWS = 1 << 20, 1 << 16


def read_compact(
    where: Path | BinaryIO, schema: pa.Schema, added: Collection[str] = ()
) -> pa.Table:
    """Read the columns of `schema` from one Parquet file; missing `added` columns are null.

    Columns of a small file are not narrowed yet (`schemas/store.py` narrows many files at a
    time). Raises OSError, ArrowException, KeyError or ValueError if it cannot be read or does
    not match the schema.
    """
    import pyarrow as pa

    columns: list[pa.ChunkedArray] = []
    with open_parquet(where, schema, added) as source:
        names = present(source, schema)
        if is_small(source):
            return with_nulls(_cast_columns(columns_of(source, names), schema), schema)
        for low in range(0, len(names), _AT_ONCE):
            columns += _narrow_columns(source, schema, names[low : low + _AT_ONCE])
    return with_nulls(pa.table(columns, names=names), schema)


def _cast_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Cast the columns to the types of the schema; encoded texts stay dictionary-encoded."""
    import pyarrow as pa

    for at, name in enumerate(table.column_names):
        field, column = schema.field(name), table.column(at)
        check_values(column, field)
        numbered = pa.types.is_dictionary(column.type)
        kind = pa.dictionary(pa.int32(), field.type) if numbered else field.type
        if column.type != kind:
            table = table.set_column(at, name, column.cast(kind))
    return table


def present(source: pq.ParquetFile, schema: pa.Schema) -> list[str]:
    """Return the columns of the schema that the file has."""
    has = set(source.schema_arrow.names)
    return [name for name in schema.names if name in has]


def with_nulls(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with all columns of the schema in order; missing ones are null."""
    import pyarrow as pa

    if table.num_columns == len(schema):
        return table
    for at, field in enumerate(schema):
        if field.name not in table.column_names:
            table = table.add_column(at, field.name, pa.nulls(table.num_rows, field.type))
    return table


@contextmanager
def open_parquet(
    where: Path | BinaryIO, schema: pa.Schema, added: Collection[str] = ()
) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file with these columns, of which `added` ones may be missing; texts are read
    dictionary-encoded.

    Raises OSError, ArrowException, or ValueError for a file without one of the columns or
    beyond the limits.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
    try:
        source = pq.ParquetFile(where, read_dictionary=texts)
    except KeyError:  # a text column is missing; _check names the first missing column
        with pq.ParquetFile(where) as plain:
            _check(plain, where, schema, added)
        raise
    with source:
        _check(source, where, schema, added)
        yield source


def _check(
    source: pq.ParquetFile, where: Path | BinaryIO, schema: pa.Schema, added: Collection[str]
) -> None:
    """Raise ValueError for a file beyond the limits, or without one of the columns."""
    check_footer(source, where)
    has = {*source.schema_arrow.names, *added}
    missing = [name for name in schema.names if name not in has]
    if missing:
        raise ValueError(f"no column {missing[0]}")


def columns_of(source: pq.ParquetFile, names: list[str]) -> pa.Table:
    """Read these columns. For a small file, decompression threads cost more than they save."""
    return source.read(columns=names, use_threads=not is_small(source)).select(names)


def is_small(source: pq.ParquetFile) -> bool:
    """Whether all columns of the file are read at once."""
    return source.metadata.num_rows <= _FEW_ROWS and unpacked_bytes(source) <= _SMALL


def unpacked_bytes(source: pq.ParquetFile) -> int:
    """Return the uncompressed bytes of the file's columns, as stated in its footer."""
    facts = source.metadata
    return sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))


def _narrow_columns(
    source: pq.ParquetFile, schema: pa.Schema, names: list[str]
) -> Iterator[pa.ChunkedArray]:
    part = columns_of(source, names)
    for name in names:
        field, column = schema.field(name), part.column(name)
        check_values(column, field)
        yield narrow(column, field.type)


def check_values(column: pa.ChunkedArray, field: pa.Field) -> None:
    """Raise ValueError if a column that is not nullable has nulls."""
    if column.null_count and not field.nullable:
        raise ValueError(f"column {field.name} has rows without a value")


def narrow(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast a column to the narrowest type for its values; `kind`: its type in the schema."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        return column.cast(pa.dictionary(pa.int32(), kind))
    column = column.cast(kind)
    if not pa.types.is_signed_integer(kind):
        return column
    ends = pc.min_max(column).as_py()
    small = _smallest(ends["min"], ends["max"], kind)
    if column.null_count:
        return column.cast(small, safe=False)
    pieces = [chunk.to_numpy() for chunk in column.chunks]
    if not pieces:
        return column.cast(small)
    whole = np.concatenate(pieces, dtype=small.to_pandas_dtype(), casting="unsafe")
    return pa.chunked_array([pa.array(whole)])


def _smallest(low: int | None, high: int | None, kind: pa.DataType) -> pa.DataType:
    """Return the narrowest type, at most `kind`, for `low` to `high` (None: no value)."""
    import pyarrow as pa

    for small in (pa.int8(), pa.int16(), pa.int32()):
        most = 1 << (small.bit_width - 1)
        fits = low is None or high is None or (low >= -most and high < most)
        if fits and small.bit_width < kind.bit_width:
            return small
    return kind


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decode a column that may be dictionary-encoded."""
    import pyarrow as pa

    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def different(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts of a column; of a dictionary-encoded one, each text once per chunk and no
    nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type):
        return column
    found = [part.dictionary.take(pc.unique(part.indices).drop_null()) for part in column.chunks]
    return pa.chunked_array(found, column.type.value_type)


def wide(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cast integers to int64, for comparison with a column that is not narrowed."""
    import pyarrow as pa

    return column.cast(pa.int64())


def concat_parts(parts: list[pa.Table]) -> pa.Table:
    """Concatenate the parts; each integer column is one array, as wide as the widest part."""
    import pyarrow as pa

    whole = pa.concat_tables(parts, promote_options="permissive")
    columns = [_merge_chunks(whole.column(i)) for i in range(whole.num_columns)]
    return pa.table(columns, names=whole.schema.names)


def _merge_chunks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Merge chunks of integers, so that NumPy can view them without a copy; texts stay chunked."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and column.num_chunks > 1:
        return pa.chunked_array([pa.concat_arrays(column.chunks)])
    if pa.types.is_dictionary(column.type) and _fits_byte(column):
        chunks = [
            pa.DictionaryArray.from_arrays(chunk.indices.cast(pa.int8()), chunk.dictionary)
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, pa.dictionary(pa.int8(), column.type.value_type))
    return column


def _fits_byte(column: pa.ChunkedArray) -> bool:
    """Whether a signed byte can index the dictionary of each chunk."""
    return all(len(chunk.dictionary) < 1 << 7 for chunk in column.chunks)


def in_one(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the table with each named dictionary-encoded column as one chunk with one dictionary,
    so that later uses need no unification."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        column = table.column(at)
        named = field.name in names and pa.types.is_dictionary(field.type)
        if named and column.num_chunks > 1:
            whole = column.cast(pa.dictionary(pa.int32(), field.type.value_type))
            whole = whole.unify_dictionaries().combine_chunks()
            table = table.set_column(at, field.name, whole)
    return table
