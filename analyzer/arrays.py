"""Integer array helpers, and columns of Arrow tables as numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


Ints = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]

LIMIT = 1 << 62  # exclusive limit of the packed keys of `composite`
_BLOCK = 1 << 19  # rows


def ints(values: npt.ArrayLike) -> Ints:
    """Return the values as int64."""
    return np.asarray(values, np.int64)


def slim(values: Numbers) -> Numbers:
    """Return an equal array in less memory, for reading only: integers as 32 bits where they fit,
    a constant array as a broadcast of one value."""
    if len(values) < 2 or values.dtype.itemsize < 8:
        return values
    bits = values.view(np.int64)
    if bits[0] == bits[-1] and (bits == bits[0]).all():
        return np.broadcast_to(values[:1].copy(), len(values))
    if values.dtype.kind == "f" or values.min() < -1 << 31 or values.max() >= 1 << 31:
        return values
    return values.astype(np.int32)


def concat_numbers(columns: Sequence[Numbers]) -> Numbers:
    """Concatenate the columns; broadcasts of one and the same value stay a broadcast."""
    some = [column for column in columns if len(column)] or columns[:1]
    first = some[0]
    if all(not column.strides[0] for column in some) and len({c[:1].tobytes() for c in some}) == 1:
        return np.broadcast_to(first[:1], sum(map(len, some)))
    return first if len(some) == 1 else np.concatenate(some)


def distinct(values: Ints) -> Ints:
    """Return the sorted distinct values (much faster than numpy's `unique` on millions of rows).

    Dense non-negative values are marked in a table; others are sorted.
    """
    if np.all(values[1:] >= values[:-1]):
        return values[starts_of(values)]
    if values.min() >= 0 and values.max() <= 4 * len(values) + 1024:
        present = np.zeros(int(values.max()) + 1, bool)
        present[values] = True
        return np.flatnonzero(present)
    ordered = np.sort(values)
    return ordered[starts_of(ordered)]


def rank_values(values: Ints) -> tuple[Ints, Ints]:
    """Return (sorted distinct values, rank of each value among them); no value may be negative.

    Dense values are looked up in a table; others are sorted.
    """
    most = int(values.max(initial=0))
    if most > 4 * len(values) + 1024:
        order = order_by(values)
        first = starts_of(values[order])
        place = np.empty(len(order), np.int64)
        place[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
        return values[order[first]], place
    present = np.zeros(most + 1, bool)
    present[values] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]


def group_equal_rows(*columns: Ints) -> tuple[Ints, Ints]:
    """Return (index of the first row of each distinct row, group number of each row)."""
    code = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        kinds, own = rank_values(values - values.min(initial=0))
        code = rank_values(code * len(kinds) + own)[1]
    first = np.full(int(code.max(initial=-1)) + 1, len(code), np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]  # the last assignment wins: the first row
    return first, code


def number_values(values: Ints) -> tuple[Ints, Ints]:
    """Number values by first occurrence: return (number of each value, first row of each number).
    No value may be negative. Values that already have these numbers are returned unchanged."""
    top = np.maximum.accumulate(values)
    first = starts_of(top)
    if len(first) and np.array_equal(top[first], np.arange(len(first))):
        return values, first
    kinds, number = rank_values(values)
    first = np.empty(len(kinds), np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[number], first[order]


def composite(*keys: Ints) -> Ints | None:
    """Combine the keys into one integer per row with the same order, most significant key first.

    Return None if the product of the keys' spans does not fit into 62 bits.
    """
    if not len(keys[0]):
        return ints([])
    total = np.zeros(len(keys[0]), np.int64)
    span = 1
    for key in keys:
        low, high = int(key.min()), int(key.max())
        span *= high - low + 1
        if span >= LIMIT:
            return None
        total *= high - low + 1
        total += key - low
    return total


def order_by(*keys: Ints) -> Ints:
    """Return the positions that sort the rows by the keys, most significant first; stable."""
    if len(keys[0]) < 2:
        return np.arange(len(keys[0]))
    joined = composite(*keys)
    if joined is None:
        return np.lexsort(keys[::-1])
    if np.all(joined[1:] >= joined[:-1]):
        return np.arange(len(joined))
    return _sort_positions(joined)


def _sort_positions(values: Ints) -> Ints:
    """Return the positions that sort non-negative values; stable.

    numpy radix-sorts 16-bit values, and sorts values twice as fast as it argsorts them: small
    values are sorted by their 16-bit halves, others packed with their positions if both fit.
    """
    high = int(values.max())
    if high < 1 << 16:
        return np.argsort(values.astype(np.uint16), kind="stable")
    if high < 1 << 32:
        order = np.argsort(values.astype(np.uint16), kind="stable")
        return order[np.argsort((values >> 16).astype(np.uint16)[order], kind="stable")]
    bits = (len(values) - 1).bit_length()
    if high >= 1 << (63 - bits):
        return np.argsort(values, kind="stable")
    placed = (values << bits) | np.arange(len(values))
    placed.sort()
    placed &= (1 << bits) - 1
    return placed


def starts_of(*keys: Ints) -> Ints:
    """Return the positions where groups of equal keys begin in sorted rows; empty for no rows."""
    if not len(keys[0]):
        return ints([])
    new = np.zeros(len(keys[0]), bool)
    new[0] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def blocks(rows: int) -> Iterator[slice]:
    """Yield slices that cover all rows, small enough to keep temporary arrays small."""
    for low in range(0, rows, _BLOCK):
        yield slice(low, min(low + _BLOCK, rows))


def lookup(keys: Ints, values: Ints, wanted: Numbers) -> Ints:
    """Return the value of each wanted key, -1 if it is missing; `keys` must be sorted.

    Dense keys (usual within one bundle) are looked up in a table, others by bisection.
    """
    if not len(keys) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    low, high = int(keys[0]), int(keys[-1])
    if high - low < 4 * len(keys) + 1024:
        table = np.full(high - low + 2, -1, np.int64)
        table[keys - low] = values
        found = np.empty(len(wanted), np.int64)
        for some in blocks(len(wanted)):
            part = ints(wanted[some])
            inside = (part >= low) & (part <= high)
            found[some] = table[np.where(inside, part - low, high - low + 1)]
        return found
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], -1)


def places(ids: Ints, wanted: Ints) -> Ints:
    """Return the position of each wanted id among sorted distinct ids; all must be present. The ids
    of a whole run are mostly 0, 1, 2, ..., which needs no search."""
    if len(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1:
        return wanted
    return np.searchsorted(ids, wanted)


def finder(ids: Ints) -> Callable[[Numbers], Ints]:
    """Return a function that maps identifiers to positions in `ids`: the first of duplicates, -1
    for unknown and negative identifiers."""
    order = order_by(ids)
    ranked = ids[order]
    first = starts_of(ranked)
    first = first[ranked[first] >= 0]
    keys, places = ranked[first], order[first]

    def find(wanted: Numbers) -> Ints:
        return lookup(keys, places, wanted)

    return find


def positions(ids: Ints, wanted: Numbers) -> Ints:
    """Return the position in `ids` of each wanted identifier, by the rules of `finder`."""
    return finder(ids)(wanted)


def mix_bits(values: npt.NDArray[np.uint64]) -> None:
    """Replace 64-bit values by hashes in place: the finalizer of SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values ^= values >> np.uint64(shift)
        values *= np.uint64(factor)
    values ^= values >> np.uint64(31)


def spread(start: Ints, count: Ints) -> Ints:
    """Return start, start + 1, ... for each start, `count` values each."""
    return np.repeat(start - np.cumsum(count) + count, count) + np.arange(int(count.sum()))


def join_pairs(key: Ints, of: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Return (position in `key`, element of `value`) for each pair with `key == of`. Neither `key`
    nor `of` may be negative."""
    many = int(max(key.max(initial=0), of.max(initial=0))) + 1
    count = np.bincount(of, minlength=many)
    first = np.cumsum(count) - count
    row = np.repeat(np.arange(len(key)), count[key])
    return row, value[order_by(of)][spread(first[key], count[key])]


MISSING = -1


def column(table: pa.Table, name: str, null: int = MISSING) -> Ints:
    """Return an integer column as int64, or a boolean one as int8; nulls become `null`."""
    found = numbers(table, name, null)
    return found if table.schema.field(name).type == "bool" else ints(found)


def numbers(table: pa.Table, name: str, null: int = MISSING) -> np.ndarray:
    """Return an integer column in its own type (int64 if it has nulls), booleans as int8.

    Nulls become `null`. A column of one chunk is not copied: callers must not modify the result.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table.column(name)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif values.null_count:  # `null` may not fit into the type of the column
        values = values.cast(pa.int64())
    if values.null_count:
        values = pc.fill_null(values, null)
    return np.asarray(values.to_numpy())


def in_order(table: pa.Table, name: str) -> pa.Table:
    """Return the table sorted by a column, or the table itself if it is sorted."""
    key = column(table, name)
    return table if np.all(key[1:] >= key[:-1]) else table.take(order_by(key))


def floats(table: pa.Table, name: str) -> np.ndarray:
    """Return a column as float64; nulls become NaN."""
    return np.asarray(table.column(name).to_numpy(), np.float64)


def codes(table: pa.Table, name: str) -> Ints:
    """Return a text column as codes by first occurrence of each text; null becomes MISSING."""
    encoded = table.column(name).combine_chunks().dictionary_encode()
    return ints(encoded.indices.fill_null(MISSING).to_numpy(zero_copy_only=False))


def encode_column(table: pa.Table, name: str) -> tuple[Ints, pa.Array]:
    """Return a text column without nulls as (code of each row's text, distinct texts)."""
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
    """Return a binary column as one array."""
    import pyarrow as pa

    values = table.column(name)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], pa.binary())
