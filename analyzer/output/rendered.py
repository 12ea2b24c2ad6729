"""JSON text of many rows at once: columns of numbers become columns of text, joined by Arrow.

No Python object is made per row. Rows that are alike are written once: see `objects`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[Any]
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # odd constants of a common 64-bit finalizer


@dataclass(frozen=True)
class Words:
    """JSON texts by number (an Arrow array of large strings, or a few texts); a negative number
    is null."""

    codes: Array
    texts: Any


Leaf = npt.NDArray[Any] | Words
Tree = Mapping[str, "Leaf | Tree"]


def maybe(values: Array, known: Array) -> Words | Array:
    """Whole numbers, null where they are not known."""
    if known.all():
        return values
    rows, codes = distinct([values])
    return Words(np.where(known, codes, -1), text(values, rows))


def flags(values: Array) -> Words:
    """Booleans."""
    return Words(values.astype(np.int64), ("false", "true"))


def decimals(values: Array, places: int) -> Array:
    """Rounded, halves away from zero."""
    scale = 10.0**places
    scaled = values * scale
    whole = np.trunc(scaled)
    found: Array = (whole + np.sign(scaled) * (np.abs(scaled - whole) >= 0.5)) / scale
    return found


def objects(tree: Tree) -> tuple[Array, pa.Array]:
    """One JSON object per row: (number of its text, the distinct texts)."""
    pieces = list(_pieces(tree))
    leaves = [p for p in pieces if not isinstance(p, str)]
    rows, codes = distinct([p.codes if isinstance(p, Words) else p for p in leaves])
    return codes, joined(*(p if isinstance(p, str) else text(p, rows) for p in pieces))


def _pieces(tree: Tree) -> Iterator[str | Leaf]:
    """The texts between the values, and the values."""
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
    """The JSON text of some rows. NaN is null."""
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
    # small numbers would be written with an exponent, which is as good, but 1 as if it was whole
    nothing = np.isnan(some)
    texts = pa.array(some, mask=nothing).cast(pa.large_string())
    point = (np.trunc(some) == some) & (np.abs(some) < 1e15)
    if point.any():
        tails = pa.array(["", ".0"], pa.large_string()).take(pa.array(point.astype(np.int8)))
        texts = joined(texts, tails)
    return texts.fill_null("null") if nothing.any() else texts


def joined(*pieces: str | pa.Array) -> pa.Array:
    """The pieces of each row behind each other; texts are the same in all rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if all(isinstance(p, str) for p in pieces):
        return pa.array(["".join(map(str, pieces))], pa.large_string())
    kind = pa.large_string()
    same = [pa.scalar(p, kind) if isinstance(p, str) else p for p in pieces]
    return pc.binary_join_element_wise(*same, pa.scalar("", kind))


def distinct(columns: Sequence[Array]) -> tuple[Array, Array]:
    """(first row of each kind of row, the kind of each row) by the values of all columns."""
    import pyarrow as pa

    if not columns:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:  # one at a time: together they would be as large as all numbers again
        mixed ^= _bits(column)
        for shift, factor in zip((30, 27), _MIX, strict=True):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
    encoded = pa.array(mixed).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    rows = np.empty(len(encoded.dictionary), np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]
    if all(_same(_bits(column), rows, codes) for column in columns):
        return rows, codes
    # two different rows with one hash: never by chance
    _, rows, codes = np.unique(
        np.stack([_bits(c) for c in columns], axis=1),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    return rows, codes.reshape(-1)


def _same(bits: Array, rows: Array, codes: Array) -> bool:
    """Whether each row is as the first one of its kind."""
    return np.array_equal(bits, bits[rows][codes])


def _bits(column: Array) -> Array:
    if column.dtype.kind == "f":
        return (column.astype(np.float64) + 0.0).view(np.uint64)
    return column.astype(np.int64).view(np.uint64)
