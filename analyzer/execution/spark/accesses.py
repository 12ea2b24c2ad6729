"""Accesses in a Spark data frame: chosen ones come here, partitions are computed by the workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.execution.spark import work as work_of
from tracehint.analyzer.execution.spark.session import asking
from tracehint.analyzer.flow.model import Access
from tracehint.analyzer.flow.partitions import Batch, Partitions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_PARTITIONS = 2000  # of one shuffle, at most


class SparkAccesses:
    """`Accesses` of a Spark data frame of extents."""

    def __init__(
        self,
        spark: SparkSession,
        frame: DataFrame,
        lookup: work_of.Lookup,
        sums: dict[int, tuple[Ints, Ints]],
    ) -> None:
        self._spark, self._frame, self._lookup = spark, frame, lookup
        count = len(lookup.objects)
        self._per_object, self._touched = np.zeros(count, np.int64), np.zeros(count, bool)
        objects, n = sums[work_of.OBJECT]
        self._per_object[objects] = n
        self._touched[sums[work_of.TOUCHED][0]] = True
        self._procs = sums[work_of.PROCESS][0]

    def of_tasks(self, chosen: Bools) -> Access:
        procs = self._procs[np.append(chosen, False)[self._lookup.known.of(self._procs)]]
        return self._chosen("task", chosen, "proc", procs)

    def of_objects(self, chosen: Bools) -> Access:
        where = self._lookup
        files = where.objects.file_ids[chosen[where.number[where.objects.file_obj]]]
        return self._chosen("obj", chosen & (self._per_object > 0), "file", files)

    def _chosen(self, by: str, mask: Bools, name: str, keys: Ints) -> Access:
        """The accesses whose task or object is in the mask: rows with one of the keys."""
        from pyspark.sql import functions as F  # noqa: N812 (its usual name)

        if not mask.any() or not len(keys):
            return Access.empty()
        shared = self._spark.sparkContext.broadcast((self._lookup, mask))

        def pick(batches: Any) -> Any:
            lookup, wanted = shared.value
            return work_of.chosen(lookup, by, wanted, batches)

        with asking():
            known = self._spark.createDataFrame(_one_column(name, keys))
            rows = self._frame.join(F.broadcast(known), name, "leftsemi")
            rows = rows.select(*self._frame.columns)
            table = rows.mapInArrow(pick, work_of.ACCESSES).toArrow()
            shared.destroy()
        return work_of.access_of(table)

    def per_object(self) -> Ints:
        return self._per_object

    def touched(self) -> Bools:
        return self._touched

    def renumber(self, number: Ints) -> None:
        old, seen = self._per_object, self._touched
        self._per_object, self._touched = np.empty_like(old), np.empty_like(seen)
        self._per_object[number] = old
        self._touched[number] = seen
        self._lookup = replace(self._lookup, number=number[self._lookup.number])

    def compute(
        self, partitions: Partitions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        from pyspark import StorageLevel

        chosen = np.arange(len(partitions)) if only is None else only
        if not len(chosen):
            return []
        wanted = np.zeros(len(partitions), bool)
        wanted[chosen] = True
        lookup = replace(self._lookup, partition=partitions.of_object())
        context = self._spark.sparkContext
        shared, task = context.broadcast((lookup, wanted)), context.broadcast(work)
        shuffle_partitions(self._spark, min(_PARTITIONS, len(chosen)))

        def pick(batches: Any) -> Any:
            where, which = shared.value
            return work_of.partitioned(where, which, batches)

        def solve(extents: pa.Table, frames: pa.Table) -> pa.Table:
            return work_of.solved(task.value, extents, frames)

        with asking():
            accesses = self._frame.mapInArrow(pick, work_of.PARTITIONS)
            frames = self._spark.createDataFrame(_frames(partitions, chosen))
            both = accesses.groupBy("partition").cogroup(frames.groupBy("partition"))
            # Computed in parallel and kept on the workers' disks, then fetched one by one.
            results = both.applyInArrow(solve, work_of.RESULTS).persist(StorageLevel.DISK_ONLY)
            results.count()
            found: dict[int, T] = {}
            for row in results.toLocalIterator():
                found[row["partition"]] = pickle.loads(row["result"])  # made by our own workers
            results.unpersist()
            shared.destroy()
            task.destroy()
        return [found[i] for i in chosen.tolist()]


def _frames(partitions: Partitions, chosen: Ints) -> pa.Table:
    """Columns partition and frame: the partitions without their extents, pickled."""
    import pyarrow as pa

    frames = []
    for i in chosen.tolist():
        frame = partitions.frame(i)
        frame.objects = work_of.without_names(frame.objects)
        frames.append(pickle.dumps(frame, protocol=5))
    return pa.table({"partition": pa.array(chosen), "frame": pa.array(frames, pa.binary())})


def _one_column(name: str, keys: Ints) -> pa.Table:
    import pyarrow as pa

    return pa.table({name: keys})


def shuffle_partitions(spark: SparkSession, count: int) -> None:
    """The number of partitions of the next shuffle."""
    spark.conf.set("spark.sql.shuffle.partitions", str(max(1, count)))
