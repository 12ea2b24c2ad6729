"""Files of a bundle: in a directory, or objects below a URL."""

from __future__ import annotations

import io
import os
import re
import shutil
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol
from urllib.parse import unquote

from tracehint.errors import BundleError
from tracehint.schemas.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    TABLE_NAMES,
    Manifest,
    parse_manifest,
    read_manifest,
)
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR, is_unfinished
from tracehint.schemas.store import (
    Bundle,
    as_written,
    read_bundle,
    read_parts,
    segment_files,
    state_missing,
    state_problems,
)

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


# Columns that no step of an analysis uses; skipping them saves a sixth of `read_bundle`'s memory.
NOT_NEEDED = {
    "extents": ("host", "ops", "rank"),
    "opens": ("host", "fd", "seq_ops", "small_ops"),
    "declared_io": ("host",),
}

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class BundleFiles(Protocol):
    """Access to the files of a bundle; names in it are `table/host=HOST/SEGMENT.parquet`."""

    @property
    def root(self) -> Path | str: ...

    def manifest(self) -> Manifest: ...

    def segments(self, table: str) -> list[str]:
        """Return the names of a table's files, in reading order."""
        ...

    def open(self, names: Iterable[str]) -> Iterator[tuple[str, Path | BinaryIO]]:
        """Yield the named files in order; each must be read before the next one is requested."""
        ...


class Folder:
    """A bundle in a directory, local or on a mounted file system."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def root(self) -> Path:
        return self._root

    def manifest(self) -> Manifest:
        return read_manifest(self.root)

    def segments(self, table: str) -> list[str]:
        return [os.fspath(f.relative_to(self.root)) for f in segment_files(self.root, table)]

    def open(self, names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        for name in names:
            yield name, self.root / name

    def was_killed(self) -> bool:
        """Whether a killed recorder left unconverted data."""
        return is_unfinished(self.root, self.manifest())


def files_at(where: str) -> BundleFiles:
    """Return the files of the bundle at a path or URL, read by this process. Raises BundleError."""
    if where.startswith("file://"):
        return Folder(Path(unquote(where.removeprefix("file://"))))
    if URL.match(where):
        return RemoteObjects.at(where)
    return Folder(Path(where))


def read(files: BundleFiles, without: Collection[str] = ()) -> Bundle:
    """Read the columns that an analysis needs; tables in `without` are empty, unless recovered."""
    if isinstance(files, Folder):
        return read_bundle(files.root, NOT_NEEDED, without)
    from tracehint.schemas.tables import TABLES

    manifest, problems, tables = files.manifest(), list[str](), dict[str, Any]()
    for name in TABLES:
        parts = files.open(() if name in without else files.segments(name))
        tables[name] = read_parts(name, parts, problems, NOT_NEEDED.get(name, ()))
    bundle = Bundle(Path(files.root), manifest, tables, problems)
    there = {name: 1 << 62 for name in without if files.segments(name)}  # not counted: requests
    state_missing(bundle, {name: t.num_rows for name, t in tables.items()} | there)
    return state_problems(bundle)


def add_problems(bundle: Bundle, problems: Iterable[str]) -> None:
    """Report further unreadable files, and add them to `bundle.problems` in table order."""
    from dataclasses import replace

    from tracehint.schemas.tables import TABLES

    more = list(problems)
    state_problems(replace(bundle, problems=more))
    place = {name: i for i, name in enumerate(TABLES)}
    bundle.problems += more
    bundle.problems.sort(key=lambda text: place.get(text.split("/")[0], len(place)))


_SEGMENT = re.compile(r"(host=[^/]*)/([^/.][^/]*\.parquet)")


def segments_among(names: Iterable[str], table: str) -> list[str]:
    """Return the names of a table's files among `names`, in the order of `segment_files`."""
    assert table in TABLE_NAMES
    found = []
    for name in names:
        folder, _, rest = name.partition("/")
        match = _SEGMENT.fullmatch(rest)
        if folder == table and match:
            found.append((match[1], match[2]))
    found.sort(key=lambda name: (name[0], as_written(name[1])))
    return [f"{table}/{host}/{segment}" for host, segment in found]


