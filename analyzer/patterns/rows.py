"""Column records that the steps of the labelling exchange: numpy columns, one row per item.

Tasks and files are numbered from 0, by their position in the tables sorted by id. Within a
partition, file numbers start at 0 with the partition's first file.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.arrays import Bools as Bools
from tracehint.analyzer.arrays import Ints as Ints
from tracehint.analyzer.arrays import Shorts as Shorts
from tracehint.analyzer.arrays import concat_numbers, starts_of
from tracehint.analyzer.catalogue import NAMES
from tracehint.analyzer.dataflow.model import UNKNOWN as UNKNOWN
from tracehint.analyzer.dataflow.model import Rows as Rows
from tracehint.analyzer.dataflow.ranges import expand

Floats = npt.NDArray[np.float64]

# Sorted by name: the order of a file's labels in the result.
PATTERNS = tuple(sorted(NAMES))
ROLES = ("input", "intermediate", "output", "scratch", "software")


def code(pattern: str) -> int:
    """Return the index of a pattern in PATTERNS."""
    return PATTERNS.index(pattern)


@dataclass
class TaskRows:
    """Tasks, sorted by id. Unknown end times are infinite. `who` and `engine` have an extra last
    row for unknown tasks."""

    ids: Ints
    who: Ints  # the last attempt of a retried task, else the task itself
    engine: Bools
    attempt: Ints
    start: Floats
    end: Floats
    retried: bool
    ready: Floats  # when its inputs were complete, at most its start (`run_labels.moments`)


@dataclass
class Files(Rows):
    """The files of a partition."""

    role: Ints  # index into ROLES, or UNKNOWN
    size: Ints  # or UNKNOWN
    exact: Floats  # share of the bytes known exactly, NaN: unknown


@dataclass
class Spans:
    """Byte ranges of the rows of a table; row i has the ranges offsets[i] up to offsets[i + 1].

    A row without known ranges has one range instead: [0, number of bytes that it used).
    """

    offsets: Ints
    start: Ints
    end: Ints

    def of(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return (index into `rows`, start, end) of all ranges of these rows."""
        place, at = expand(self.offsets[rows], self.offsets[rows + 1])
        return place, self.start[at], self.end[at]


@dataclass
class Writers(Rows):
    """Writers of files, sorted by (file, who)."""

    file: Ints
    who: Ints
    owned: Ints
    unique: Ints
    first: Floats  # seconds, NaN: unknown
    last: Floats
    row: Ints  # in the partition's ranges


@dataclass
class Readers(Rows):
    """Readers of files, sorted by (file, who)."""

    file: Ints
    who: Ints
    u: Ints  # unique bytes read
    cover: Floats  # share of the file that it read; NaN: unknown
    peek: Bools  # header read
    pieces: Ints  # number of its ranges
    low: Ints  # first byte of the first and end of the last range, UNKNOWN without ranges
    high: Ints
    row: Ints  # in the partition's ranges; UNKNOWN: no ranges


@dataclass
class Handed(Rows):
    """Edges between different tasks, without engines."""

    edge: Ints
    file: Ints
    producer: Ints
    consumer: Ints
    bytes: Ints
    data: Bools  # by recorded data, not through an engine's copy or a declaration
    uncertain: Bools


@dataclass
class KeptEdges(Rows):
    """Columns of the edges that remain in memory for all partitions."""

    edge: Ints
    file: Shorts
    producer: Shorts
    consumer: Shorts
    uncertain: Bools
    aside: Bools  # its reader was set aside as a peek


@dataclass
class Single(Rows):
    """Files with one reader that counts, one row per producer that feeds it."""

    file: Ints
    producer: Ints
    consumer: Ints
    u: Ints  # bytes that the reader read
    fed: Ints  # bytes that the reader got from this producer
    alone: Bools  # the producer is the file's only owner


@dataclass
class HeaderReaders(Rows):
    """Tasks that read only the header of a file, which its other readers also read."""

    file: Ints
    who: Ints


@dataclass
class Amounts(Rows):
    """Bytes per task; a task may occur several times."""

    task: Ints
    bytes: Ints


