"""Partitions of whole files: slices of the flow's Arrow tables, converted to arrays.

Tables of the flow are sorted by file and are sliced in place; only the current partition is
converted to arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from tracehint.analyzer.arrays import column, distinct, floats, in_order, ints, order_by
from tracehint.analyzer.patterns.rows import (
    ROLES,
    UNKNOWN,
    Bools,
    Files,
    Handed,
    Ints,
    Readers,
    Spans,
    TaskRows,
    Writers,
)

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 17  # target number of rows per table in a partition
_Users = TypeVar("_Users", Readers, Writers)
_PARTS = ("producers", "consumers", "edges")


class FlowTables(Protocol):
    """The tables of analyzer.model that `label` reads."""

    files: pa.Table
    producers: pa.Table
    consumers: pa.Table
    edges: pa.Table


@dataclass
class Partition:
    """Consecutive files, starting with number `low`, and their rows. `who` is a single attempt in
    writers and readers, without engines and superseded writers; rows are sorted by (file, who)."""

    low: int
    files: Files
    writers: Writers
    written: Spans
    readers: Readers
    read: Spans
    handed: Handed


class Tables:
    """The tables of a flow, each sorted by file."""

    def __init__(self, flow: FlowTables, work: TaskRows) -> None:
        self.files = in_order(flow.files, "file")
        self.ids = column(self.files, "file")
        self.work = work
        self.parts = {name: in_order(getattr(flow, name), "file") for name in _PARTS}
        self.of_row = {name: column(table, "file") for name, table in self.parts.items()}

    def bounds(self, rows: int = ROWS) -> list[tuple[int, int]]:
        """First file and one past the last file of each partition."""
        count = len(self.ids)
        if not count:
            return [(0, 0)]
        cuts = [np.searchsorted(self.ids, file[rows::rows]) for file in self.of_row.values()]
        at = distinct(np.concatenate([np.arange(0, count, rows), *cuts]))
        return list(pairwise([*at[at < count].tolist(), count]))

    def partition(self, low: int, high: int) -> Partition:
        """Return the files in [low, high) with their rows."""
        wrote, wrote_file = self._rows("producers", low, high)
        read, read_file = self._rows("consumers", low, high)
        edges, edge_file = self._rows("edges", low, high)
        used = _used_bytes(read)
        written = _spans(wrote, column(wrote, "unique_bytes", null=0))
        spans, pieces = _spans(read, used), _pieces(read)
        return Partition(
            low,
            _files(self.files.slice(low, high - low)),
            _writers(wrote, wrote_file, self.work),
            written,
            _readers(read, read_file, used, pieces, self.work),
            spans,
            _handed_edges(edges, edge_file, self.work),
        )

    def _rows(self, name: str, low: int, high: int) -> tuple[pa.Table, Ints]:
        """Return the rows of these files, and the index of each row's file in the partition."""
        file = self.of_row[name]
        if low == high:
            return self.parts[name].slice(0, 0), file[:0]
        ends = [self.ids[low], self.ids[high - 1] + 1]
        first, end = np.searchsorted(file, ends).tolist()
        place = dense(self.ids[low:high], file[first:end])
        return self.parts[name].slice(first, end - first), place


def dense(ids: Ints, wanted: Ints) -> Ints:
    """Return the index of each wanted id in the sorted `ids`; UNKNOWN if it is absent."""
    if not len(ids) or not len(wanted):
        return np.full(len(wanted), UNKNOWN, np.int64)
    low, high = int(ids[0]), int(ids[-1])
    if high - low + 1 == len(ids):
        return np.where((wanted >= low) & (wanted <= high), wanted - low, UNKNOWN)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, UNKNOWN)


def _files(files: pa.Table) -> Files:
    import pyarrow as pa
    import pyarrow.compute as pc

    role = pc.fill_null(pc.index_in(files.column("role"), pa.array(ROLES)), UNKNOWN).to_numpy()
    return Files(ints(role), column(files, "size_bytes"), floats(files, "exact_share"))


