"""The files of a bundle where Spark reads them: a directory, or a URL."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tracehint.analyzer.execution.bundle_files import URL, BundleFiles, Folder
from tracehint.analyzer.execution.remote import SYSTEMS, RemoteObjects
from tracehint.analyzer.execution.segments import check_names, segments_among
from tracehint.analyzer.execution.spark.session import EngineFailed, asking
from tracehint.errors import BundleError
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest, parse_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        """Name inside the bundle -> (its URI, its size). Spark's own listing hides empty files."""
        context = self.spark.sparkContext
        assert context._jvm is not None
        found: dict[str, tuple[str, int]] = {}
        with asking():
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
                with asking():
                    read = reader.load(no_pattern(self.uri(name)))
                    content = read.select("content").collect()[0]["content"]
            yield name, io.BytesIO(bytes(content))


def files_at(spark: SparkSession, where: str) -> BundleFiles:
    """The files of the bundle at a path or URL.

    A URL is read by Spark where Hadoop has a reader for it; else by Arrow in Spark's workers.
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
        with asking():
            systems = context._jvm.org.apache.hadoop.fs.FileSystem
            systems.getFileSystemClass(scheme, context._jsc.hadoopConfiguration())
    except EngineFailed:
        return False
    return True


def uri_of(files: BundleFiles, name: str) -> str:
    """What Spark's readers call a file, with no character that they take for a pattern."""
    if isinstance(files, Remote):
        return no_pattern(files.uri(name))
    return no_pattern(f"file://{Path(files.root).absolute()}/{name}")


def no_pattern(uri: str) -> str:
    """The URI with the characters quoted that Spark would take for a pattern of names."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)


def segment_of(path: str) -> str:
    """`host=HOST/SEGMENT.parquet` of a path as Spark's column `_metadata.file_path` gives it."""
    return "/".join(unquote(part) for part in path.split("/")[-2:])
