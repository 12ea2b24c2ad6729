"""What Spark's Python workers do with batches of extents: pure functions, the same as locally."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Bools, Ints, column, order_by
from tracehint.analyzer.dataflow.accesses import EpochTasks, Raw, read_extents
from tracehint.analyzer.dataflow.model import UNKNOWN, Access, Objects

if TYPE_CHECKING:
    from tracehint.analyzer.dataflow.partitions import Batch

# Columns of the bundle that are read, and the row of the whole table that Spark adds.
COLUMNS = (
    "open", "proc", "file", "op", "how", "start", "length", "stride", "count", "bytes",
    "first_ns", "last_ns", "exact",
)  # fmt: skip  # a table
NULLABLE = ("open",)
ROW = "row"

# Kinds of sums: rows (kind, key, n).
OBJECT, TOUCHED, OPEN, PROCESS, DAMAGED, LAST = range(6)
SUMS = "kind int, key long, n long"
ACCESSES = ", ".join(
    f"`{f.name}` {'boolean' if str(f.type) == 'Bools' else 'long'}" for f in fields(Access)
)
PARTITIONS = f"partition long, {ACCESSES}"
RESULTS = "partition long, result binary"


@dataclass
class Lookup:
    """Where extents belong; sent once to every worker. Paths are left out.

    `number`: the present number of each object of `objects`. `partition`: of each present number.
    """

    objects: Objects
    known: EpochTasks
    number: Ints
    partition: Ints | None = None

    def look(self, batch: pa.RecordBatch) -> tuple[Raw, int]:
        """The batch with its objects (as numbered now) and tasks, and how many were damaged."""
        table = pa.Table.from_batches([batch])
        for name in COLUMNS:
            if name not in NULLABLE and table.column(name).null_count:
                raise ValueError(f"extents: no {name}")  # the file has no such column
        raw, damaged = read_extents(table, self.objects, self.known)
        raw.obj = np.append(self.number, UNKNOWN).astype(np.int32)[raw.obj]
        return raw, damaged


def without_names(objects: Objects) -> Objects:
    """The objects without their paths, which nothing in a worker needs."""
    none = pa.array([], pa.binary())
    return replace(objects, path=none, other_paths=none)


def sums(lookup: Lookup, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What `Execution` and `Accesses` know about all extents, per batch."""
    for batch in batches:
        if not batch.num_rows:
            continue
        raw, damaged = lookup.look(batch)
        table = raw.table
        opens = column(table, "open")
        last = int(column(table, "last_ns").max())
        parts = [
            (OBJECT, *np.unique(raw.obj[raw.rows], return_counts=True)),
            (TOUCHED, *np.unique(raw.obj[raw.obj >= 0], return_counts=True)),
            (OPEN, *np.unique(opens[opens != UNKNOWN], return_counts=True)),
            (PROCESS, *np.unique(column(table, "proc"), return_counts=True)),
            (DAMAGED, np.zeros(1, np.int64), np.array([damaged])),
            (LAST, np.zeros(1, np.int64), np.array([last])),
        ]
        yield pa.record_batch(
            {
                "kind": np.repeat([k for k, _, _ in parts], [len(v) for _, v, _ in parts]).astype(
                    np.int32
                ),
                "key": np.concatenate([v for _, v, _ in parts]).astype(np.int64),
                "n": np.concatenate([n for _, _, n in parts]).astype(np.int64),
            }
        )


def select_accesses(
    lookup: Lookup, by: str, mask: Bools, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The accesses whose task or object (`by`: task, obj) is in the mask."""
    for batch in batches:
        raw, _ = lookup.look(batch)
        at = raw.rows[mask[getattr(raw, by)[raw.rows]]]
        yield pa.record_batch(_columns(raw.access(at), batch, at))


def assign_partitions(
    lookup: Lookup, only: Bools, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """All accesses in the partitions of the mask, with their partition."""
    assert lookup.partition is not None
    for batch in batches:
        raw, _ = lookup.look(batch)
        partition = lookup.partition[raw.obj[raw.rows]]
        keep = only[partition]
        at = raw.rows[keep]
        values = {"partition": partition[keep].astype(np.int64)}
        yield pa.record_batch(values | _columns(raw.access(at), batch, at))


def _columns(access: Access, batch: pa.RecordBatch, at: Ints) -> dict[str, Any]:
    """Access columns; `seq` becomes the row of the whole table."""
    values = {f.name: getattr(access, f.name) for f in fields(Access)}
    values["seq"] = column(pa.Table.from_batches([batch]), ROW)[at]
    return values


def access_of(table: pa.Table) -> Access:
    """The accesses of a table of `ACCESSES`, in the order of recording."""
    columns = {}
    for field in fields(Access):
        values = table.column(field.name).to_numpy()
        columns[field.name] = np.array(values)  # Arrow's memory cannot be written to
    access = Access(**columns)
    return access.take(order_by(access.seq))


def solve_partition(
    work: Callable[[Batch], object], extents: pa.Table, frames: pa.Table
) -> pa.Table:
    """The result of the one partition whose accesses and frame (a pickled `Batch`) these are."""
    if not frames.num_rows:
        raise ValueError("a partition without its frame")
    frame: Batch = pickle.loads(frames.column("frame")[0].as_buffer())  # made by this run
    result = pickle.dumps(work(frame.fill_batch(access_of(extents))), protocol=5)
    return pa.table({"partition": frames.column("partition"), "result": pa.array([result])})
