"""The files of a bundle where Spark reads them: a directory, or a URL."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from tracehint.analyzer.execution.spark_session import EngineFailed, asking
from tracehint.errors import BundleError
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest, parse_manifest, read_manifest
from tracehint.schemas.store import SPOOL_DIR, segment_files
from tracehint.schemas.version import TABLE_NAMES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SEGMENT = re.compile(r"(host=[^/]*)/([^/.][^/]*\.parquet)")


class Files(Protocol):
    """Names inside the bundle are `table/host=HOST/SEGMENT.parquet`."""

    @property
    def root(self) -> Path | str: ...

    def manifest(self) -> Manifest: ...

    def segments(self, table: str) -> list[str]:
        """Names of a table's files, in the order in which they are read."""
        ...

    def uri(self, name: str) -> str:
        """What Spark's readers call it."""
        ...

    def open(self, names: list[str]) -> Iterator[tuple[str, Path | io.BytesIO]]:
        """The named files, in order, to be read by this process."""
        ...


class Folder:
    """A bundle on this machine or on a file system that all nodes share."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    @property
    def root(self) -> Path:
        return self._root

    def manifest(self) -> Manifest:
        return read_manifest(self.root)

    def segments(self, table: str) -> list[str]:
        return [os.fspath(f.relative_to(self.root)) for f in segment_files(self.root, table)]

    def uri(self, name: str) -> str:
        return no_pattern(f"file://{self.root}/{name}")

    def open(self, names: list[str]) -> Iterator[tuple[str, Path | io.BytesIO]]:
        for name in names:
            yield name, self.root / name


class Remote:
    """A bundle at a URL, listed and read by Spark."""

    def __init__(self, spark: SparkSession, url: str) -> None:
        self.spark, self._root = spark, url.rstrip("/")
        try:
            self._files = self._list()
        except EngineFailed as error:
            raise BundleError(
                f"{self.root}: Spark cannot list it: {error}",
                "Check the URL and the credentials; for s3:// Spark needs the package "
                "org.apache.hadoop:hadoop-aws (docs: Analyze on Spark).",
            ) from None
        if MANIFEST_NAME not in self._files:
            raise BundleError(
                f"{self.root}: not a trace bundle (no {MANIFEST_NAME})",
                "Give the directory that `tracehint record` or `import` wrote.",
            )
        if any(name.startswith(f"{SPOOL_DIR}/") for name in self._files):
            raise BundleError(
                f"{self.root}: its recorder was killed and left data that is not converted",
                "Where it was recorded: tracehint merge BUNDLE -o NEW, and copy that one.",
            )

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
        assert table in TABLE_NAMES
        found = []
        for name in self._files:
            folder, _, rest = name.partition("/")
            match = _SEGMENT.fullmatch(rest)
            if folder == table and match:
                found.append((match[1], match[2]))
        return [f"{table}/{host}/{segment}" for host, segment in sorted(found)]

    def uri(self, name: str) -> str:
        return no_pattern(self._files[name][0])

    def open(self, names: list[str]) -> Iterator[tuple[str, io.BytesIO]]:
        for name in names:
            content = b""
            if self._files[name][1]:
                reader = self.spark.read.format("binaryFile").option("recursiveFileLookup", True)
                with asking():
                    content = reader.load(self.uri(name)).select("content").collect()[0]["content"]
            yield name, io.BytesIO(bytes(content))


def files_at(spark: SparkSession, where: str) -> Files:
    """The files of the bundle at a path or URL."""
    return Remote(spark, where) if URL.match(where) else Folder(Path(where))


def no_pattern(uri: str) -> str:
    """The URI with the characters quoted that Spark would take for a pattern of names."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)


def segment_of(path: str) -> str:
    """`host=HOST/SEGMENT.parquet` of a path as Spark's column `_metadata.file_path` gives it."""
    return "/".join(unquote(part) for part in path.split("/")[-2:])
