"""Sets of bytes as sorted, disjoint ranges [a, b): slow and obvious."""

from __future__ import annotations

from collections.abc import Iterable

Range = tuple[int, int]


def union(ranges: Iterable[Range]) -> list[Range]:
    """Return the ranges sorted and disjoint, with touching ones merged."""
    out: list[Range] = []
    for a, b in sorted(r for r in ranges if r[0] < r[1]):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out


def length(ranges: Iterable[Range]) -> int:
    """Return the number of bytes in disjoint ranges."""
    return sum(b - a for a, b in ranges)


def common(one: Iterable[Range], two: Iterable[Range]) -> list[Range]:
    """Return the bytes in both sets."""
    two = list(two)
    return union((max(a, c), min(b, d)) for a, b in one for c, d in two)


def minus(one: Iterable[Range], two: Iterable[Range]) -> list[Range]:
    """Return the bytes in `one` only."""
    left = list(one)
    for c, d in two:
        left = [r for a, b in left for r in ((a, min(b, c)), (max(a, d), b)) if r[0] < r[1]]
    return left
