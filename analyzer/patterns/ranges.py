"""How often each byte was read or written: sweeps over the ends of byte ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by
from tracehint.analyzer.patterns.prepare import Read, Wrote, spans_of
from tracehint.analyzer.patterns.rows import Floats, Groups, Spans
from tracehint.analyzer.patterns.segments import Segments, segments

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.analyzer.patterns.rows import Files


@dataclass
class Measured:
    """Per file: readers `n`, one of them, what they read, and how many read each byte."""

    n: Ints
    reader: Ints
    u: Ints
    m: Floats
    header: Ints
    gaps: Ints
    gap_bytes: Ints
    cover_min: Floats
    cover_mean: Floats
    cover_max: Floats
    odd: Bools  # the readers do not all read the same range
    s: Ints  # size
    header_end: Ints  # of the segments that were set aside
    depth: Segments  # of the odd files, cut at the header; without what was set aside


def measure(read: Read, spans: Spans, files: Files, written: Ints, options: Options) -> Measured:
    """`written` per file: the most bytes that a task wrote, stands for an unknown size."""
    rows, count = read.count, len(files)
    by_file = Groups(rows.file, count)
    n, u_max = by_file.size, by_file.high(rows.u)
    low, high = by_file.low(rows.low), by_file.high(rows.high)
    pieces = (by_file.low(rows.pieces) == 1) & (by_file.high(rows.pieces) == 1)
    same = pieces & (low == by_file.high(rows.low)) & (by_file.low(rows.high) == high)
    same |= (n == 1) | (u_max == 0)
    seen = np.where(high >= 0, high, np.where(u_max >= 0, u_max, written))
    s = np.where(files.size >= 0, files.size, np.maximum(seen, 0))
    limit = np.minimum(options.header_bytes, np.floor(s * options.header_share)).astype(np.int64)
    odd = (n >= 2) & ~same
    reach = np.where(high >= 0, high - low, 0)
    head = np.maximum(0, np.minimum(high, limit) - low)
    header = np.where((n >= 2) & same & (high >= 0) & (head < reach), head, 0)
    known = ~np.isnan(rows.cover)
    sized = by_file.sum(known)
    cover = by_file.sum(np.where(known, rows.cover, 0.0)) / np.maximum(sized, 1)
    found = Measured(
        n,
        by_file.one(rows.who),
        by_file.sum(rows.u),
        n.astype(np.float64),
        header,
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        _or_one(by_file.low(rows.cover, np.nan)),
        np.where(sized > 0, cover, 1.0),
        _or_one(by_file.high(rows.cover, np.nan)),
        odd,
        s,
        np.zeros(count, np.int64),
        Segments.empty(),
    )
    if odd.any():
        _count_readers(found, read, spans, limit, options.header_readers)
    return found


def _or_one(values: Floats) -> Floats:
    return np.where(np.isnan(values), 1.0, values)


def _count_readers(found: Measured, read: Read, spans: Spans, limit: Ints, least: float) -> None:
    """Readers per byte of the odd files, their headers and gaps."""
    rows = read.count.take(found.odd[read.count.file])
    place, start, end = spans_of(rows, spans)
    cut = _cut(segments(rows.file[place], start, end), limit)
    by_file = Groups(cut.file, len(limit))
    length = cut.stop - cut.start
    head = (cut.stop <= limit[cut.file]) & (cut.deep >= (least - 1e-9) * found.n[cut.file])
    covered, moved = by_file.sum(length * (cut.deep > 0)), by_file.sum(length * cut.deep)
    header, twice = by_file.sum(length * head), by_file.sum(length * cut.deep * head)
    at = np.flatnonzero(covered)
    some = header[at] < covered[at]  # else all that anybody read is header
    aside, twice = np.where(some, header[at], 0), np.where(some, twice[at], 0)
    found.header[at] = aside
    found.m[at] = (moved[at] - twice) / (covered[at] - aside)
    gap = cut.deep == 0
    found.gaps, found.gap_bytes = by_file.sum(gap), by_file.sum(length * gap)
    left_out = head & (found.header > 0)[cut.file]
    found.header_end = by_file.high(np.where(left_out, cut.stop, 0), 0)
    found.depth = cut.take(~left_out)


def _cut(rows: Segments, limit: Ints) -> Segments:
    """The segments cut at a place per file, so that each is before or behind it."""
    at = limit[rows.file]
    across = np.flatnonzero((rows.start < at) & (rows.stop > at))
    if not len(across):
        return rows
    both = Segments.joined([rows, rows.take(across)])
    both.stop[across] = at[across]
    both.start[len(rows) :] = at[across]
    return both.take(order_by(both.file, both.start))


def overlap(written: Wrote, owners: Ints) -> Floats:
    """Per file the share of the written bytes that several owners wrote; 0 for one owner.

    `owners` is their number. NaN where nothing is known about what they wrote.
    """
    file, _, start, end = written.spans
    rows = segments(file, start, end)
    by_file = Groups(rows.file, len(owners))
    length = rows.stop - rows.start
    covered = by_file.sum(length * (rows.deep > 0))
    several = by_file.sum(length * (rows.deep > 1))
    share = np.where(covered > 0, several / np.maximum(covered, 1), np.nan)
    return np.where(owners < 2, 0.0, share)
