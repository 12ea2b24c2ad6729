"""Shape of the regions that readers (scatter) or writers (gather) of one file touch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import order_by, starts_of
from tracehint.analyzer.patterns.prepare import Read, Wrote, spans_of
from tracehint.analyzer.patterns.rows import UNKNOWN, Bools, Groups, Ints, Rows, Shapes, Spans

if TYPE_CHECKING:
    from tracehint.analyzer.patterns.ranges import Measured
    from tracehint.analyzer.patterns.segments import Segments

_SHOWN = 16  # shared ranges in the evidence


def shapes(file: Ints, start: Ints, end: Ints, count: int) -> Shapes:
    """The shapes of all files that have a range."""
    order = order_by(file, start, end)
    file, start, length = file[order], start[order], (end - start)[order]
    by_file = Groups(file, count)
    step = np.zeros(len(file), np.int64)
    step[1:] = start[1:] - start[:-1]
    inner = np.ones(len(file), bool)
    inner[by_file.first] = False
    steps = Groups(file[inner], count)
    at = by_file.at
    bits = by_file.reduce(np.bitwise_or, start, 0)[at]
    shortest, longest = by_file.low(length)[at], by_file.high(length)[at]
    even = (steps.low(step[inner]) == steps.high(step[inner]))[at]
    return Shapes(
        at,
        by_file.size[at],
        _mean(by_file, length)[at],
        shortest,
        longest,
        np.where(steps.size > 0, _mean(steps, step[inner]), UNKNOWN)[at],
        (shortest == longest) & even,
        np.where(bits > 0, bits & -bits, UNKNOWN),
    )


def _mean(groups: Groups, values: Ints) -> Ints:
    """Rounded means, halves away from zero."""
    mean = groups.sum(values) / np.maximum(groups.size, 1)
    return np.asarray(np.floor(mean + 0.5), np.int64)


def read_shapes(read: Read, spans: Spans, measured: Measured, scatter: Bools) -> Shapes:
    """What the readers of scatter files read, without the header that is set aside."""
    rows = read.count.take(scatter[read.count.file])
    if not len(rows):
        return Shapes.empty()
    place, start, end = spans_of(rows, spans)
    file = rows.file[place]
    header = measured.header_end[file]
    keep = end > header
    start = np.maximum(start, header)
    return shapes(file[keep], start[keep], end[keep], len(scatter))


def written_shapes(written: Wrote, gather: Bools) -> Shapes:
    """What the owners of gather files wrote."""
    file, _, start, end = written.spans
    keep = gather[file]
    if not keep.any():
        return Shapes.empty()
    return shapes(file[keep], start[keep], end[keep], len(gather))


@dataclass
class SharedBytes(Rows):
    """Bytes of partly shared files that several readers read; `lists` is the place of their
    first ranges in `start` and `end`."""

    file: Ints
    bytes: Ints
    ranges: Ints


def shared(measured: Measured, partly: Bools) -> tuple[SharedBytes, Segments]:
    """Shared segments of partly shared files, and the first of them."""
    part = measured.depth.take(partly[measured.depth.file])
    many = part.deep > 1
    first = starts_of(part.file, many.astype(np.int64))
    if not len(first):
        return SharedBytes.empty(), part
    runs = part.take(first)
    runs.stop = part.stop[np.append(first[1:], len(part)) - 1]
    runs = runs.take(many[first])
    by_file = Groups(runs.file, len(partly))
    at = by_file.at
    nth = np.arange(len(runs)) - np.repeat(by_file.first, by_file.size[at])
    length = by_file.sum(runs.stop - runs.start)[at]
    return SharedBytes(at, length, by_file.size[at]), runs.take(nth < _SHOWN)


def reader_sets(read: Read, count: int) -> Ints:
    """Per file a number that is the same for files that the same tasks read."""
    who = read.count.who.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        who = (who ^ (who >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(Groups(read.count.file, count).sum(who.view(np.int64)), np.int64)
