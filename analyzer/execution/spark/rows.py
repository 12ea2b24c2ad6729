"""Extents as a Spark data frame, each row with its number in the whole table.

The number is what makes the order of recording the same as in one process: files in the
bundle's order, rows as they lie in the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.execution.bundle_files import BundleFiles
from tracehint.analyzer.execution.remote import RemoteObjects
from tracehint.analyzer.execution.spark.files import segment_of, uri_of
from tracehint.analyzer.execution.spark.objects import frame_of_objects
from tracehint.analyzer.execution.spark.session import EngineFailed, asking
from tracehint.analyzer.execution.spark.work import COLUMNS, NULLABLE, ROW

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_TYPES = {"op": "string", "how": "string", "exact": "boolean"}  # the others are long
_SCHEMA = ", ".join(f"`{name}` {_TYPES.get(name, 'long')}" for name in COLUMNS)


def frame_of_table(spark: SparkSession, table: pa.Table) -> tuple[DataFrame, int]:
    """The frame of a table that is in memory, and its number of rows."""
    import pyarrow as pa

    rows = table.select(list(COLUMNS)).append_column(ROW, pa.array(np.arange(table.num_rows)))
    with asking():
        return spark.createDataFrame(rows), table.num_rows


def frame_of_files(
    spark: SparkSession, files: BundleFiles, segments: list[str]
) -> tuple[DataFrame, int]:
    """The frame of these files (names inside the bundle), and its number of rows.

    Raises EngineFailed where a file is damaged.
    """
    if isinstance(files, RemoteObjects):
        return frame_of_objects(spark, files, segments, _SCHEMA)
    from pyspark.sql import functions as F  # noqa: N812 (its usual name)

    with asking():
        reader = spark.read.schema(_SCHEMA).option("recursiveFileLookup", True)
        # An explicit schema makes nulls of a column that a file does not have: only where nulls
        # are allowed would that go unnoticed.
        frame = reader.parquet(*(uri_of(files, name) for name in segments))
        where = F.col("_metadata.file_path")
        counts = (
            frame.select(where.alias("path"), *NULLABLE)
            .groupBy("path")
            .agg(F.count(F.lit(1)).alias("rows"), *(F.count(c).alias(c) for c in NULLABLE))
            .collect()
        )
    numbers = {segment_of(row["path"]): row for row in counts}
    order = [name.partition("/")[2] for name in segments]
    if not numbers.keys() <= set(order):
        raise EngineFailed("Spark names files otherwise than they are listed")
    for name in segments:
        known = numbers.get(name.partition("/")[2])
        if known is not None and not all(known[c] for c in NULLABLE):
            _check_columns(spark, uri_of(files, name))
    sizes = [numbers[name]["rows"] if name in numbers else 0 for name in order]
    first = dict(zip(order, (np.cumsum([0, *sizes])[:-1]).tolist(), strict=True))
    starts = [(row["path"], first[segment]) for segment, row in numbers.items()] or [("", 0)]
    offsets = spark.createDataFrame(starts, "path string, offset long")
    numbered = frame.select(
        *COLUMNS, where.alias("path"), F.col("_metadata.row_index").alias("index")
    ).join(F.broadcast(offsets), "path")
    row = (F.col("offset") + F.col("index")).alias(ROW)
    return numbered.select(*COLUMNS, row), sum(sizes)


def _check_columns(spark: SparkSession, uri: str) -> None:
    """Raise EngineFailed for a file without one of the nullable columns."""
    with asking():
        names = spark.read.option("recursiveFileLookup", True).parquet(uri).columns
    if not set(NULLABLE) <= set(names):
        raise EngineFailed(f"{uri}: lacks a column")
