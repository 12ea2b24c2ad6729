"""Columns of Arrow tables as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, ints, order_by

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = -1


def column(table: pa.Table, name: str, null: int = MISSING) -> Ints:
    """An integer column as int64, or a boolean one as int8; nulls become `null`."""
    found = numbers(table, name, null)
    return found if table.schema.field(name).type == "bool" else ints(found)


def numbers(table: pa.Table, name: str, null: int = MISSING) -> np.ndarray:
    """A column of whole numbers in the type that it has (int64 with nulls), booleans as int8.

    Nulls become `null`. What lies in one piece is not copied: it is not to be written to.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.column(name)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif values.null_count:  # `null` may be any number, however small those of the column are
        values = values.cast(pa.int64())
    if values.null_count:
        values = pc.fill_null(values, null)
    return np.asarray(values.to_numpy())


def in_order(table: pa.Table, name: str) -> pa.Table:
    """The table sorted by a column; itself, if it is."""
    key = column(table, name)
    return table if np.all(key[1:] >= key[:-1]) else table.take(order_by(key))


def floats(table: pa.Table, name: str) -> np.ndarray:
    """A column as float64; nulls become NaN."""
    return np.asarray(table.column(name).to_numpy(), np.float64)


def codes(table: pa.Table, name: str) -> Ints:
    """A text column as numbers of its different texts, in the order of their first row."""
    encoded = table.column(name).combine_chunks().dictionary_encode()
    return ints(encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False))


def coded(table: pa.Table, name: str) -> tuple[Ints, pa.Array]:
    """A text column without nulls as (the number of each row's text, the different texts)."""
    import pyarrow as pa

    values = table.column(name)
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    values = values.unify_dictionaries()
    if not values.num_chunks:
        return np.zeros(0, np.int64), pa.array([], values.type.value_type)
    parts = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in values.chunks]
    return np.concatenate(parts, dtype=np.int64), values.chunk(0).dictionary


def binary(table: pa.Table, name: str) -> pa.Array:
    """A binary column as one array."""
    import pyarrow as pa

    values = table.column(name)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], pa.binary())
