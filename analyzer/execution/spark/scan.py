"""Extents of a bundle as a Spark data frame; each row has its number in the whole table."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from tracehint.analyzer.execution.bundle_files import (
    SYSTEMS,
    URL,
    BundleFiles,
    Folder,
    RemoteObjects,
    check_names,
    segments_among,
)
from tracehint.analyzer.execution.spark.session import EngineFailed, engine_errors
from tracehint.analyzer.execution.spark.work import COLUMNS, NULLABLE, ROW
from tracehint.errors import BundleError
from tracehint.schemas.footer import check_footer
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest, parse_manifest

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class Remote:
    """A bundle at a URL, listed and read by Spark."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.spark, self._root = spark, url.rstrip("/")
        try:
            self._files = self._list()
        except EngineFailed as error:
            raise BundleError(
                f"{self.root}: Spark cannot list it: {error}",
                "Check the URL and the credentials; Hadoop's module for this kind of store must "
                "be among Spark's packages (docs: Analyze on Spark).",
            ) from None
        check_names(self.root, self._files)

    @property
    def root(self) -> str:
        return self._root

    def _list(self) -> dict[str, tuple[str, int]]:
        """Return name in the bundle -> (URI, size). Spark's own listing omits empty files."""
        context = self.spark.sparkContext
        assert context._jvm is not None
        found: dict[str, tuple[str, int]] = {}
        with engine_errors():
            root = context._jvm.org.apache.hadoop.fs.Path(self.root)
            system = root.getFileSystem(context._jsc.hadoopConfiguration())
            if not system.exists(root):
                return found
            above = len(str(system.getFileStatus(root).getPath().toString())) + 1
            files = system.listFiles(root, True)
            while files.hasNext():
                status = files.next()
                uri = str(status.getPath().toString())
                found[uri[above:]] = uri, int(status.getLen())
        return found

    def manifest(self) -> Manifest:
        _, text = next(self.open([MANIFEST_NAME]))
        return parse_manifest(text.getvalue(), f"{self.root}/{MANIFEST_NAME}")

    def segments(self, table: str) -> list[str]:
        return segments_among(self._files, table)

    def uri(self, name: str) -> str:
        return self._files[name][0]

    def open(self, names: Iterable[str]) -> Iterator[tuple[str, io.BytesIO]]:
        for name in names:
            content = b""
            if self._files[name][1]:
                reader = self.spark.read.format("binaryFile").option("recursiveFileLookup", True)
                with engine_errors():
                    read = reader.load(escape_patterns(self.uri(name)))
                    content = read.select("content").collect()[0]["content"]
            yield name, io.BytesIO(bytes(content))


def files_at(spark: SparkSession, where: str) -> BundleFiles:
    """Return the files of the bundle at a path or URL.

    A URL is read by Spark if Hadoop has a reader for it; otherwise by Arrow in Spark's workers.
    """
    if not URL.match(where):
        return Folder(Path(where))
    scheme = where.partition("://")[0]
    if scheme in SYSTEMS and not _hadoop_reads(spark, scheme):
        return RemoteObjects.at(where)
    return Remote(spark, where)


def _hadoop_reads(spark: SparkSession, scheme: str) -> bool:
    """Whether Hadoop's file system of the scheme is among Spark's packages."""
    context = spark.sparkContext
    assert context._jvm is not None
    try:
        with engine_errors():
            systems = context._jvm.org.apache.hadoop.fs.FileSystem
            systems.getFileSystemClass(scheme, context._jsc.hadoopConfiguration())
    except EngineFailed:
        return False
    return True


def uri_of(files: BundleFiles, name: str) -> str:
    """Return the URI of a file for Spark's readers, with pattern characters escaped."""
    if isinstance(files, Remote):
        return escape_patterns(files.uri(name))
    return escape_patterns(f"file://{Path(files.root).absolute()}/{name}")


def escape_patterns(uri: str) -> str:
    """Escape the characters of a URI that Spark would interpret as a glob pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)


def segment_of(path: str) -> str:
    """Return `host=HOST/SEGMENT.parquet` from a value of Spark's column `_metadata.file_path`."""
    return "/".join(unquote(part) for part in path.split("/")[-2:])


TASKS = 8  # maximum Spark tasks per core and pass
BATCH = 1 << 17  # rows that a worker reads at once


def frame_of_objects(
    spark: SparkSession, files: RemoteObjects, segments: list[str], schema: str
) -> tuple[DataFrame, int]:
    """Return the frame of these files and its number of rows; `schema`: Spark's, for `COLUMNS`.

    Raises EngineFailed if a footer is damaged or a column is missing.
    """
    groups, rows = _row_groups(files, segments)
    if not groups:
        groups = [("", 0, 0)]
    with engine_errors():
        context = spark.sparkContext
        parts = context.parallelize(groups, min(len(groups), context.defaultParallelism * TASKS))
        frame = spark.createDataFrame(parts, "name string, number int, first long")
        return frame.mapInArrow(
            lambda batches: _read_row_groups(files, batches), f"{schema}, `{ROW}` long"
        ), rows


def _row_groups(
    files: RemoteObjects, segments: list[str]
) -> tuple[list[tuple[str, int, int]], int]:
    """Return (name, row group, its first row in the whole table) per group, and the row count."""
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


def _read_row_groups(
    files: RemoteObjects, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these row groups, with their numbers in the whole table."""
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
                        yield _to_spark_columns(part, row)
                        row += part.num_rows


def _to_spark_columns(part: pa.RecordBatch, row: int) -> pa.RecordBatch:
    """Convert a batch to Spark's column types and order, with row numbers."""
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


_TYPES = {"op": "string", "how": "string", "exact": "boolean"}  # all other columns are long
_SCHEMA = ", ".join(f"`{name}` {_TYPES.get(name, 'long')}" for name in COLUMNS)


def frame_of_table(spark: SparkSession, table: pa.Table) -> tuple[DataFrame, int]:
    """Return the frame of a table in memory, and its number of rows."""
    import pyarrow as pa

    rows = table.select(list(COLUMNS)).append_column(ROW, pa.array(np.arange(table.num_rows)))
    with engine_errors():
        return spark.createDataFrame(rows), table.num_rows


def frame_of_files(
    spark: SparkSession, files: BundleFiles, segments: list[str]
) -> tuple[DataFrame, int]:
    """Return the frame of these files (names in the bundle), and its number of rows.

    Raises EngineFailed if a file is damaged.
    """
    if isinstance(files, RemoteObjects):
        return frame_of_objects(spark, files, segments, _SCHEMA)
    from pyspark.sql import functions as F  # noqa: N812 (its usual name)

    with engine_errors():
        reader = spark.read.schema(_SCHEMA).option("recursiveFileLookup", True)
        # With an explicit schema, a column missing in a file is read as null. That would go
        # unnoticed in nullable columns only, so these are checked below.
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
        raise EngineFailed("Spark's file names differ from the listed names")
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
    with engine_errors():
        names = spark.read.option("recursiveFileLookup", True).parquet(uri).columns
    if not set(NULLABLE) <= set(names):
        raise EngineFailed(f"{uri}: lacks a column")
