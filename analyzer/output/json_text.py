"""JSON text of many rows at once: number columns become text columns, joined by Arrow.

No Python object is created per row. Equal rows are formatted once: see `objects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.arrays import column, floats, mix_bits

if TYPE_CHECKING:
    import pyarrow as pa


Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Words:
    """Dictionary-encoded JSON texts (an Arrow array of large strings, or a few texts); a negative
    code is null."""

    codes: Array
    texts: Any


Leaf = npt.NDArray[Any] | Words
Tree = Mapping[str, "Leaf | Tree"]


def maybe(values: Array, known: Array) -> Words | Array:
    """Return integers, null where `known` is false."""
    if known.all():
        return values
    rows, codes = distinct([values])
    return Words(np.where(known, codes, -1), text(values, rows))


def flags(values: Array) -> Words:
    """Return booleans as JSON words."""
    return Words(values.astype(np.int64), ("false", "true"))


def decimals(values: Array, places: int) -> Array:
    """Round to `places` decimals, halves away from zero."""
    scale = 10.0**places
    scaled = values * scale
    whole = np.trunc(scaled)
    found: Array = (whole + np.sign(scaled) * (np.abs(scaled - whole) >= 0.5)) / scale
    return found


def objects(tree: Tree) -> tuple[Array, pa.Array]:
    """Return one JSON object per row, as (text index per row, distinct texts)."""
    pieces = list(_pieces(tree))
    leaves = [p for p in pieces if not isinstance(p, str)]
    rows, codes = distinct([p.codes if isinstance(p, Words) else p for p in leaves])
    return codes, join_pieces(*(p if isinstance(p, str) else text(p, rows) for p in pieces))


def _pieces(tree: Tree) -> Iterator[str | Leaf]:
    """Yield the value columns and the constant texts between them, in output order."""
    before = "{"
    for name, value in tree.items():
        before += f'"{name}":'
        if isinstance(value, Mapping):
            inner = list(_pieces(value))
            yield before + str(inner[0])
            yield from inner[1:-1]
            before = str(inner[-1]) + ","
            continue
        yield before
        yield value
        before = ","
    yield before.removesuffix(",") + "}"


def text(values: Leaf, rows: Any = slice(None), missing: str = "null") -> pa.Array:
    """Return the JSON text of the selected rows. NaN becomes null."""
    import pyarrow as pa

    if isinstance(values, Words):
        known = values.texts
        if not isinstance(known, pa.Array):
            known = pa.array(known, pa.large_string())
        codes = values.codes[rows]
        return (
            known.take(pa.array(codes, mask=codes < 0)).cast(pa.large_string()).fill_null(missing)
        )
    some = values[rows]
    if some.dtype.kind != "f":
        return pa.array(some).cast(pa.large_string())
    # Arrow writes 1.0 as "1": add ".0" to keep it a float. Exponents of small numbers are valid.
    nothing = np.isnan(some)
    texts = pa.array(some, mask=nothing).cast(pa.large_string())
    point = (np.trunc(some) == some) & (np.abs(some) < 1e15)
    if point.any():
        tails = pa.array(["", ".0"], pa.large_string()).take(pa.array(point.astype(np.int8)))
        texts = join_pieces(texts, tails)
    return texts.fill_null("null") if nothing.any() else texts


def join_pieces(*pieces: str | pa.Array) -> pa.Array:
    """Concatenate the pieces of each row; a `str` piece is the same in all rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if all(isinstance(p, str) for p in pieces):
        return pa.array(["".join(map(str, pieces))], pa.large_string())
    kind = pa.large_string()
    same = [pa.scalar(p, kind) if isinstance(p, str) else p for p in pieces]
    return pc.binary_join_element_wise(*same, pa.scalar("", kind))


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return (first row of each distinct row, code of each row), comparing all columns."""
    import pyarrow as pa

    if not columns:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    mixed = np.zeros(len(columns[0]), np.uint64)
    for numbers in columns:  # one at a time: stacking them would double the memory
        mixed ^= _bits(numbers)
        mix_bits(mixed)
    encoded = pa.array(mixed).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    rows = np.empty(len(encoded.dictionary), np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]
    if all(_repeats_first(_bits(column), rows, codes) for column in columns):
        return rows, codes
    # Fallback for a hash collision (only expected with crafted input).
    _, rows, codes = np.unique(
        np.stack([_bits(c) for c in columns], axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    return rows, codes.reshape(-1)


def _repeats_first(bits: Array, rows: Array, codes: Array) -> bool:
    """Whether each row equals the first row with its code."""
    return np.array_equal(bits, bits[rows][codes])


def _bits(column: Array) -> Array:
    if column.dtype.kind == "f":
        return (column.astype(np.float64) + 0.0).view(np.uint64)
    return column.astype(np.int64).view(np.uint64)


BLOCK = 1 << 15  # maximum rows plus list items per block, unless a single row has more
_CONTROL = r"[\x00-\x1f]"


def quote_texts(values: pa.Array) -> pa.Array:
    """Encode texts as JSON strings; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    odd = pc.match_substring_regex(texts, _CONTROL)
    if pc.any(odd).as_py():
        mask = pc.fill_null(odd, False)
        fixed = [_escape_controls(t) for t in texts.filter(mask).to_pylist()]
        texts = pc.replace_with_mask(texts, mask, pa.array(fixed, texts.type))
    return join_pieces('"', texts, '"')


