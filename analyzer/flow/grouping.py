"""Rows of one (entry, task) put together: bytes, unions of ranges, times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.flow.model import HOWS
from tracehint.analyzer.flow.ranges import group_ids, union

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Grouped:
    """Rows sorted by keys, then start, in groups of equal keys with the union of their ranges.

    `order` sorts the original rows, `first` is the first sorted row of each group, `offsets`
    the bounds of each group's ranges in `start` and `end`.
    """

    order: Ints
    first: Ints
    offsets: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.first)

    def key(self, values: Ints) -> Ints:
        """The value of each group's first row."""
        return values[self.order[self.first]]

    def sum(self, values: Ints) -> Ints:
        """The sum per group."""
        return np.add.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def low(self, values: Ints) -> Ints:
        """The minimum per group."""
        return np.minimum.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def high(self, values: Ints) -> Ints:
        """The maximum per group."""
        return np.maximum.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def any(self, flags: Bools) -> Bools:
        """Whether a flag is set in the group."""
        return np.logical_or.reduceat(flags[self.order], self.first) if len(self) else flags[:0]

    def bits(self, values: Ints) -> Ints:
        """All bits that are set in the group."""
        return np.bitwise_or.reduceat(values[self.order], self.first) if len(self) else values[:0]

    def unique_bytes(self) -> Ints:
        """The length of the union of each group's ranges."""
        below = np.concatenate([[0], np.cumsum(self.end - self.start)])
        return np.asarray(below[self.offsets[1:]] - below[self.offsets[:-1]], np.int64)


def group(start: Ints, end: Ints, *keys: Ints) -> Grouped:
    """Group rows by the keys and join their ranges."""
    n = len(start)
    order = order_by(*keys)
    ordered = [k[order] for k in keys]
    first = starts_of(*ordered)
    if len(first) == n:  # every row is a group of its own
        return Grouped(order, first, np.arange(n + 1), start[order], end[order])
    number = group_ids(first, n)
    several = np.flatnonzero(np.bincount(number)[number] > 1)
    inner = order[several]
    order[several] = inner[order_by(number[several], start[inner])]
    of, low, high = union(number, start[order], end[order])
    offsets = np.searchsorted(of, np.arange(len(first) + 1))
    return Grouped(order, first, offsets, low, high)


def range_lists(offsets: Ints, start: Ints, end: Ints) -> pa.Array:
    """Lists of [start, end) pairs, as analyzer.model has them."""
    import pyarrow as pa

    flat = np.empty(2 * len(start), np.int64)
    flat[0::2], flat[1::2] = start, end
    pairs = pa.FixedSizeListArray.from_arrays(pa.array(flat), 2)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs)


def even_lists(values: pa.Array, count: int, each: int) -> pa.Array:
    """`count` lists of the values, `each` in every one."""
    import pyarrow as pa

    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * each, pa.int32()), values)


def how_lists(bits: Ints) -> pa.Array:
    """Lists of the names of the ways of access."""
    import pyarrow as pa

    known, code = np.unique(bits, return_inverse=True)
    names = [[h for i, h in enumerate(HOWS) if b >> i & 1] for b in known.tolist()]
    return pa.array(names, pa.list_(pa.string())).take(pa.array(code.reshape(-1)))
