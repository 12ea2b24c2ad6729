"""What the steps of the labels hand to each other: numpy columns, one row per thing.

Tasks and files are numbers from 0 here: their places in the tables sorted by id. The files of
one partition count from the partition's first one.
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

# In the order of their names, which is the order of a file's labels in the result.
PATTERNS = tuple(sorted(NAMES))
ROLES = ("input", "intermediate", "output", "scratch", "software")


def code(pattern: str) -> int:
    """The number of a pattern."""
    return PATTERNS.index(pattern)


@dataclass
class TaskRows:
    """The tasks, sorted by id. Unknown ends are infinite. `who` and `engine` have a last row
    for tasks that are not known."""

    ids: Ints
    who: Ints  # the last attempt of a retried task, else the task itself
    engine: Bools
    attempt: Ints
    start: Floats
    end: Floats
    retried: bool
    ready: Floats  # when its inputs were complete, at its start at the latest (ready.py)


@dataclass
class Files(Rows):
    """The files of a partition."""

    role: Ints  # index into ROLES, or UNKNOWN
    size: Ints  # or UNKNOWN
    exact: Floats  # share of the bytes known exactly, NaN: unknown


@dataclass
class Spans:
    """Byte ranges of the rows of a table: those of row i are offsets[i] up to offsets[i + 1].

    Where the ranges of a row are not known its first bytes stand for them, as many as it used.
    """

    offsets: Ints
    start: Ints
    end: Ints

    def of(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """(place in `rows`, start, end) of all ranges of these rows."""
        place, at = expand(self.offsets[rows], self.offsets[rows + 1])
        return place, self.start[at], self.end[at]


@dataclass
class Writers(Rows):
    """Who wrote a file, sorted by (file, who)."""

    file: Ints
    who: Ints
    owned: Ints
    unique: Ints
    first: Floats  # seconds, NaN: unknown
    last: Floats
    row: Ints  # in the partition's ranges


@dataclass
class Readers(Rows):
    """Who read a file, sorted by (file, who)."""

    file: Ints
    who: Ints
    u: Ints  # bytes, each once
    cover: Floats  # NaN: unknown
    peek: Bools
    pieces: Ints  # number of its ranges
    low: Ints  # first byte of the first and end of the last range, UNKNOWN without ranges
    high: Ints
    row: Ints  # in the partition's ranges, UNKNOWN: it has none


@dataclass
class Handed(Rows):
    """Edges between different tasks, engines left out."""

    edge: Ints
    file: Ints
    producer: Ints
    consumer: Ints
    bytes: Ints
    data: Bools  # not by an engine's copy or a declaration
    uncertain: Bools


@dataclass
class KeptEdges(Rows):
    """What is kept of the edges of all partitions."""

    edge: Ints
    file: Shorts
    producer: Shorts
    consumer: Shorts
    uncertain: Bools
    aside: Bools  # its reader was set aside as a peek


@dataclass
class Single(Rows):
    """Files with one reader that counts, once per producer that feeds it."""

    file: Ints
    producer: Ints
    consumer: Ints
    u: Ints  # what the reader read
    fed: Ints  # what the producer handed to it
    alone: Bools  # the producer is the file's only owner


@dataclass
class HeaderReaders(Rows):
    """Tasks that read no more of a file than a header that its other readers read as well."""

    file: Ints
    who: Ints


@dataclass
class Amounts(Rows):
    """Bytes per task; a task may come several times."""

    task: Ints
    bytes: Ints


@dataclass
class Facts(Rows):
    """What decides the labels of each file. NaN: there is no such number."""

    labelled: Bools  # can have a label: neither software nor scratch
    role: Shorts
    s: Ints  # size, or as far as it was read or written
    n: Ints  # readers that count
    u: Ints  # bytes that they read, together
    m: Floats  # readers per byte
    header: Ints
    gaps: Ints
    gap_bytes: Ints
    cover_min: Floats
    cover_mean: Floats
    cover_max: Floats
    together: Ints  # readers at one time
    np: Ints  # owners
    writer: Ints  # one of them
    owned_max: Ints
    owned: Ints
    overlap: Floats  # share of the written bytes with several writers
    own_read: Ints  # readers with a region of their own
    own_written: Ints  # owners with one
    writing: Ints  # writers at one time
    appended: Bools  # each began where the one before stopped
    readers: Ints  # all of a file with peeks, else 0
    peeks: Ints
    decides: Bools  # the peeks count
    near_peek: Floats
    ordered: Floats  # 1 - half the share of its edges whose order is uncertain
    kept: Floats  # share of its tasks' events that were not lost
    exact: Floats
    fed: Bools  # somebody handed bytes to its only reader
    both_ways: Bools  # a task wrote and read it
    reader_set: Ints  # a number that says who read it


@dataclass
class Shapes(Rows):
    """Regions that readers or writers of a file touched."""

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
    near: Floats  # 0.5 at the threshold, 1 far from it


class Groups:
    """Rows sorted by a number below `count`: reductions per number, into arrays of `count`."""

    def __init__(self, key: Ints, count: int) -> None:
        self.count = count
        self.first = starts_of(key)
        self.at = key[self.first]
        self.size = np.zeros(count, np.int64)
        self.size[self.at] = np.diff(np.append(self.first, len(key)))

    def reduce(self, how: np.ufunc, values: npt.NDArray[Any], empty: Any) -> npt.NDArray[Any]:
        """`how` over the values of each number; `empty` where there are no rows."""
        found = np.full(self.count, empty, values.dtype)
        if len(self.first):
            found[self.at] = how.reduceat(values, self.first)
        return found

    def sum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sums; of flags, how many are set."""
        values = values.astype(np.int64) if values.dtype == bool else values
        return self.reduce(np.add, values, 0)

    def low(self, values: npt.NDArray[Any], empty: Any = UNKNOWN) -> npt.NDArray[Any]:
        """Minima; NaN does not count."""
        return self.reduce(np.fmin, values, empty)

    def high(self, values: npt.NDArray[Any], empty: Any = UNKNOWN) -> npt.NDArray[Any]:
        """Maxima; NaN does not count."""
        return self.reduce(np.fmax, values, empty)

    def any(self, flags: Bools) -> Bools:
        """Whether a flag is set."""
        return np.asarray(self.reduce(np.logical_or, flags, False))

    def one(self, values: npt.NDArray[Any], empty: Any = UNKNOWN) -> npt.NDArray[Any]:
        """The value of the first row."""
        found = np.full(self.count, empty, values.dtype)
        found[self.at] = values[self.first]
        return found


AnyRows = TypeVar("AnyRows", bound=Rows)


def concat_rows(parts: list[AnyRows], place: Ints | None = None) -> AnyRows:
    """All rows, in order, or each at its place; the columns of the parts go as those of the whole
    come."""
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
