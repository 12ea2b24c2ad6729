"""Facts of the files of one partition: a pure function from arrays to arrays.

Steps that need other files too (cycles of tasks, groups, chains, costs of groups) follow later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import distinct, order_by, starts_of
from tracehint.analyzer.catalogue import MIN_SHARING
from tracehint.analyzer.dataflow.ranges import among
from tracehint.analyzer.patterns import coverage, prepare
from tracehint.analyzer.patterns import prepare as segments
from tracehint.analyzer.patterns.rows import (
    ROLES,
    UNKNOWN,
    Amounts,
    Bools,
    Facts,
    Floats,
    Groups,
    Handed,
    HeaderReaders,
    Ints,
    KeptEdges,
    Labels,
    Shapes,
    Single,
    TaskRows,
    code,
)

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.analyzer.patterns.coverage import Measured
    from tracehint.analyzer.patterns.partitions import Partition
    from tracehint.analyzer.patterns.prepare import Read, Wrote


_INPUT, _OUTPUT = ROLES.index("input"), ROLES.index("output")


class _Thresholds:
    """Thresholds: `broadcast` is the minimum m of a broadcast; `shared` and `in_regions` mark files
    with several readers, and with several readers that have regions of their own (P61)."""

    def __init__(self, facts: Facts, options: Options) -> None:
        self.slope = max(options.broadcast_slope, 1e-9)
        self.scatter = max(options.scatter_max_m, 1 + 1e-9)
        self.overlap = max(options.gather_max_overlap, 1e-9)
        self.broadcast = 1 + self.slope * (facts.n - 1)
        self.shared = facts.n >= MIN_SHARING
        self.in_regions = self.shared & (facts.m <= self.scatter) & (facts.own_read >= MIN_SHARING)


Rule = Callable[[Facts, _Thresholds], Bools]
Near = Callable[[Facts, _Thresholds], Floats]

# pattern, condition, nearness (None: no threshold decides)
_RULES: tuple[tuple[str, Rule, Near | None], ...] = (
    (
        "broadcast",
        lambda f, t: t.shared & (f.m >= t.broadcast),
        lambda f, t: (f.m - 1) / (2 * t.slope * (f.n - 1)),
    ),
    (
        "scatter",
        lambda f, t: t.in_regions & (f.m < t.broadcast),
        lambda f, t: 1 - 0.5 * (f.m - 1) / (t.scatter - 1),
    ),
    (
        "partly_shared",
        lambda f, t: t.shared & ~t.in_regions & (f.m < t.broadcast),
        lambda f, t: (
            0.5
            + np.minimum(
                np.where(f.own_read >= MIN_SHARING, f.m - t.scatter, np.inf), t.broadcast - f.m
            )
            / np.maximum(t.broadcast - t.scatter, 1e-9)
        ),
    ),
    (
        "gather",
        lambda f, t: (f.own_written >= MIN_SHARING) & (f.overlap <= t.overlap),
        lambda f, t: 1 - 0.5 * f.overlap / t.overlap,
    ),
    ("pipeline", lambda f, _: (f.n == 1) & (f.np == 1) & f.fed, None),
    ("stage_in", lambda f, _: (f.n == 1) & (f.role == _INPUT), None),
    ("stage_out", lambda f, _: f.role == _OUTPUT, None),
)


def label_files(facts: Facts, options: Options) -> Labels:
    """Return the labels of each file; `near` is 0.5 at the threshold and 1 far from it."""
    parts = []
    for pattern, holds, near in _RULES:
        at = np.flatnonzero(facts.labelled & holds(facts, _Thresholds(facts, options)))
        sure = np.ones(len(at))
        if near is not None and len(at):
            some = facts.take(at)
            sure = np.clip(near(some, _Thresholds(some, options)), 0.5, 1)
        none = np.full(len(at), UNKNOWN, np.int64)
        parts.append(Labels(at, np.full(len(at), code(pattern)), none, sure))
    return Labels.concat_parts(parts)


@dataclass
class Losses:
    """Per task the numbers of lost and recorded events of its processes; `some`: known tasks."""

    lost: Floats
    seen: Floats
    some: Bools


@dataclass
class PartitionFacts:
    """Result for one partition; file numbers start at 0 with its first file."""

    facts: Facts
    labels: Labels  # labels that depend on one file only
    links: KeptEdges
    header_readers: HeaderReaders  # in addition to those that the flow has marked
    single: Single
    task_reads: Amounts  # intermediate bytes that each task read
    read_shapes: Shapes
    written_shapes: Shapes
    shared: coverage.SharedBytes
    shared_ranges: segments.Segments
    backward: bool  # an edge points back in time


def find(
    partition: Partition, work: TaskRows, options: Options, losses: Losses | None
) -> PartitionFacts:
    """Compute facts, labels and edges of the partition."""
    wrote = prepare.wrote(partition, work)
    read = prepare.read(partition, wrote.all, work)
    files, handed = partition.files, partition.handed
    count = len(files)
    written = Groups(wrote.all.file, count).high(wrote.all.unique, 0)
    read, measured = _measure_readers(partition, read, written, options)
    owners = Groups(wrote.owners.file, count)
    labelled = (files.role >= 0) & (files.role < ROLES.index("scratch"))
    single, fed = _find_single_readers(handed, measured, owners, wrote, labelled)
    seen = _Measurements(partition, work, wrote, read, measured, owners, losses)
    facts = _facts(seen, labelled, fed, options)
    found = label_files(facts, options)
    has = np.zeros((3, count), bool)
    for i, pattern in enumerate(("scatter", "gather", "partly_shared")):
        has[i, found.file[found.pattern == code(pattern)]] = True
    if has[0].any():
        facts.reader_set = coverage.reader_sets(read, count)
    shared, shown = coverage.find_shared_segments(measured, has[2])
    return PartitionFacts(
        facts,
        found,
        _keep_edges(handed, read),
        _header_readers(read),
        single,
        _task_reads(read, handed),
        coverage.read_shapes(read, partition.read, measured, has[0]),
        coverage.written_shapes(wrote, has[1]),
        shared,
        shown,
        _has_backward_edge(handed, work),
    )


@dataclass(frozen=True)
class _Measurements:
    """Measurements of a partition from which the facts of its files are computed."""

    partition: Partition
    work: TaskRows
    wrote: Wrote
    read: Read
    measured: Measured
    owners: Groups
    losses: Losses | None


def _facts(seen: _Measurements, labelled: Bools, fed: Bools, options: Options) -> Facts:
    """Compute the facts of each file, without `reader_set`."""
    wrote, read, measured, owners = seen.wrote, seen.read, seen.measured, seen.owners
    files, count = seen.partition.files, len(seen.partition.files)
    writing, appended = coverage.writers(wrote, seen.work, owners.size)
    overlap, own_written = coverage.overlap(wrote, owners.size)
    return Facts(
        labelled,
        files.role.astype(np.int32),
        measured.s,
        measured.n,
        measured.u,
        measured.m,
        measured.header,
        measured.gaps,
        measured.gap_bytes,
        measured.cover_min,
        measured.cover_mean,
        measured.cover_max,
        coverage.readers(read.count, seen.work, measured.n),
        owners.size,
        owners.one(wrote.owners.who),
        owners.high(wrote.owners.owned, 0),
        owners.sum(wrote.owners.owned),
        overlap,
        measured.own_regions,
        own_written,
        writing,
        appended,
        read.looked.readers,
        read.looked.peeks,
        read.looked.decides,
        _near_peek(read, measured.s, options),
        _share_ordered(seen.partition.handed, count),
        _share_not_lost(wrote, read, seen.losses, count),
        np.where(np.isnan(files.exact), 1.0, files.exact),
        fed,
        read.back,
        np.zeros(count, np.int64),
    )


def _measure_readers(
    partition: Partition, read: Read, written: Ints, options: Options
) -> tuple[Read, Measured]:
    """Measure the readers that count. A reader that read only the shared header is a header reader:
    it is set aside, and the others are measured again without it."""
    measured = coverage.measure(read, partition.read, partition.files, written, options)
    aside = coverage.only_header(measured, read.count)
    if aside.any():
        read = read.set_aside(aside)
        measured = coverage.measure(read, partition.read, partition.files, written, options)
    return read, measured


def _has_backward_edge(handed: Handed, work: TaskRows) -> bool:
    """Whether an edge points back in time."""
    begin, end = work.start[handed.producer], work.start[handed.consumer]
    return bool(((begin > end) | ((begin == end) & (handed.producer > handed.consumer))).any())


def _find_single_readers(
    handed: Handed, measured: Measured, owners: Groups, wrote: Wrote, labelled: Bools
) -> tuple[Single, Bools]:
    """Return files with one reader, one row per task that feeds it; and a mask of these files."""
    fits = (measured.n == 1)[handed.file] & (measured.reader[handed.file] == handed.consumer)
    rows = handed.take(fits)
    rows = rows.take(order_by(rows.file, rows.producer))
    first = starts_of(rows.file, rows.producer)
    amount = np.add.reduceat(rows.bytes, first) if len(first) else rows.bytes
    rows = rows.take(first)
    fed = np.zeros(len(labelled), bool)
    fed[rows.file] = True
    alone = (owners.size == 1)[rows.file] & (
        owners.one(wrote.owners.who)[rows.file] == rows.producer
    )
    single = Single(rows.file, rows.producer, rows.consumer, measured.u[rows.file], amount, alone)
    return single.take(labelled[rows.file]), fed


def _near_peek(read: Read, s: Ints, options: Options) -> Floats:
    """Return the factor for readers near the header read threshold, for files with header reads:
    0.5 for a reader at the threshold, 1 at half or at twice of it."""
    near = np.ones(len(s))
    wanted = (read.looked.readers >= MIN_SHARING) & (read.looked.peeks > 0)
    if not wanted.any():
        return near
    rows = read.all.take(wanted[read.all.file])
    size = s[rows.file]
    share = np.where(size > 0, rows.u / np.maximum(size, 1), 1.0)
    share = np.where(np.isnan(rows.cover), share, rows.cover)
    ratio = np.maximum(share / max(options.peek_share, 1e-9), rows.u / max(options.peek_bytes, 1))
    sure = np.where(ratio < 1, 1.5 - ratio, 0.5 * ratio)
    sure = np.where((ratio <= 0.5) | (ratio >= 2), 1.0, sure)
    return np.asarray(Groups(rows.file, len(s)).low(sure, 1.0))


def _share_ordered(handed: Handed, count: int) -> Floats:
    unsure = handed.file[handed.uncertain]
    if not len(unsure):
        return np.ones(count)
    edges = np.bincount(handed.file, minlength=count)
    return np.asarray(1 - 0.5 * (np.bincount(unsure, minlength=count) / np.maximum(edges, 1)))


def _share_not_lost(wrote: Wrote, read: Read, losses: Losses | None, count: int) -> Floats:
    """Return per file the share of events not lost, over the tasks that wrote or read it."""
    if losses is None:
        return np.ones(count)
    file = np.concatenate([wrote.all.file, read.all.file])
    who = np.concatenate([wrote.all.who, read.all.who])
    pairs = distinct(file * len(losses.some) + who)
    file, who = np.divmod(pairs, len(losses.some))
    known = losses.some[who]
    file, who = file[known], who[known]
    lost = np.bincount(file, losses.lost[who], count)
    every = np.bincount(file, losses.lost[who] + losses.seen[who], count)
    kept = 1 - lost / np.where(every > 0, every, 1)
    return np.asarray(np.clip(np.where(every > 0, kept, 1.0), 0, 1))


def _keep_edges(handed: Handed, read: Read) -> KeptEdges:
    aside = np.zeros(len(handed), bool)
    if read.aside.any():
        rows = read.all.take(read.aside)
        aside = among(handed.file, handed.consumer, rows.file, rows.who)
    file, producer, consumer = (
        end.astype(np.int32) for end in (handed.file, handed.producer, handed.consumer)
    )
    return KeptEdges(handed.edge, file, producer, consumer, handed.uncertain, aside)


def _header_readers(read: Read) -> HeaderReaders:
    rows = read.all.take(read.aside & ~read.all.peek)
    return HeaderReaders(rows.file, rows.who)


def _task_reads(read: Read, handed: Handed) -> Amounts:
    """Return the bytes that each task read from files that other tasks produced."""
    rows = read.all
    rows = rows.take(among(rows.file, rows.who, handed.file, handed.consumer))
    order = order_by(rows.who)
    who = rows.who[order]
    first = starts_of(who)
    return Amounts(who[first], np.add.reduceat(rows.u[order], first) if len(first) else first)