def check_names(root: str, names: Collection[str]) -> None:
    """Raise BundleError unless these are the names of a complete bundle."""
    if MANIFEST_NAME not in names:
        raise BundleError(
            f"{root}: not a trace bundle (no {MANIFEST_NAME})",
            "Give the directory that `tracehint record` or `import` wrote.",
        )
    if any(name.startswith((f"{SPOOL_DIR}/", f"{RAW_DIR}/")) for name in names):
        raise BundleError(
            f"{root}: its recorder was killed and left unconverted data",
            "On the recording machine: tracehint merge BUNDLE -o NEW, then copy NEW.",
        )


BLOCK = 8 << 20  # bytes per request: adjacent columns are read one after another
CONNECT_S, ANSWER_S, ATTEMPTS = 5, 30, 3

_CREDENTIALS = (
    "Set credentials with read access: AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)
_HADOOP = (
    "Set JAVA_HOME, HADOOP_HOME, and CLASSPATH to `hadoop classpath --glob`; or add "
    "--backend spark, which needs no Hadoop."
)
# Part of an Arrow error message -> remedy.
REMEDIES = {
    "NO_SUCH_BUCKET": "Check the name of the bucket.",
    "ACCESS_DENIED": _CREDENTIALS,
    "INVALID_ACCESS_KEY_ID": _CREDENTIALS,
    "INVALID_CLIENT_TOKEN_ID": _CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": _CREDENTIALS,
    "HTTP status 301": "Set AWS_REGION to the bucket's region.",
    "NETWORK_CONNECTION": "Check the network, and AWS_ENDPOINT_URL if the store is not Amazon's.",
    "load libhdfs": _HADOOP,
    "load libjvm": _HADOOP,
}
_DEFAULT_REMEDY = "Check the URL; or copy the bundle to this machine."


@dataclass(frozen=True)
class RemoteObjects:
    """`BundleFiles` below a URL. Pickled without credentials: each process finds its own."""

    root: str
    options: dict[str, Any]  # of the file system, not secret
    sizes: dict[str, int] = field(default_factory=dict)  # name inside the bundle -> bytes

    @classmethod
    def at(cls, url: str) -> RemoteObjects:
        """Return the bundle at `url`. Raises BundleError: no such store, no access, no bundle."""
        found = cls._open_store(url)
        with _arrow_errors(found.root):
            found.sizes.update(found._list())
        check_names(found.root, found.sizes)
        return found

    @classmethod
    def bundles_at(cls, url: str) -> list[str]:
        """Return `url` if it is a bundle, else the URLs of the bundles directly below it, sorted by
        name. Raises BundleError."""
        from pyarrow.fs import FileSelector, FileType

        found = cls._open_store(url)
        with _arrow_errors(found.root):
            if found._is_bundle(found._path()):
                return [found.root]
            there = found._system.get_file_info(FileSelector(found._path(), allow_not_found=True))
            names = sorted(one.base_name for one in there if one.type == FileType.Directory)
            return [f"{found.root}/{n}" for n in names if found._is_bundle(found._path(n))]

    @classmethod
    def _open_store(cls, url: str) -> RemoteObjects:
        """Return the store of a URL without listing it. Raises BundleError."""
        scheme, _, rest = url.partition("://")
        bucket = rest.partition("/")[0]
        if scheme not in SYSTEMS:
            known = ", ".join(f"{name}://" for name in SYSTEMS)
            raise BundleError(
                f"{url}: the local backend reads {known} and directories",
                "Add --backend spark, or copy the bundle to this machine.",
            )
        if "@" in bucket:
            raise BundleError(
                f"{scheme}://{bucket.partition('@')[2]}: the URL contains a user or password",
                f"Remove it from the URL. {_CREDENTIALS}",
            )
        if not bucket:
            raise BundleError(f"{url}: the URL has no bucket or host", _DEFAULT_REMEDY)
        found = cls(url.rstrip("/"), {})
        with _arrow_errors(found.root):
            found.options.update(SYSTEMS[scheme].options(bucket))
        return found

    @property
    def _scheme(self) -> str:
        return self.root.partition("://")[0]

    @cached_property
    def _system(self) -> FileSystem:
        return SYSTEMS[self._scheme].opened(self.root, self.options)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_system"}

    def _path(self, name: str = "") -> str:
        """Return the path of the bundle, or of a file in it, in the file system's notation."""
        rest = self.root.partition("://")[2]
        if not SYSTEMS[self._scheme].with_host:
            rest = "/" + rest.partition("/")[2]
        return f"{rest}/{name}" if name else rest

    def _is_bundle(self, path: str) -> bool:
        from pyarrow.fs import FileType

        info = self._system.get_file_info(f"{path}/{MANIFEST_NAME}")
        return bool(info.type == FileType.File)

    def _list(self) -> dict[str, int]:
        from pyarrow.fs import FileSelector, FileType

        if not self._is_bundle(self._path()):
            # raises if the bucket is missing; not recursive, as the listing could be endless
            with suppress(FileNotFoundError):
                self._system.get_file_info(FileSelector(self._path()))
            return {}
        found = self._system.get_file_info(FileSelector(self._path(), recursive=True))
        above = len(self._path().rstrip("/")) + 1
        return {one.path[above:]: one.size for one in found if one.type == FileType.File}

    def manifest(self) -> Manifest:
        where = f"{self.root}/{MANIFEST_NAME}"
        if self.sizes[MANIFEST_NAME] > MAX_MANIFEST_BYTES:
            raise BundleError(f"{where}: manifest is larger than 64 MiB", "It is damaged.")
        with closing(self.open([MANIFEST_NAME])) as opened:
            return parse_manifest(next(opened)[1].read(), where)

    def segments(self, table: str) -> list[str]:
        return segments_among(self.sizes, table)

    def copied_to(self, folder: Path) -> None:
        """Copy manifest and tables to a new local directory."""
        names = [MANIFEST_NAME, *(name for table in TABLE_NAMES for name in self.segments(table))]
        for name, source in self.open(names):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out:
                shutil.copyfileobj(source, out, BLOCK)

    def open(self, names: Iterable[str]) -> Generator[tuple[str, io.BufferedReader]]:
        for name in names:
            where = f"{self.root}/{name}"
            with _arrow_errors(where):
                source = self._system.open_input_file(self._path(name))
            with source:
                yield name, io.BufferedReader(_CheckedFile(source, where), BLOCK)


class _CheckedFile(io.RawIOBase):
    """A file whose read errors become BundleErrors: the file is missing or not accessible, which
    differs from a damaged file."""

    def __init__(self, source: Any, where: str) -> None:
        self._source, self._where = source, where

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        return int(self._source.tell())

    def readinto(self, buffer: Any) -> int:
        with _arrow_errors(self._where):
            return int(self._source.readinto(buffer))


@contextmanager
def _arrow_errors(where: str) -> Iterator[None]:
    """Convert errors of Arrow's file systems to a BundleError that names a remedy."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        remedy = next((text for part, text in REMEDIES.items() if part in message), _DEFAULT_REMEDY)
        raise BundleError(f"{where}: cannot be read: {message[:300]}", remedy) from None


def _s3_options(bucket: str) -> dict[str, Any]:
    """Return endpoint and region from the environment; otherwise query Amazon for the region."""
    given = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not given and not region:
        from pyarrow.fs import resolve_s3_region

        return {"region": resolve_s3_region(bucket)}
    options = {"region": region or "us-east-1"}
    if given:
        scheme, _, host = given.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    return options


def _s3(_root: str, options: dict[str, Any]) -> FileSystem:
    from pyarrow import fs

    return fs.S3FileSystem(
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        **options,
    )


def _hdfs(root: str, _options: dict[str, Any]) -> FileSystem:
    from pyarrow.fs import FileSystem

    scheme, _, rest = root.partition("://")
    found: FileSystem = FileSystem.from_uri(f"{scheme}://{rest.partition('/')[0]}/")[0]
    return found


@dataclass(frozen=True)
class _System:
    """Access to one kind of store; `with_host`: whether its paths begin with the URL's host."""

    options: Callable[[str], dict[str, Any]]
    opened: Callable[[str, dict[str, Any]], FileSystem]
    with_host: bool


_S3 = _System(_s3_options, _s3, True)
_HDFS = _System(lambda _host: {}, _hdfs, False)
SYSTEMS = {"s3": _S3, "s3a": _S3, "hdfs": _HDFS, "viewfs": _HDFS}
