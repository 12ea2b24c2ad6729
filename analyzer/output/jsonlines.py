"""Lists inside JSON rows: strings that lie behind each other are joined by leaving offsets out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.columns import column, floats
from tracehint.analyzer.output.rendered import Array, decimals, flags, joined, text

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 15  # rows or list items per piece of output, where one row does not have more
_CONTROL = r"[\x00-\x1f]"


def quoted(values: pa.Array) -> pa.Array:
    """Texts as JSON strings; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    odd = pc.match_substring_regex(texts, _CONTROL)
    if pc.any(odd).as_py():
        mask = pc.fill_null(odd, False)
        fixed = [_escaped(t) for t in texts.filter(mask).to_pylist()]
        texts = pc.replace_with_mask(texts, mask, pa.array(fixed, texts.type))
    return joined('"', texts, '"')


def _escaped(text: str) -> str:
    """Control characters as JSON escapes; the rest is done already."""
    import json

    return "".join(json.dumps(c)[1:-1] if c < " " else c for c in text)


def or_null(texts: pa.Array) -> pa.Array:
    """The JSON null in place of what is missing."""
    return texts.fill_null("null")


def lists(lines: pa.Array, ends: Array) -> pa.Array:
    """The lines `ends[i]` up to `ends[i + 1]` as one string each; they are neighbours already.

    Each line brings its comma along (`commas`).
    """
    import pyarrow as pa

    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset :]
    return pa.LargeStringArray.from_buffers(
        len(ends) - 1, pa.py_buffer(np.ascontiguousarray(offsets[ends])), lines.buffers()[2]
    )


def commas(ends: Array, rows: int) -> pa.Array:
    """What stands before each of `rows` list items: a comma but at the first of each list."""
    import pyarrow as pa

    first = np.ones(rows + 1, np.int8)
    first[ends] = 0
    return pa.array(["", ","], pa.large_string()).take(pa.array(first[:rows]))


def listed(column: pa.Array) -> tuple[Array, pa.Array]:
    """Bounds and values of the lists of a column."""
    ends = column.offsets.to_numpy().astype(np.int64)
    low, high = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
    return ends - low, column.values.slice(low, high - low)


def strings(column: pa.Array) -> pa.Array:
    """A column of lists of texts as JSON lists; items that are null stay null."""
    ends, values = listed(column)
    encoded = values.dictionary_encode()
    items = or_null(quoted(encoded.dictionary.cast("large_string")).take(encoded.indices))
    return joined("[", lists(joined(commas(ends, len(items)), items), ends), "]")


def pairs(column: pa.Array) -> pa.Array:
    """A column of lists of [start, end) as JSON lists."""
    ends, values = listed(column)
    flat = values.flatten().to_numpy()
    lines = joined(commas(ends, len(values)), "[", whole(flat[0::2]), ",", whole(flat[1::2]), "]")
    return joined("[", lists(lines, ends), "]")


def whole(values: npt.NDArray[Any]) -> pa.Array:
    """Whole numbers as text."""
    import pyarrow as pa

    return pa.array(values).cast(pa.large_string())


def blocks(count: int, *bounds: Array) -> Iterator[tuple[int, int]]:
    """First and one past the last row of each block; `bounds` are those of the rows' lists."""
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
    """All rows behind each other."""
    if not len(rows):
        return b""
    offsets = np.frombuffer(rows.buffers()[1], np.int64)[rows.offset :][: len(rows) + 1]
    data: bytes = rows.buffers()[2][int(offsets[0]) : int(offsets[-1])].to_pybytes()
    return data


def separators(low: int, high: int) -> pa.Array:
    """What stands before the rows of a block."""
    import pyarrow as pa

    first = np.ones(high - low, np.int8)
    if high > low:
        first[0] = low > 0
    return pa.array(["\n", ",\n"], pa.large_string()).take(pa.array(first))


def one_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    import pyarrow as pa

    values = table.column(name)
    if values.num_chunks == 1:
        return values.chunk(0)
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def string_of(table: pa.Table, name: str, missing: str | None = None) -> pa.Array:
    """A column of texts as JSON; those that are missing as null, or as this text."""
    import pyarrow as pa

    values = one_of(table, name).cast(pa.large_string())
    return or_null(quoted(values if missing is None else values.fill_null(missing)))


def number_of(table: pa.Table, name: str, missing: int | None = None) -> pa.Array:
    """A column of whole numbers; those that are missing as null, or as this number."""
    import pyarrow as pa

    values = one_of(table, name).cast(pa.large_string())
    return values.fill_null("null" if missing is None else str(missing))


def flag_of(table: pa.Table, name: str) -> pa.Array:
    return text(flags(column(table, name) == 1))


def seconds_of(table: pa.Table, name: str, missing: float = np.nan) -> pa.Array:
    values = floats(table, name)
    return text(decimals(np.where(np.isnan(values), missing, values), 6))