@dataclass
class Facts(Rows):
    """Numbers that decide the labels of each file. NaN: not defined for this file."""

    labelled: Bools  # can have a label: neither software nor scratch
    role: Shorts
    s: Ints  # size; if unknown, as far as it was read or written
    n: Ints  # readers that count
    u: Ints  # total bytes that they read
    m: Floats  # readers per byte
    header: Ints
    gaps: Ints
    gap_bytes: Ints
    cover_min: Floats
    cover_mean: Floats
    cover_max: Floats
    together: Ints  # maximum number of concurrent readers
    np: Ints  # owners
    writer: Ints  # one of the owners
    owned_max: Ints
    owned: Ints
    overlap: Floats  # share of the written bytes with several writers
    own_read: Ints  # readers with a region of their own
    own_written: Ints  # owners with a region of their own
    writing: Ints  # maximum number of concurrent writers
    appended: Bools  # each writer began where the previous one stopped
    readers: Ints  # all readers of a file with header reads, else 0
    peeks: Ints  # header reads
    decides: Bools  # the header reads count
    near_peek: Floats  # 0.5: a reader is at the header read threshold; 1: none is near it
    ordered: Floats  # 1 - half the share of its edges whose order is uncertain
    kept: Floats  # share of its tasks' events that were not lost
    exact: Floats
    fed: Bools  # its only reader got bytes from a producer
    both_ways: Bools  # a task wrote and read it
    reader_set: Ints  # hash of the set of its readers


@dataclass
class Shapes(Rows):
    """Regions that readers or writers of a file accessed."""

    file: Ints
    regions: Ints
    region_bytes: Ints
    region_min: Ints
    region_max: Ints
    stride: Ints  # UNKNOWN: one region
    regular: Bools
    alignment: Ints  # UNKNOWN: the only start is 0


@dataclass
class Labels(Rows):
    """Labels of files."""

    file: Ints
    pattern: Ints  # index into PATTERNS
    group: Ints  # UNKNOWN: none
    near: Floats  # 0.5 at the deciding threshold, 1 far from it


class Groups:
    """Reductions of rows per key (rows sorted by key, keys below `count`) to `count` values."""

    def __init__(self, key: Ints, count: int) -> None:
        self.count = count
        self.first = starts_of(key)
        self.at = key[self.first]
        self.size = np.zeros(count, np.int64)
        self.size[self.at] = np.diff(np.append(self.first, len(key)))

    def reduce(self, how: np.ufunc, values: npt.NDArray[Any], empty: Any) -> npt.NDArray[Any]:
        """Apply `how` to the values of each key; `empty` for keys without rows."""
        found = np.full(self.count, empty, values.dtype)
        if len(self.first):
            found[self.at] = how.reduceat(values, self.first)
        return found

    def sum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return sums; for booleans, the number of true values."""
        values = values.astype(np.int64) if values.dtype == bool else values
        return self.reduce(np.add, values, 0)

    def low(self, values: npt.NDArray[Any], empty: Any = UNKNOWN) -> npt.NDArray[Any]:
        """Return minima, ignoring NaN."""
        return self.reduce(np.fmin, values, empty)

    def high(self, values: npt.NDArray[Any], empty: Any = UNKNOWN) -> npt.NDArray[Any]:
        """Return maxima, ignoring NaN."""
        return self.reduce(np.fmax, values, empty)

    def one(self, values: npt.NDArray[Any], empty: Any = UNKNOWN) -> npt.NDArray[Any]:
        """Return the value of the first row of each key."""
        found = np.full(self.count, empty, values.dtype)
        found[self.at] = values[self.first]
        return found


AnyRows = TypeVar("AnyRows", bound=Rows)


def concat_rows(parts: list[AnyRows], place: Ints | None = None) -> AnyRows:
    """Concatenate all rows, in order or each at its index in `place`. Consumes the parts: their
    columns are deleted as soon as they are concatenated, to save memory."""
    columns = {}
    for field in fields(parts[0]):
        whole = concat_numbers([getattr(part, field.name) for part in parts])
        for part in parts:
            delattr(part, field.name)
        if place is not None and whole.strides[0]:
            placed = np.empty_like(whole)
            placed[place] = whole
            whole = placed
        columns[field.name] = whole
    return type(parts[0])(**columns)
