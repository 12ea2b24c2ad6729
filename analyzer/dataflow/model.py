"""Tables that the steps of the flow exchange: arrays of equal length, one per column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, slim
from tracehint.schemas.tables import EXTENT_HOW

if TYPE_CHECKING:
    import pyarrow as pa


READ, WRITE, TRUNCATE, HOLE = 0, 1, 2, 3
EXTEND = 4  # a truncation that removes nothing: it may change the size, but no byte
OPS = {"read": READ, "write": WRITE, "truncate": TRUNCATE, "deallocate": HOLE}
# Ways of access as bits, to store sets in integers. `carried`: written in an earlier version.
HOWS = (*EXTENT_HOW, "engine_copy", "carried", "declared")
HOW_BIT = {name: 1 << i for i, name in enumerate(HOWS)}
HUGE = 1 << 53  # bytes: sizes, offsets and lengths beyond are of sparse files or damaged records
UNKNOWN = -1  # a size, an owner or a time that is not known
MAX_PIECES = 1 << 16  # maximum number of pieces into which a strided run is divided
MAX_ALL_PIECES = 1 << 24  # pieces of all strided runs of a partition
MAX_TOUCHES = 1 << 22  # (access, segment) pairs of one file


@dataclass
class Rows:
    """A table of numpy columns; subclasses define them."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, index: Ints | Bools) -> Self:
        """Return the rows at these positions, or where the mask is true."""
        return type(self)(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    @classmethod
    def concat_parts(cls, parts: Iterable[Self]) -> Self:
        """Concatenate the parts. If only one part has rows, its arrays are shared, not copied."""
        some = list(parts) or [cls.empty()]
        some = [part for part in some if len(part)] or some[:1]
        if len(some) == 1:
            return cls(**{f.name: getattr(some[0], f.name) for f in fields(cls)})
        return cls(
            **{f.name: np.concatenate([getattr(p, f.name) for p in some]) for f in fields(cls)}
        )

    def slim(self) -> Self:
        """Reduce the memory of these rows, in place; they are read-only afterwards."""
        for f in fields(self):
            setattr(self, f.name, slim(getattr(self, f.name)))
        return self

    @classmethod
    def empty(cls) -> Self:
        """Return a table without rows."""
        return cls(**{f.name: np.empty(0, _DTYPES.get(str(f.type), np.int64)) for f in fields(cls)})


_DTYPES: dict[str, Any] = {
    "Ints": np.int64,
    "Shorts": np.int32,
    "Bools": np.bool_,
    "Floats": np.float64,
}


@dataclass
class Access(Rows):
    """Runs of accesses by tasks: `count` pieces of [start, end), `stride` apart."""

    obj: Ints
    task: Ints
    proc: Ints
    op: Ints
    start: Ints
    end: Ints
    stride: Ints
    count: Ints
    bytes: Ints  # moved, including repeats
    first: Ints  # nanoseconds
    last: Ints
    exact: Bools
    how: Ints  # bits of HOW_BIT
    seq: Ints  # order of recording


@dataclass
class Writes(Rows):
    """Ranges that a task wrote in a version (`ver` counts per object)."""

    obj: Ints
    ver: Ints
    task: Ints
    start: Ints
    end: Ints
    bytes: Ints
    how: Ints
    first: Ints
    last: Ints
    exact: Bools
    seen: Bools  # some of these bytes were read by another task
    stays: Bools  # some of them are still in the file at the end of the version


@dataclass
class Owned(Rows):
    """Ranges that the task was the last to write when the version ended.

    Left out for files of one version: there they are the ranges that the task wrote.
    """

    obj: Ints
    ver: Ints
    task: Ints
    start: Ints
    end: Ints
    how: Ints


@dataclass
class Reads(Rows):
    """Ranges of a version that a task read and had not written itself."""

    obj: Ints
    ver: Ints
    task: Ints
    start: Ints
    end: Ints
    bytes: Ints
    how: Ints
    first: Ints
    last: Ints
    exact: Bools


@dataclass
class Links(Rows):
    """Ranges of a version that the consumer read and the producer was the last to write."""

    obj: Ints
    ver: Ints
    producer: Ints
    consumer: Ints
    start: Ints
    end: Ints
    uncertain: Bools
    copied: Bools  # through an engine's complete copy


@dataclass
class Versions(Rows):
    """Versions of objects with their size at the end of the version, or UNKNOWN."""

    obj: Ints
    ver: Ints
    size: Ints


@dataclass
class Found:
    """Results of one solver; `concat_parts` joins several."""

    writes: Writes
    owned: Owned
    reads: Reads
    links: Links
    versions: Versions

    @classmethod
    def concat_parts(cls, parts: Iterable[Found]) -> Found:
        """Concatenate all rows of all parts."""
        some = list(parts)
        return cls(
            Writes.concat_parts(p.writes for p in some),
            Owned.concat_parts(p.owned for p in some),
            Reads.concat_parts(p.reads for p in some),
            Links.concat_parts(p.links for p in some),
            Versions.concat_parts(p.versions for p in some),
        )


@dataclass
class Objects:
    """Files as stored, across all hosts; numbered from 0 without gaps.

    `file_ids` (sorted) and `file_obj` map the bundle's file identifiers to objects.
    """

    file_ids: Ints
    file_obj: Ints
    existed: Ints  # 1 yes, 0 created in the run, or UNKNOWN
    size: Ints  # last recorded size, or UNKNOWN
    opened_size: Ints  # at the first open, or UNKNOWN
    deleted: Bools
    lineage: Ints
    rank: Ints  # order of the objects of one lineage
    software: Bools
    path: pa.Array  # binary, absolute: the last name
    other_paths: pa.Array  # list of binary, absolute
    maker: Ints  # task that created it, or UNKNOWN
    unsized: Bools  # accessed as a whole, with unknown size
    hosts: int = 1

    def __len__(self) -> int:
        return len(self.existed)

    def renumber_objects(self, order: Ints) -> Objects:
        """Return the objects renumbered: `order` holds the old number of each new one."""
        import pyarrow as pa

        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        rows = pa.array(order)
        return replace(
            self._at(order),
            file_obj=number[self.file_obj],
            path=self.path.take(rows),
            other_paths=self.other_paths.take(rows),
        )

    def part(self, low: int, high: int) -> Objects:
        """Return the objects from `low` up to `high`, renumbered from 0; the columns are shared."""
        return replace(
            self._at(slice(low, high)),
            file_ids=self.file_ids[:0],
            file_obj=self.file_obj[:0],
            path=self.path.slice(low, high - low),
            other_paths=self.other_paths.slice(low, high - low),
        )

    def _at(self, rows: Ints | slice) -> Objects:
        """Return the numeric columns of these rows; the names remain those of all objects."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _PER_OBJECT})


_PER_OBJECT = (
    "existed",
    "size",
    "opened_size",
    "deleted",
    "lineage",
    "rank",
    "software",
    "maker",
    "unsized",
)


@dataclass
class Flow:
    """Result: tables of analyzer.model, and notes about assumptions that were necessary."""

    files: pa.Table
    producers: pa.Table
    consumers: pa.Table
    edges: pa.Table
    notes: list[str] = field(default_factory=list)