def _escape_controls(text: str) -> str:
    """Escape control characters; quotes and backslashes are already escaped."""
    import json

    return "".join(json.dumps(c)[1:-1] if c < " " else c for c in text)


def or_null(texts: pa.Array) -> pa.Array:
    """Replace missing texts by the JSON null."""
    return texts.fill_null("null")


def lists(lines: pa.Array, ends: Array) -> pa.Array:
    """Join the lines `ends[i]` up to `ends[i + 1]` to one string each, without copying the text.

    Each line already includes its leading comma (`commas`).
    """
    import pyarrow as pa

    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset :]
    return pa.LargeStringArray.from_buffers(
        len(ends) - 1, pa.py_buffer(np.ascontiguousarray(offsets[ends])), lines.buffers()[2]
    )


def commas(ends: Array, rows: int) -> pa.Array:
    """Return the separator before each of `rows` list items: a comma except for the first."""
    import pyarrow as pa

    first = np.ones(rows + 1, np.int8)
    first[ends] = 0
    return pa.array(["", ","], pa.large_string()).take(pa.array(first[:rows]))


def list_bounds(column: pa.Array) -> tuple[Array, pa.Array]:
    """Return bounds and values of the lists of a column."""
    ends = column.offsets.to_numpy().astype(np.int64)
    low, high = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
    return ends - low, column.values.slice(low, high - low)


def strings(column: pa.Array) -> pa.Array:
    """Encode a column of lists of texts as JSON lists; null items stay null."""
    ends, values = list_bounds(column)
    encoded = values.dictionary_encode()
    items = or_null(quote_texts(encoded.dictionary.cast("large_string")).take(encoded.indices))
    return join_pieces("[", lists(join_pieces(commas(ends, len(items)), items), ends), "]")


def pairs(column: pa.Array) -> pa.Array:
    """Encode a column of lists of [start, end) as JSON lists."""
    ends, values = list_bounds(column)
    flat = values.flatten().to_numpy()
    lines = join_pieces(
        commas(ends, len(values)),
        "[",
        format_integers(flat[0::2]),
        ",",
        format_integers(flat[1::2]),
        "]",
    )
    return join_pieces("[", lists(lines, ends), "]")


def format_integers(values: npt.NDArray[Any]) -> pa.Array:
    """Return integers as text."""
    import pyarrow as pa

    return pa.array(values).cast(pa.large_string())


def blocks(count: int, *bounds: Array) -> Iterator[tuple[int, int]]:
    """Yield first and one past the last row of each block; `bounds`: bounds of the rows' lists."""
    weight = np.arange(count + 1)
    for ends in bounds:
        weight = weight + (ends - ends[0])
    low = 0
    while low < count:
        high = int(np.searchsorted(weight, weight[low] + BLOCK, side="right")) - 1
        high = min(max(high, low + 1), count)
        yield low, high
        low = high


def piece(rows: pa.Array) -> bytes:
    """Return the concatenated text of all rows."""
    if not len(rows):
        return b""
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :][: len(rows) + 1]
    data: bytes = rows.buffers()[2][int(offsets[0]) : int(offsets[-1])].to_pybytes()
    return data


def separators(low: int, high: int) -> pa.Array:
    """Return the separator before each row of a block."""
    import pyarrow as pa

    first = np.ones(high - low, np.int8)
    if high > low:
        first[0] = low > 0
    return pa.array(["\n", ",\n"], pa.large_string()).take(pa.array(first))


def one_of(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array."""
    import pyarrow as pa

    values = table.column(name)
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def string_of(table: pa.Table, name: str, missing: str | None = None) -> pa.Array:
    """Encode a column of texts as JSON; missing values become null or `missing`."""
    import pyarrow as pa

    values = one_of(table, name).cast(pa.large_string())
    return or_null(quote_texts(values if missing is None else values.fill_null(missing)))


def number_of(table: pa.Table, name: str, missing: int | None = None) -> pa.Array:
    """Encode a column of integers as JSON; missing values become null or `missing`."""
    import pyarrow as pa

    values = one_of(table, name).cast(pa.large_string())
    return values.fill_null("null" if missing is None else str(missing))


def flag_of(table: pa.Table, name: str) -> pa.Array:
    return text(flags(column(table, name) == 1))


def seconds_of(table: pa.Table, name: str, missing: float = np.nan) -> pa.Array:
    values = floats(table, name)
    return text(decimals(np.where(np.isnan(values), missing, values), 6))


def names_table(files: pa.Table) -> pa.Table:
    """Return columns file, path_text, path_code, other_text, other_code (see analyzer.text)."""
    import pyarrow as pa

    from tracehint.analyzer.text import texts

    path_text, path_code = texts(files.column("path"))
    others = files.column("other_paths").combine_chunks()
    if isinstance(others, pa.ChunkedArray):
        others = pa.concat_arrays(others.chunks) if others.num_chunks else pa.array([], others.type)
    text, code = texts(pa.chunked_array([others.flatten()], pa.binary()))
    offsets = _offsets(others)
    return pa.table(
        {
            "file": files.column("file"),
            "path_text": path_text,
            "path_code": path_code,
            "other_text": pa.ListArray.from_arrays(offsets, text.combine_chunks()),
            "other_code": pa.ListArray.from_arrays(offsets, code.combine_chunks()),
        }
    )


def _offsets(lists: pa.ListArray) -> pa.Array:
    """Return offsets into the flattened values; a null list is empty."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
