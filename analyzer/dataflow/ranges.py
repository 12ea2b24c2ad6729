"""Byte ranges in bulk: grouping, unions and intersections of millions of [start, end) at once.

All arrays are int64 and one-dimensional. Keys are small non-negative integers (dense indices).
"""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import LIMIT, Bools, Ints, distinct, ints, spread


def group_ids(starts: Ints, rows: int) -> Ints:
    """Return the group number of each of `rows` sorted rows."""
    flags = np.zeros(rows, np.int64)
    flags[starts] = 1
    return np.asarray(np.cumsum(flags) - 1, np.int64)


def expand(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return all (i, j) with low[i] <= j < high[i], ordered by i, then j."""
    counts = np.maximum(high - low, 0)
    return np.repeat(np.arange(len(low)), counts), spread(low, counts)


def running_max(group: Ints, value: Ints) -> Ints:
    """Return the running maximum within each group; groups are numbered upwards without gaps."""
    if not len(value):
        return value
    low, high = int(value.min()), int(value.max())
    if (int(group[-1]) + 1) * (high - low + 1) < LIMIT:
        shift = group * (high - low + 1) - low
        return np.asarray(np.maximum.accumulate(value + shift) - shift, np.int64)
    known = distinct(value)
    shift = group * len(known)
    best = np.maximum.accumulate(np.searchsorted(known, value) + shift) - shift
    return np.asarray(known[best], np.int64)


def union(group: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Return disjoint sorted ranges that cover the same bytes, per group; touching ones are joined.

    Rows must be sorted by (group, start), groups numbered upwards without gaps.
    """
    if not len(group):
        return group, start, end
    high = running_max(group, end)
    new = np.ones(len(group), bool)
    new[1:] = (group[1:] != group[:-1]) | (start[1:] > high[:-1])
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(group)) - 1
    return group[first], start[first], high[last]


def overlaps(
    a_key: Ints, a_start: Ints, a_end: Ints, b_key: Ints, b_start: Ints, b_end: Ints
) -> tuple[Ints, Ints]:
    """Return index pairs (i, j) of ranges of a and b with equal keys that share at least one byte.

    The ranges of b must be sorted by (key, start) and disjoint within a key; those of a need
    no order. Pairs are ordered by i, then j.
    """
    if not len(a_key) or not len(b_key):
        return ints([]), ints([])
    keys = int(max(a_key.max(), b_key.max())) + 1
    per_key = np.bincount(b_key, minlength=keys)
    first = np.cumsum(per_key) - per_key
    low, high = first[a_key], first[a_key] + per_key[a_key]
    many = np.flatnonzero(high - low > 1)
    if len(many):
        low[many], high[many] = _search(
            a_key[many], a_start[many], a_end[many], b_key, b_start, b_end
        )
    rows, found = expand(low, high)
    hit = (b_start[found] < a_end[rows]) & (b_end[found] > a_start[rows])
    return rows[hit], found[hit]


def _search(
    a_key: Ints, a_start: Ints, a_end: Ints, b_key: Ints, b_start: Ints, b_end: Ints
) -> tuple[Ints, Ints]:
    """Return the first and one past the last range of b that each range of a can overlap."""
    span = int(max(a_end.max(), b_end.max())) + 1
    if (int(max(a_key.max(), b_key.max())) + 1) * span >= LIMIT:
        known = distinct(np.concatenate((a_start, a_end, b_start, b_end)))
        a_start, a_end, b_start, b_end = (
            ints(np.searchsorted(known, points)) for points in (a_start, a_end, b_start, b_end)
        )
        span = len(known)
    low = np.searchsorted(b_key * span + b_end, a_key * span + a_start, side="right")
    high = np.searchsorted(b_key * span + b_start, a_key * span + a_end, side="left")
    return ints(low), ints(high)


def among(a: Ints, b: Ints, known_a: Ints, known_b: Ints) -> Bools:
    """Whether each pair (a, b) is one of the known pairs."""
    if not len(a) or not len(known_a):
        return np.zeros(len(a), bool)
    span = int(max(b.max(), known_b.max())) + 1
    known, wanted = distinct(known_a * span + known_b), a * span + b
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.asarray(known[at] == wanted)
