"""Readers and writers per byte, regions of readers and writers, concurrency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, mix_bits, order_by, starts_of
from tracehint.analyzer.catalogue import MIN_SHARING
from tracehint.analyzer.patterns.prepare import (
    Read,
    Segments,
    Wrote,
    own_regions,
    segments,
    spans_of,
)
from tracehint.analyzer.patterns.rows import UNKNOWN, Floats, Groups, Rows, Shapes, Spans

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.analyzer.patterns.rows import Files, Readers, TaskRows


@dataclass
class Measured:
    """Per file: the number of readers, their bytes, and the number of readers per byte."""

    n: Ints  # readers that count
    reader: Ints  # one of them
    u: Ints  # bytes that they read, summed over the readers
    m: Floats  # mean number of readers per byte that was read
    header: Ints  # bytes of the shared header that was set aside
    gaps: Ints
    gap_bytes: Ints
    cover_min: Floats
    cover_mean: Floats
    cover_max: Floats
    odd: Bools  # several readers, not all of the same single range
    s: Ints  # size
    header_end: Ints  # end of the header segments that were set aside
    own_regions: Ints  # readers of odd files with a region of their own
    depth: Segments  # segments of the odd files, cut at the header limit, without the header


def measure(read: Read, spans: Spans, files: Files, written: Ints, options: Options) -> Measured:
    """Measure the readers of each file. `written`: the most bytes that one task wrote to each file,
    used as its size where neither the size nor any read is known."""
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
    several = n >= MIN_SHARING
    odd = several & ~same
    reach = np.where(high >= 0, high - low, 0)
    head = np.maximum(0, np.minimum(high, limit) - low)
    header = np.where(several & same & (high >= 0) & (head < reach), head, 0)
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
        _fill_with_one(by_file.low(rows.cover, np.nan)),
        np.where(sized > 0, cover, 1.0),
        _fill_with_one(by_file.high(rows.cover, np.nan)),
        odd,
        s,
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        Segments.empty(),
    )
    if odd.any():
        _count_readers(found, read, spans, limit, options.header_readers)
    return found


def _fill_with_one(values: Floats) -> Floats:
    return np.where(np.isnan(values), 1.0, values)


def _count_readers(found: Measured, read: Read, spans: Spans, limit: Ints, least: float) -> None:
    """Set readers per byte, header and gaps of odd files; `least`: share of readers of a header."""
    rows = read.count.take(found.odd[read.count.file])
    place, start, end = spans_of(rows, spans)
    cut = _cut_segments(segments(rows.file[place], start, end, place), limit)
    by_file = Groups(cut.file, len(limit))
    length = cut.stop - cut.start
    head = (cut.stop <= limit[cut.file]) & (cut.deep >= (least - 1e-9) * found.n[cut.file])
    covered, moved = by_file.sum(length * (cut.deep > 0)), by_file.sum(length * cut.deep)
    header, twice = by_file.sum(length * head), by_file.sum(length * cut.deep * head)
    at = np.flatnonzero(covered)
    some = header[at] < covered[at]  # otherwise all bytes that were read are header
    aside, twice = np.where(some, header[at], 0), np.where(some, twice[at], 0)
    found.header[at] = aside
    found.m[at] = (moved[at] - twice) / (covered[at] - aside)
    gap = cut.deep == 0
    found.gaps, found.gap_bytes = by_file.sum(gap), by_file.sum(length * gap)
    left_out = head & (found.header > 0)[cut.file]
    found.header_end = by_file.high(np.where(left_out, cut.stop, 0), 0)
    found.depth = cut.take(~left_out)
    beyond = found.header_end[rows.file[place]]
    used = np.bincount(place, np.maximum(end, beyond) - np.maximum(start, beyond), len(rows))
    behind = cut.take(cut.start >= found.header_end[cut.file])
    found.own_regions = own_regions(behind, rows.file, used, len(limit))


def only_header(measured: Measured, rows: Readers) -> Bools:
    """Mark the readers that read nothing behind the shared header that was set aside."""
    high = np.where(rows.high >= 0, rows.high, rows.u)
    return np.asarray((high > 0) & (high <= measured.header_end[rows.file]))


def _cut_segments(rows: Segments, limit: Ints) -> Segments:
    """Split segments at one limit per file, so that each is before or behind it."""
    at = limit[rows.file]
    across = np.flatnonzero((rows.start < at) & (rows.stop > at))
    if not len(across):
        return rows
    both = Segments.concat_parts([rows, rows.take(across)])
    both.stop[across] = at[across]
    both.start[len(rows) :] = at[across]
    return both.take(order_by(both.file, both.start))


def overlap(written: Wrote, owners: Ints) -> tuple[Floats, Ints]:
    """Return per file the share of the written bytes that several owners wrote (0 for one owner),
    and the number of owners with a region of their own.

    `owners` is the number of owners per file. The share is NaN where the ranges are unknown.
    """
    file, who, start, end = written.spans
    first = starts_of(file, who)
    user = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(file))))
    rows = segments(file, start, end, user)
    by_file = Groups(rows.file, len(owners))
    length = rows.stop - rows.start
    covered = by_file.sum(length * (rows.deep > 0))
    several = by_file.sum(length * (rows.deep > 1))
    share = np.where(covered > 0, several / np.maximum(covered, 1), np.nan)
    own = own_regions(rows, file[first], np.bincount(user, end - start), len(owners))
    return np.where(owners < MIN_SHARING, 0.0, share), own


_MAX_SHOWN = 16  # maximum number of shared ranges in the evidence


def shapes(file: Ints, start: Ints, end: Ints, count: int) -> Shapes:
    """Return the region shapes of all files that have a range."""
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
    """Return the means per group, rounded to integers (halves up)."""
    mean = groups.sum(values) / np.maximum(groups.size, 1)
    return np.asarray(np.floor(mean + 0.5), np.int64)


def read_shapes(read: Read, spans: Spans, measured: Measured, scatter: Bools) -> Shapes:
    """Return the shapes of the ranges read of scatter files, without the header set aside."""
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
    """Return the shapes of the ranges that the owners of gather files wrote."""
    file, _, start, end = written.spans
    keep = gather[file]
    if not keep.any():
        return Shapes.empty()
    return shapes(file[keep], start[keep], end[keep], len(gather))


@dataclass
class SharedBytes(Rows):
    """Bytes of partly shared files that several readers read, and the number of their ranges."""

    file: Ints
    bytes: Ints
    ranges: Ints


def find_shared_segments(measured: Measured, partly: Bools) -> tuple[SharedBytes, Segments]:
    """Return the shared bytes of partly shared files, and the first shared ranges of each."""
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
    return SharedBytes(at, length, by_file.size[at]), runs.take(nth < _MAX_SHOWN)


def reader_sets(read: Read, count: int) -> Ints:
    """Return a number per file that is equal for files with the same readers (a sum of hashes)."""
    who = read.count.who.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mix_bits(who)
    return np.asarray(Groups(read.count.file, count).sum(who.view(np.int64)), np.int64)


def ranks(start: Floats, end: Floats, *, starts_first: bool) -> tuple[Ints, Ints]:
    """Return integers that sort like the times; at equal times starts (or ends) sort first."""
    first, second = (start, end) if starts_first else (end, start)
    order = np.argsort(np.concatenate([first, second]), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    one, two = rank[: len(first)], rank[len(first) :]
    return (one, two) if starts_first else (two, one)


def count_concurrent(file: Ints, start: Ints, end: Ints, count: int) -> Ints:
    """Return the maximum number of concurrent spans per file; `start`, `end`: distinct `ranks`."""
    moments = int(max(start.max(initial=0), end.max(initial=0))) + 1
    # One integer that sorts like (file, moment); the last bit is set when a span begins.
    events = np.concatenate([file, file]) * moments + np.concatenate([start, end])
    events *= 2
    events[: len(file)] += 1
    events.sort()
    deep = np.cumsum((events & 1) * 2 - 1)  # adds up to 0 in each file
    return np.asarray(Groups(events // (2 * moments), count).high(deep, 0), np.int64)


def readers(rows: Readers, work: TaskRows, n: Ints) -> Ints:
    """Return per file the maximum number of readers that could run at once, ends included (>= 1).

    A task could run from the time its inputs were complete (`TaskRows.ready`) to its end. A task
    that only waited for a processor of the recorded machine, or read for microseconds, reads
    concurrently with the other tasks when every task has its own node.
    """
    by_file = Groups(rows.file, len(n))
    latest = by_file.high(work.ready[rows.who], -np.inf)
    together = np.maximum(n, 1)
    mixed = (n >= 2) & (latest > by_file.low(work.end[rows.who], np.inf))
    if mixed.any():
        some = mixed[rows.file]
        file, who = rows.file[some], rows.who[some]
        start, end = ranks(work.ready[who], work.end[who], starts_first=True)
        together = np.where(mixed, count_concurrent(file, start, end, len(n)), together)
    return together


def writers(written: Wrote, work: TaskRows, owners: Ints) -> tuple[Ints, Bools]:
    """Return, per file with several owners, the maximum number of writing tasks that ran at once
    (ends excluded), and whether each writer began where the previous one stopped.

    Task run times count, not write times. Bytes carried over from an earlier version have no times:
    they count as written before all others.
    """
    count = len(owners)
    rows = written.owners.take((owners >= 2)[written.owners.file])
    timed = rows.take(~np.isnan(rows.first))
    first, last = work.start[timed.who], work.end[timed.who]
    first, last = np.where(np.isnan(first), -np.inf, first), np.where(np.isnan(last), np.inf, last)
    by_file = Groups(timed.file, count)
    all_at_once = by_file.high(first, -np.inf) < by_file.low(last, np.inf)
    together = np.maximum(by_file.size * all_at_once, 1)
    mixed = ~all_at_once[timed.file]
    if mixed.any():
        start, end = ranks(first[mixed], last[mixed], starts_first=False)
        together = np.maximum(together, count_concurrent(timed.file[mixed], start, end, count))
    return together, _wrote_in_turn(written, together < 2)


def _wrote_in_turn(written: Wrote, wanted: Bools) -> Bools:
    """Whether the owners wrote adjacent ranges, in the order of their first writes."""
    keep = wanted[written.spans[0]]
    if not keep.any():
        return np.zeros(len(wanted), bool)
    file, who, start, end = (column[keep] for column in written.spans)
    order = order_by(file, who)
    file, who, start, end = file[order], who[order], start[order], end[order]
    group = starts_of(file, who)
    file, who = file[group], who[group]
    low, high = np.minimum.reduceat(start, group), np.maximum.reduceat(end, group)
    rows = written.owners
    span = int(max(who.max(), rows.who.max())) + 1
    when = rows.first[np.searchsorted(rows.file * span + rows.who, file * span + who)]
    order = np.lexsort((low, np.where(np.isnan(when), -np.inf, when), file))
    file, low, high = file[order], low[order], high[order]
    behind = np.ones(len(file), bool)
    behind[1:] = (file[1:] != file[:-1]) | (low[1:] == high[:-1])
    by_file = Groups(file, len(wanted))
    return np.asarray((by_file.size > 0) & (by_file.sum(behind) == by_file.size), bool)