def _used_bytes(rows: pa.Table) -> Ints:
    """Return the unique bytes of each row, or its moved bytes where the unique ones are unknown."""
    unique = column(rows, "unique_bytes")
    return unique if (unique >= 0).all() else np.where(unique < 0, column(rows, "bytes", 0), unique)


def _writers(rows: pa.Table, file: Ints, work: TaskRows) -> Writers:
    unique, owned = _used_bytes(rows), column(rows, "owned_bytes")
    task = dense(work.ids, column(rows, "task"))
    found = Writers(
        file,
        task,
        np.where(owned < 0, unique, owned),
        unique,
        floats(rows, "first_s"),
        floats(rows, "last_s"),
        np.arange(len(file)),
    )
    keep = (file >= 0) & (task >= 0) & (column(rows, "superseded") != 1)
    return _sort_users(found, keep & ~work.engine[task])


def _readers(rows: pa.Table, file: Ints, used: Ints, pieces: Pieces, work: TaskRows) -> Readers:
    task = dense(work.ids, column(rows, "task"))
    found = Readers(
        file,
        task,
        used,
        floats(rows, "cover"),
        column(rows, "peek") == 1,
        *pieces,
        np.arange(len(file)),
    )
    return _sort_users(found, (file >= 0) & (task >= 0) & ~work.engine[task])


def _sort_users(rows: _Users, keep: Bools) -> _Users:
    """Return the rows to keep, sorted by (file, who)."""
    rows = rows if keep.all() else rows.take(keep)
    order = order_by(rows.file, rows.who)
    return rows if np.all(order[1:] > order[:-1]) else rows.take(order)


def _handed_edges(rows: pa.Table, file: Ints, work: TaskRows) -> Handed:
    import pyarrow.compute as pc

    producer, consumer = (dense(work.ids, column(rows, end)) for end in ("producer", "consumer"))
    keep = (file >= 0) & (producer >= 0) & (consumer >= 0)
    keep &= ~work.engine[producer] & ~work.engine[consumer]
    producer, consumer = work.who[producer], work.who[consumer]
    keep &= producer != consumer
    data = pc.fill_null(pc.equal(rows.column("via"), "data"), True).to_numpy()
    uncertain = pc.fill_null(pc.equal(rows.column("order"), "uncertain"), False).to_numpy()
    found = Handed(
        column(rows, "edge"),
        file,
        producer,
        consumer,
        column(rows, "bytes", null=0),
        data,
        uncertain,
    )
    return found if keep.all() else found.take(keep)


def _lists(rows: pa.Table) -> tuple[Ints, Ints, Ints]:
    """Offsets, starts and ends of the column `ranges`."""
    import pyarrow as pa

    from tracehint.analyzer.model import PRODUCERS

    chunks = rows.column("ranges").chunks
    lists = (
        chunks[0]
        if len(chunks) == 1
        else pa.concat_arrays(chunks or [pa.array([], PRODUCERS.field("ranges").type)])
    )
    flat = lists.values.flatten().to_numpy()
    return lists.offsets.to_numpy(), flat[0::2], flat[1::2]


def _spans(rows: pa.Table, used: Ints) -> Spans:
    offsets, start, end = _lists(rows)
    size = np.diff(offsets)
    bare = (size == 0) & (used > 0)
    if not bare.any():
        return Spans(offsets, start, end)
    first, last = int(offsets[0]), int(offsets[-1])
    start, end, place = start[first:last], end[first:last], offsets[:-1][bare] - first
    number = np.append(0, np.cumsum(size + bare))
    return Spans(number, np.insert(start, place, 0), np.insert(end, place, used[bare]))


Pieces = tuple[Ints, Ints, Ints]


def _pieces(rows: pa.Table) -> Pieces:
    """Return per row the number of ranges, the start of the first and the end of the last."""
    offsets, start, end = _lists(rows)
    size = np.diff(offsets).astype(np.int64)
    low, high = np.full(len(size), UNKNOWN, np.int64), np.full(len(size), UNKNOWN, np.int64)
    some = np.flatnonzero(size)
    low[some], high[some] = start[offsets[some]], end[offsets[some + 1] - 1]
    return size, low, high
