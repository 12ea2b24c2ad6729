"""Writers and readers of a partition that count (docs/patterns.md, "Who counts")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.dataflow.ranges import among, union
from tracehint.analyzer.patterns.partitions import Partition
from tracehint.analyzer.patterns.rows import (
    UNKNOWN,
    Groups,
    Handed,
    Readers,
    Rows,
    Spans,
    TaskRows,
    Writers,
)


@dataclass
class Segments(Rows):
    """Sorted segments of each file, from the first to the last accessed byte. `deep`: number of
    ranges that cover the segment (0: gap); `weight`: sum of the weights of these ranges."""

    file: Ints
    start: Ints
    stop: Ints
    deep: Ints
    weight: Ints


def segments(file: Ints, start: Ints, end: Ints, weight: Ints | Bools | None = None) -> Segments:
    """Cut files where a range begins or ends. `weight`: one per range; 1 if not given."""
    files, place = np.concatenate([file, file]), np.concatenate([start, end])
    order = order_by(files, place)
    files, place = files[order], place[order]
    step = np.where(order < len(file), 1, -1)
    first = starts_of(files, place)
    if not len(first):
        return Segments.empty()
    deep = np.cumsum(np.add.reduceat(step, first))  # adds up to 0 in each file
    total = deep
    if weight is not None:
        total = np.cumsum(np.add.reduceat(step * weight[order % len(file)], first))
    files, place = files[first], place[first]
    at = np.flatnonzero(files[1:] == files[:-1])
    return Segments(files[at], place[at], place[at + 1], deep[at], total[at])


def own_regions(rows: Segments, file: Ints, used: Ints, count: int) -> Ints:
    """Count per file the users with a region of their own: no other user accessed at least half of
    the bytes that they used (docs/patterns.md, P61).

    `file` and `used` (bytes) have one row per user. The weight of a range is its user's row, so
    the weight of a segment with one user is that user.
    """
    one = rows.deep == 1
    own = np.bincount(rows.weight[one], (rows.stop - rows.start)[one], len(file))
    return np.bincount(file[(own > 0) & (2 * own >= used)], minlength=count)


@dataclass
class Wrote:
    """`all` writers, one row per task and file; `owners`: writers that own bytes, or all writers of
    a file where no owned byte is known. `spans`: (file, who, start, end) of the owners of files
    with several owners, each byte once per owner."""

    all: Writers
    owners: Writers
    spans: tuple[Ints, Ints, Ints, Ints]


@dataclass
class Looked:
    """Header reads per file: numbers of readers and header reads, and whether the latter count."""

    readers: Ints
    peeks: Ints
    decides: Bools


@dataclass
class Read:
    """`all` readers, a mask of those set `aside`, and those that `count`; `back`: files that one
    task both wrote and read."""

    all: Readers
    aside: Bools
    count: Readers
    looked: Looked
    back: Bools

    def set_aside(self, more: Bools) -> Read:
        """Return a copy with the marked rows of `count` set aside as header reads."""
        aside = self.aside.copy()
        aside[np.flatnonzero(~aside)[more]] = True
        count = len(self.looked.readers)
        peeks = np.bincount(self.all.file[self.all.peek | aside], minlength=count)
        readers = np.where(peeks > 0, np.bincount(self.all.file, minlength=count), 0)
        looked = Looked(readers, peeks, self.looked.decides)
        return Read(self.all, aside, self.count.take(~more), looked, self.back)


def wrote(partition: Partition, work: TaskRows) -> Wrote:
    """Return the writers; attempts of one task are merged."""
    single = partition.writers
    everybody = _join_attempts(single, work) if work.retried else single
    count = len(partition.files)
    some = everybody.owned > 0
    owned = np.zeros(count, bool)
    owned[everybody.file[some]] = True
    keep = some | ~owned[everybody.file]
    owners = everybody if keep.all() else everybody.take(keep)
    several = np.bincount(owners.file, minlength=count) > 1
    return Wrote(everybody, owners, _written_by_owner(partition, owners, several, work))


def _join_attempts(single: Writers, work: TaskRows) -> Writers:
    """Merge the attempts: one row per file and task."""
    who = work.who[single.who]
    order = order_by(single.file, who)
    rows, who = single.take(order), who[order]
    first = starts_of(rows.file, who)
    if not len(first):
        return rows
    return Writers(
        rows.file[first],
        who[first],
        np.add.reduceat(rows.owned, first),
        np.add.reduceat(rows.unique, first),
        np.fmin.reduceat(rows.first, first),
        np.fmax.reduceat(rows.last, first),
        rows.row[first],
    )


def _written_by_owner(
    partition: Partition, owners: Writers, several: Bools, work: TaskRows
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the ranges that each owner of these files wrote, without overlaps of attempts."""
    rows = partition.writers.take(several[partition.writers.file])
    who = work.who[rows.who]
    if not len(rows):
        return rows.file, rows.file, rows.file, rows.file
    keep = among(rows.file, who, owners.file, owners.who)
    rows, who = rows.take(keep), who[keep]
    place, start, end = partition.written.of(rows.row)
    file, who = rows.file[place], who[place]
    if not work.retried:
        return file, who, start, end
    order = order_by(file, who, start)
    file, who, start, end = file[order], who[order], start[order], end[order]
    first = starts_of(file, who)
    number = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(file))))
    group, start, end = union(number, start, end)
    return file[first][group], who[first][group], start, end


