"""Pure functions on batches of extents for Spark's Python workers, same as local execution."""

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

# Columns read from the bundle, and (ROW) the row number in the whole table, added by Spark.
COLUMNS = (
    "open", "proc", "file", "op", "how", "start", "length", "stride", "count", "bytes",
    "first_ns", "last_ns", "exact",
)  # fmt: skip  # a table
NULLABLE = ("open",)
ROW = "row"

# Kinds of sums, in rows (kind, key, n).
OBJECT, TOUCHED, OPEN, PROCESS, DAMAGED, LAST = range(6)
SUMS = "kind int, key long, n long"
ACCESSES = ", ".join(
    f"`{f.name}` {'boolean' if str(f.type) == 'Bools' else 'long'}" for f in fields(Access)
)
PARTITIONS = f"partition long, {ACCESSES}"
RESULTS = "partition long, result binary"


@dataclass
class Lookup:
    """Maps extents to objects, tasks and partitions; sent once to every worker, without paths.

    `number`: current number of each object of `objects`. `partition`: partition per current number.
    """

    objects: Objects
    known: EpochTasks
    number: Ints
    partition: Ints | None = None

    def look(self, batch: pa.RecordBatch) -> tuple[Raw, int]:
        """Return the batch with its objects (current numbers) and tasks, and the damaged rows."""
        table = pa.Table.from_batches([batch])
        for name in COLUMNS:
            if name not in NULLABLE and table.column(name).null_count:
                raise ValueError(f"extents: no {name}")  # the file has no such column
        raw, damaged = read_extents(table, self.objects, self.known)
        raw.obj = np.append(self.number, UNKNOWN).astype(np.int32)[raw.obj]
        return raw, damaged


def without_names(objects: Objects) -> Objects:
    """Return the objects without their paths, which workers do not need."""
    none = pa.array([], pa.binary())
    return replace(objects, path=none, other_paths=none)


def sums(lookup: Lookup, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sums that `Execution` and `Accesses` need over all extents, per batch."""
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
    """Yield the accesses whose task or object (`by`: task, obj) is in the mask."""
    for batch in batches:
        raw, _ = lookup.look(batch)
        at = raw.rows[mask[getattr(raw, by)[raw.rows]]]
        yield pa.record_batch(_columns(raw.access(at), batch, at))


def assign_partitions(
    lookup: Lookup, only: Bools, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the accesses in the partitions of the mask, with their partition."""
    assert lookup.partition is not None
    for batch in batches:
        raw, _ = lookup.look(batch)
        partition = lookup.partition[raw.obj[raw.rows]]
        keep = only[partition]
        at = raw.rows[keep]
        values = {"partition": partition[keep].astype(np.int64)}
        yield pa.record_batch(values | _columns(raw.access(at), batch, at))


def _columns(access: Access, batch: pa.RecordBatch, at: Ints) -> dict[str, Any]:
    """Return the access columns; `seq` becomes the row number in the whole table."""
    values = {f.name: getattr(access, f.name) for f in fields(Access)}
    values["seq"] = column(pa.Table.from_batches([batch]), ROW)[at]
    return values


def access_of(table: pa.Table) -> Access:
    """Return the accesses of a table with schema `ACCESSES`, in the order of recording."""
    columns = {}
    for field in fields(Access):
        values = table.column(field.name).to_numpy()
        columns[field.name] = np.array(values)  # Arrow's memory cannot be written to
    access = Access(**columns)
    return access.take(order_by(access.seq))


def solve_partition(
    work: Callable[[Batch], object], extents: pa.Table, frames: pa.Table
) -> pa.Table:
    """Compute one partition from its accesses and its frame (a pickled `Batch`)."""
    if not frames.num_rows:
        raise ValueError("a partition without its frame")
    frame: Batch = pickle.loads(frames.column("frame")[0].as_buffer())  # made by this run
    result = pickle.dumps(work(frame.fill_batch(access_of(extents))), protocol=5)
    return pa.table({"partition": frames.column("partition"), "result": pa.array([result])})
