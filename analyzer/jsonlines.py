"""Putting JSON text together by columns: lines that belong to one row, joined and streamed.

The lines themselves are made by SQL; joining them is Arrow, so no Python object is made per
line. Blocks keep every string column below Arrow's 2 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 14  # rows per piece of output


class Grouped:
    """Lines by the key of the row that they belong to."""

    def __init__(self, keys: pa.ChunkedArray, lines: pa.ChunkedArray) -> None:
        import numpy as np

        numbers = keys.to_numpy()
        if len(numbers) > 1 and (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers, lines = numbers[order], lines.take(order)
        self._keys, self._lines = numbers, lines

    def joined(self, ids: Any) -> pa.Array:
        """For each of the sorted `ids` its lines in order, joined by commas; "" without any."""
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute as pc

        first = np.searchsorted(self._keys, ids, "left")
        last = np.searchsorted(self._keys, ids, "right")
        start, stop = (first[0], last[-1]) if len(ids) else (0, 0)
        lines = self._lines.slice(start, stop - start)
        if not (first[1:] == last[:-1]).all():  # rows whose key is not among the ids
            wanted = np.isin(self._keys[start:stop], ids)
            lines = lines.filter(pa.array(wanted))
        offsets = np.concatenate([[0], np.cumsum(last - first)]).astype(np.int32)
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), one_array(lines)), ",")


def one_array(lines: pa.ChunkedArray) -> pa.Array:
    """A single string array of the chunks."""
    import pyarrow as pa

    if lines.num_chunks == 1:
        return lines.chunk(0)
    return pa.concat_arrays(lines.chunks) if lines.num_chunks else pa.array([], pa.string())


def rows(
    ids: pa.ChunkedArray, heads: pa.ChunkedArray, parts: list[tuple[str, Grouped]]
) -> Iterator[bytes]:
    """JSON objects `head"name":[lines],...}`, comma separated; `ids` is sorted.

    A head is an object's text without its closing brace; every part is a list in it.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = ids.to_numpy()
    for start in range(0, len(numbers), BLOCK):
        block = numbers[start : start + BLOCK]
        pieces: list[Any] = [one_array(heads.slice(start, BLOCK))]
        for name, lines in parts:
            pieces += [pa.scalar(f',"{name}":['), lines.joined(block), pa.scalar("]")]
        pieces += [pa.scalar("}"), pa.scalar("")]
        whole = pc.binary_join_element_wise(*pieces)
        offsets = pa.array([0, len(whole)], pa.int32())
        text = pc.binary_join(pa.ListArray.from_arrays(offsets, whole), ",\n")[0]
        yield (b",\n" if start else b"\n") + text.as_buffer().to_pybytes()
