"""Extents that stay where they are: Spark scans, sums and shuffles, workers compute partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.columns import column
from tracehint.analyzer.execution.bundle_files import (
    NOT_NEEDED,
    BundleFiles,
    Folder,
    add_problems,
    read,
)
from tracehint.analyzer.execution.local import LocalExtents
from tracehint.analyzer.execution.spark import work as work_of
from tracehint.analyzer.execution.spark.accesses import SparkAccesses, shuffle_partitions
from tracehint.analyzer.execution.spark.files import files_at
from tracehint.analyzer.execution.spark.rows import frame_of_files, frame_of_table
from tracehint.analyzer.execution.spark.session import EngineFailed, asking, session
from tracehint.analyzer.flow.access import EpochTasks
from tracehint.analyzer.flow.model import Objects
from tracehint.errors import BundleError
from tracehint.schemas.store import Bundle, read_parts
from tracehint.schemas.tables import TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from tracehint.analyzer.flow.extents import Execution

T = TypeVar("T")
_ELSE = "Check that all nodes can read it and have tracehint; or use --backend local."
_ROOM = (
    "Name a directory with more room in TMPDIR (--master local) or SPARK_LOCAL_DIRS (the nodes'); "
    "docs: Analyze on Spark."
)


def run_at(where: str, work: Callable[[Bundle, Execution], T], master: str | None = None) -> T:
    """`work` on the bundle at a path that all nodes see, or at a URL that Spark reads."""
    with session(master) as spark:
        try:
            return _run(spark, where, work)
        except EngineFailed as error:
            full = "No space left" in str(error)
            raise BundleError(f"{where}: Spark failed: {error}", _ROOM if full else _ELSE) from None


def _run(spark: SparkSession, where: str, work: Callable[[Bundle, Execution], T]) -> T:
    """With a second try without the damaged files, once one made a job fail."""
    files = files_at(spark, where)
    damaged: dict[str, str] = {}
    while True:
        try:
            bundle, extents = _open(spark, files, damaged)
            return work(bundle, extents)
        except EngineFailed:
            found = _damaged(files)
            if found.keys() <= damaged.keys():
                raise
            damaged = found


def _open(
    spark: SparkSession, files: BundleFiles, damaged: dict[str, str]
) -> tuple[Bundle, Execution]:
    """The bundle without extents, and the extents. `damaged` files (name: problem) are left out."""
    if isinstance(files, Folder) and files.killed():
        bundle = read(files)
        table = bundle.tables.pop("extents")
        return bundle, SparkExtents(spark, *frame_of_table(spark, table))
    bundle = read(files, without=("extents",))
    add_problems(bundle, damaged.values())
    segments = [name for name in files.segments("extents") if name not in damaged]
    if not segments:
        return bundle, LocalExtents(TABLES["extents"].empty_table())
    return bundle, SparkExtents(spark, *frame_of_files(spark, files, segments))


def _damaged(files: BundleFiles) -> dict[str, str]:
    """The problem of each file of extents that cannot be read, found by the local reader."""
    problems: dict[str, str] = {}
    for name in files.segments("extents"):
        found: list[str] = []
        read_parts("extents", files.open([name]), found, NOT_NEEDED["extents"])
        if found:
            problems[name] = found[0]
    return problems


class SparkExtents:
    """An `Execution` on a Spark data frame of extents with their rows of the whole table."""

    def __init__(self, spark: SparkSession, frame: DataFrame, rows: int) -> None:
        self._spark, self._frame, self._rows = spark, frame, rows
        self._sums: dict[int, tuple[Ints, Ints]] = {}

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> SparkAccesses:
        lookup = work_of.Lookup(
            work_of.without_names(objects), known, np.arange(len(objects), dtype=np.int64)
        )
        self._sums = self._sum(lookup)
        if damaged := int(self._sums[work_of.DAMAGED][1].sum()):
            notes.append(f"{damaged} damaged access records were left out")
        return SparkAccesses(self._spark, self._frame, lookup, self._sums)

    def _sum(self, lookup: work_of.Lookup) -> dict[int, tuple[Ints, Ints]]:
        """Keys and sums of each kind; of LAST the largest."""
        from pyspark.sql import functions as F  # noqa: N812 (its usual name)

        shared = self._spark.sparkContext.broadcast(lookup)
        shuffle_partitions(self._spark, self._spark.sparkContext.defaultParallelism * 4)
        with asking():
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
        with asking():
            return self._frame.groupBy("proc").count().toArrow()
