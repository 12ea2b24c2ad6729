"""Extents at a URL as a Spark data frame that Arrow reads in the workers, by row groups.

For stores that Spark has no reader of its own for: s3:// without Hadoop's module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracehint.analyzer.execution.remote import RemoteObjects
from tracehint.analyzer.execution.spark.session import EngineFailed, asking
from tracehint.analyzer.execution.spark.work import COLUMNS, ROW
from tracehint.schemas.footer import check_footer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASKS = 8  # of one core, in one pass
BATCH = 1 << 17  # rows that a worker holds at one time


def frame_of_objects(
    spark: SparkSession, files: RemoteObjects, segments: list[str], schema: str
) -> tuple[DataFrame, int]:
    """The frame of these files, and its number of rows; `schema` is Spark's, of `COLUMNS`.

    Raises EngineFailed where a footer is damaged or a column is missing.
    """
    groups, rows = _row_groups(files, segments)
    if not groups:
        groups = [("", 0, 0)]
    with asking():
        context = spark.sparkContext
        parts = context.parallelize(groups, min(len(groups), context.defaultParallelism * TASKS))
        frame = spark.createDataFrame(parts, "name string, number int, first long")
        return frame.mapInArrow(
            lambda batches: _read(files, batches), f"{schema}, `{ROW}` long"
        ), rows


def _row_groups(
    files: RemoteObjects, segments: list[str]
) -> tuple[list[tuple[str, int, int]], int]:
    """(name, number of the row group, its first row in the whole table), and all rows."""
    import pyarrow.parquet as pq

    groups, first = [], 0
    for name, source in files.open(segments):
        try:
            footer = pq.ParquetFile(source)
            check_footer(footer, source)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise EngineFailed(f"{name}: {error}") from None
        if not set(COLUMNS) <= set(footer.schema_arrow.names):
            raise EngineFailed(f"{name}: lacks a column")
        for i in range(footer.num_row_groups):
            groups.append((name, i, first))
            first += footer.metadata.row_group(i).num_rows
    return groups, first


def _read(files: RemoteObjects, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of these row groups, with their number in the whole table."""
    import pyarrow.parquet as pq

    for batch in batches:
        for wanted in batch.to_pylist():
            if not wanted["name"]:
                continue
            row = wanted["first"]
            for _, source in files.open([wanted["name"]]):
                with pq.ParquetFile(source) as opened:
                    for part in opened.iter_batches(
                        BATCH, row_groups=[wanted["number"]], columns=list(COLUMNS)
                    ):
                        yield _plain(part, row)
                        row += part.num_rows


def _plain(part: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """The columns as Spark knows them, in its order."""
    arrays = []
    for name in COLUMNS:
        values = part.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(pa.string())
        elif pa.types.is_integer(values.type):
            values = values.cast(pa.int64())
        arrays.append(values)
    numbers = pa.array(np.arange(row, row + part.num_rows, dtype=np.int64))
    return pa.record_batch([*arrays, numbers], [*COLUMNS, ROW])