def read(partition: Partition, writers: Writers, work: TaskRows) -> Read:
    """Return the readers: without tasks that only read back their own bytes, and with tasks that
    got the bytes through an engine's copy, which may have an edge but no row."""
    count, handed = len(partition.files), partition.handed
    single = _attempts_that_count(partition.readers, work) if work.retried else partition.readers
    both = among(single.file, single.who, writers.file, writers.who)
    own = np.flatnonzero(both)
    fed = among(single.file[own], single.who[own], handed.file, handed.consumer)
    back = np.zeros(count, bool)
    back[single.file[own[fed]]] = True
    more = _find_copy_readers(single, handed)
    if not fed.all():
        single = single.take(np.delete(np.arange(len(single)), own[~fed]))
    if len(more):
        back[more.file[among(more.file, more.who, writers.file, writers.who)]] = True
        single = Readers.concat_parts([single, more])
        single = single.take(order_by(single.file, single.who))
    looked = _count_peeks(single, partition.read, count)
    aside = single.peek & ~looked.decides[single.file]
    return Read(single, aside, single.take(~aside) if aside.any() else single, looked, back)


def _attempts_that_count(single: Readers, work: TaskRows) -> Readers:
    """Return per file and task the last attempt that read the file."""
    who, attempt = work.who[single.who], work.attempt[single.who]
    order = order_by(single.file, who, attempt)
    first = starts_of(single.file[order], who[order])
    last = np.append(first[1:], len(order))[: len(first)] - 1
    found = single.take(order[last])
    found.who = who[order[last]]
    return found


def _find_copy_readers(single: Readers, handed: Handed) -> Readers:
    """Return the consumers of edges without data (copies, declarations) that have no row."""
    other = handed.take(~handed.data)
    if not len(other):
        return Readers.empty()
    other = other.take(~among(other.file, other.consumer, single.file, single.who))
    other = other.take(order_by(other.file, other.consumer, -other.bytes))
    other = other.take(starts_of(other.file, other.consumer))
    no = np.zeros(len(other), np.int64)
    return Readers(
        other.file,
        other.consumer,
        other.bytes,
        np.full(len(other), np.nan),
        no != 0,
        no,
        no + UNKNOWN,
        no + UNKNOWN,
        no + UNKNOWN,
    )


def _count_peeks(rows: Readers, spans: Spans, count: int) -> Looked:
    """Count header reads; they decide if all readers are such, or read most bytes that are read."""
    none = np.zeros(count, np.int64)
    if not rows.peek.any():
        return Looked(none, none, none != 0)
    peeks = np.bincount(rows.file[rows.peek], minlength=count)
    readers = np.where(peeks > 0, np.bincount(rows.file, minlength=count), 0)
    decides = (peeks == readers) & (peeks > 0)
    by_file = Groups(rows.file, count)
    peeked = by_file.sum(np.where(rows.peek, rows.u, 0))
    most = by_file.high(np.where(rows.peek, 0, rows.u), 0)
    mixed = (peeks > 0) & (peeks < readers) & (peeked > most)
    if mixed.any():
        some = rows.take(mixed[rows.file])
        place, start, end = spans_of(some, spans)
        found = segments(some.file[place], start, end, ~some.peek[place])
        length = found.stop - found.start
        only = np.bincount(found.file, length * ((found.weight == 0) & (found.deep > 0)), count)
        decides |= mixed & (only > np.bincount(found.file, length * (found.weight > 0), count))
    return Looked(readers, peeks, decides)


def spans_of(rows: Readers, spans: Spans) -> tuple[Ints, Ints, Ints]:
    """Return (index into `rows`, start, end) of the ranges read; [0, u) where they are unknown."""
    known = np.flatnonzero(rows.row >= 0)
    place, start, end = spans.of(rows.row[known])
    bare = np.flatnonzero((rows.row < 0) & (rows.u > 0))
    if not len(bare):
        return known[place], start, end
    return (
        np.concatenate([known[place], bare]),
        np.concatenate([start, np.zeros(len(bare), np.int64)]),
        np.concatenate([end, rows.u[bare]]),
    )
