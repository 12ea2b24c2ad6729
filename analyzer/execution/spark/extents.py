"""Extents read in place: Spark scans, sums and shuffles them; workers compute partitions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, column
from tracehint.analyzer.dataflow.accesses import EpochTasks
from tracehint.analyzer.dataflow.model import Access, Objects
from tracehint.analyzer.dataflow.partitions import Batch, Partitions
from tracehint.analyzer.execution.bundle_files import (
    NOT_NEEDED,
    BundleFiles,
    Folder,
    add_problems,
    read,
)
from tracehint.analyzer.execution.local import LocalExtents
from tracehint.analyzer.execution.spark import work as work_of
from tracehint.analyzer.execution.spark.scan import files_at, frame_of_files, frame_of_table
from tracehint.analyzer.execution.spark.session import EngineFailed, engine_errors, session
from tracehint.errors import BundleError
from tracehint.schemas.store import Bundle, read_parts
from tracehint.schemas.tables import TABLES
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tracehint.analyzer.dataflow.partitions import Execution


T = TypeVar("T")
_PARTITIONS = 2000  # maximum number of partitions per shuffle


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
        return self._select_accesses("task", chosen, "proc", procs)

    def of_objects(self, chosen: Bools) -> Access:
        where = self._lookup
        files = where.objects.file_ids[chosen[where.number[where.objects.file_obj]]]
        return self._select_accesses("obj", chosen & (self._per_object > 0), "file", files)

    def _select_accesses(self, by: str, mask: Bools, name: str, keys: Ints) -> Access:
        """Return the accesses whose task or object is in the mask. `keys` limit the rows before."""
        from pyspark.sql import functions as F  # noqa: N812 (its usual name)

        if not mask.any() or not len(keys):
            return Access.empty()
        shared = self._spark.sparkContext.broadcast((self._lookup, mask))

        def pick(batches: Any) -> Any:
            lookup, wanted = shared.value
            return work_of.select_accesses(lookup, by, wanted, batches)

        with engine_errors():
            known = self._spark.createDataFrame(_one_column(name, keys))
            rows = self._frame.join(F.broadcast(known), name, "leftsemi")
            rows = rows.select(*self._frame.columns)
            table = rows.mapInArrow(pick, work_of.ACCESSES).toArrow()
            shared.destroy()
        return work_of.access_of(table)

    def per_object(self) -> Ints:
        return self._per_object

    def find_touched(self) -> Bools:
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
            return work_of.assign_partitions(where, which, batches)

        def solve(extents: pa.Table, frames: pa.Table) -> pa.Table:
            return work_of.solve_partition(task.value, extents, frames)

        with engine_errors():
            accesses = self._frame.mapInArrow(pick, work_of.PARTITIONS)
            frames = self._spark.createDataFrame(_frames(partitions, chosen))
            both = accesses.groupBy("partition").cogroup(frames.groupBy("partition"))
            # Compute in parallel, keep results on the workers' disks, then fetch them one by one.
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
    """Return columns partition and frame (pickled partitions, without their extents)."""
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
    """Set the number of partitions of the next shuffle."""
    spark.conf.set("spark.sql.shuffle.partitions", str(max(1, count)))


_ELSE = "Check that all nodes can read it and have tracehint installed; or use --backend local."
_ROOM = (
    "Set TMPDIR (--master local) or SPARK_LOCAL_DIRS (nodes) to a directory with more space; "
    "docs: Analyze on Spark."
)


def run_at(where: str, work: Callable[[Bundle, Execution], T], master: str | None = None) -> T:
    """Call `work` on the bundle at a path shared by all nodes, or at a URL that Spark reads."""
    with session(master) as spark:
        try:
            return _run(spark, where, work)
        except EngineFailed as error:
            full = "No space left" in str(error)
            raise BundleError(f"{where}: Spark failed: {error}", _ROOM if full else _ELSE) from None


def _run(spark: SparkSession, where: str, work: Callable[[Bundle, Execution], T]) -> T:
    """Run `work`; when a job fails, find damaged files and retry without them."""
    files = files_at(spark, where)
    damaged: dict[str, str] = {}
    while True:
        try:
            bundle, extents = _open(spark, files, damaged)
            return work(bundle, extents)
        except EngineFailed:
            found = _find_damaged_files(files)
            if found.keys() <= damaged.keys():
                raise
            damaged = found


def _open(
    spark: SparkSession, files: BundleFiles, damaged: dict[str, str]
) -> tuple[Bundle, Execution]:
    """Return the bundle without extents, and the extents without `damaged` (name: problem)."""
    if isinstance(files, Folder) and files.was_killed():
        bundle = read(files)
        table = bundle.tables.pop("extents")
        return bundle, SparkExtents(spark, *frame_of_table(spark, table))
    bundle = read(files, without=("extents",))
    add_problems(bundle, damaged.values())
    segments = [name for name in files.segments("extents") if name not in damaged]
    if not segments:
        return bundle, LocalExtents(TABLES["extents"].empty_table())
    return bundle, SparkExtents(spark, *frame_of_files(spark, files, segments))


def _find_damaged_files(files: BundleFiles) -> dict[str, str]:
    """Return name -> problem of each unreadable file of extents, using the local reader."""
    problems: dict[str, str] = {}
    for name in files.segments("extents"):
        found: list[str] = []
        read_parts("extents", files.open([name]), found, NOT_NEEDED["extents"])
        if found:
            problems[name] = found[0]
    return problems


class SparkExtents:
    """`Execution` on a Spark data frame of extents with their row numbers in the whole table."""

    def __init__(self, spark: SparkSession, frame: DataFrame, rows: int) -> None:
        self._spark, self._frame, self._rows = spark, frame, rows
        self._sums: dict[int, tuple[Ints, Ints]] = {}

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> SparkAccesses:
        lookup = work_of.Lookup(
            work_of.without_names(objects), known, np.arange(len(objects), dtype=np.int64)
        )
        self._sums = self._sum(lookup)
        if damaged := int(self._sums[work_of.DAMAGED][1].sum()):
            notes.append(f"{plural(damaged, 'damaged access record')} left out")
        return SparkAccesses(self._spark, self._frame, lookup, self._sums)

    def _sum(self, lookup: work_of.Lookup) -> dict[int, tuple[Ints, Ints]]:
        """Return keys and sums of each kind; for LAST the maximum."""
        from pyspark.sql import functions as F  # noqa: N812 (its usual name)

        shared = self._spark.sparkContext.broadcast(lookup)
        shuffle_partitions(self._spark, self._spark.sparkContext.defaultParallelism * 4)
        with engine_errors():
            rows = self._frame.mapInArrow(
                lambda batches: work_of.sums(shared.value, batches), work_of.SUMS
            )
            added = F.sum(F.when(F.col("kind") != work_of.LAST, F.col("n"))).alias("n")
            table = rows.groupBy("kind", "key").agg(added, F.max("n").alias("top")).toArrow()
            shared.destroy()
        kind, key, n, top = (column(table, name) for name in ("kind", "key", "n", "top"))
        found = {}
        for one in range(work_of.LAST + 1):
            at = np.flatnonzero(kind == one)
            at = at[np.argsort(key[at], kind="stable")]
            found[one] = key[at], (top if one == work_of.LAST else n)[at]
        return found

    def rows(self) -> int:
        return self._rows

    def last_ns(self) -> int | None:
        last = self._sums[work_of.LAST][1]
        return int(last[0]) if len(last) else None

    def opens(self) -> Ints:
        return self._sums[work_of.OPEN][0]

    def by_process(self) -> pa.Table:
        import pyarrow as pa

        if self._sums:
            proc, count = self._sums[work_of.PROCESS]
            return pa.table({"proc": proc, "count": count})
        with engine_errors():
            return self._frame.groupBy("proc").count().toArrow()
