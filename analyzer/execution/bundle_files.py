"""The files of a bundle: in a directory, or objects below a URL."""

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


# Columns that no step of an analysis looks at, for `read_bundle`: a sixth of its memory.
NOT_NEEDED = {
    "extents": ("host", "ops", "rank"),
    "opens": ("host", "fd", "seq_ops", "small_ops"),
    "declared_io": ("host",),
}

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class BundleFiles(Protocol):
    """Names inside the bundle are `table/host=HOST/SEGMENT.parquet`."""

    @property
    def root(self) -> Path | str: ...

    def manifest(self) -> Manifest: ...

    def segments(self, table: str) -> list[str]:
        """Names of a table's files, in the order in which they are read."""
        ...

    def open(self, names: Iterable[str]) -> Iterator[tuple[str, Path | BinaryIO]]:
        """The named files, in order, each to be read before the next one is asked for."""
        ...


class Folder:
    """A bundle on this machine, or on a file system that is mounted here."""

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
        """Whether a recorder that was killed left data that is not converted."""
        return is_unfinished(self.root, self.manifest())


def files_at(where: str) -> BundleFiles:
    """The files of the bundle at a path or URL, read by this process. Raises BundleError."""
    if where.startswith("file://"):
        return Folder(Path(unquote(where.removeprefix("file://"))))
    if URL.match(where):
        return RemoteObjects.at(where)
    return Folder(Path(where))


def read(files: BundleFiles, without: Collection[str] = ()) -> Bundle:
    """What an analysis needs of the bundle; tables `without` have no rows, unless recovered."""
    if isinstance(files, Folder):
        return read_bundle(files.root, NOT_NEEDED, without)
    from tracehint.schemas.tables import TABLES

    manifest, problems, tables = files.manifest(), list[str](), dict[str, Any]()
    for name in TABLES:
        parts = files.open(() if name in without else files.segments(name))
        tables[name] = read_parts(name, parts, problems, NOT_NEEDED.get(name, ()))
    bundle = Bundle(Path(files.root), manifest, tables, problems)
    there = {name: 1 << 62 for name in without if files.segments(name)}  # not worth a request
    state_missing(bundle, {name: t.num_rows for name, t in tables.items()} | there)
    return state_problems(bundle)


def add_problems(bundle: Bundle, problems: Iterable[str]) -> None:
    """State what else cannot be read, in the order of the tables."""
    from dataclasses import replace

    from tracehint.schemas.tables import TABLES

    more = list(problems)
    state_problems(replace(bundle, problems=more))
    place = {name: i for i, name in enumerate(TABLES)}
    bundle.problems += more
    bundle.problems.sort(key=lambda text: place.get(text.split("/")[0], len(place)))


_SEGMENT = re.compile(r"(host=[^/]*)/([^/.][^/]*\.parquet)")


def segments_among(names: Iterable[str], table: str) -> list[str]:
    """The names of a table's files among those that a store has, in the order of a directory."""
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
    """Raises BundleError unless these are the names of a whole bundle."""
    if MANIFEST_NAME not in names:
        raise BundleError(
            f"{root}: not a trace bundle (no {MANIFEST_NAME})",
            "Give the directory that `tracehint record` or `import` wrote.",
        )
    if any(name.startswith((f"{SPOOL_DIR}/", f"{RAW_DIR}/")) for name in names):
        raise BundleError(
            f"{root}: its recorder was killed and left data that is not converted",
            "Where it was recorded: tracehint merge BUNDLE -o NEW, and copy that one.",
        )


BLOCK = 8 << 20  # bytes of one request: columns lie side by side and are read one after another
CONNECT_S, ANSWER_S, ATTEMPTS = 5, 30, 3

_CREDENTIALS = (
    "Name credentials that may read it: AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY."
)
_HADOOP = (
    "Set JAVA_HOME, HADOOP_HOME, and CLASSPATH to `hadoop classpath --glob`; or add "
    "--backend spark, which needs no Hadoop."
)
# What an error of Arrow says -> what to do.
REMEDIES = {
    "NO_SUCH_BUCKET": "Check the name of the bucket.",
    "ACCESS_DENIED": _CREDENTIALS,
    "INVALID_ACCESS_KEY_ID": _CREDENTIALS,
    "INVALID_CLIENT_TOKEN_ID": _CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": _CREDENTIALS,
    "HTTP status 301": "Name the bucket's region in AWS_REGION.",
    "NETWORK_CONNECTION": "Check the network, and AWS_ENDPOINT_URL if the store is not Amazon's.",
    "load libhdfs": _HADOOP,
    "load libjvm": _HADOOP,
}
_ELSE = "Check the URL; or copy the bundle to this machine."


@dataclass(frozen=True)
class RemoteObjects:
    """`Files` below a URL; can be pickled, without credentials: each process finds its own."""

    root: str
    options: dict[str, Any]  # of the file system, not secret
    sizes: dict[str, int] = field(default_factory=dict)  # name inside the bundle -> bytes

    @classmethod
    def at(cls, url: str) -> RemoteObjects:
        """The bundle at `url`. Raises BundleError: no such store, no access, no bundle."""
        found = cls._open_store(url)
        with _arrow_errors(found.root):
            found.sizes.update(found._list())
        check_names(found.root, found.sizes)
        return found

    @classmethod
    def bundles_at(cls, url: str) -> list[str]:
        """`url` itself where a bundle is there; else the URLs of those directly below it, in the
        order of their names. Raises BundleError."""
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
        """The store of a URL, before anything of it is looked at. Raises BundleError."""
        scheme, _, rest = url.partition("://")
        bucket = rest.partition("/")[0]
        if scheme not in SYSTEMS:
            known = ", ".join(f"{name}://" for name in SYSTEMS)
            raise BundleError(
                f"{url}: the backend local reads {known} and directories",
                "Add --backend spark, or copy the bundle to this machine.",
            )
        if "@" in bucket:
            raise BundleError(
                f"{scheme}://{bucket.partition('@')[2]}: a URL with a user or password",
                f"Leave it out of the URL. {_CREDENTIALS}",
            )
        if not bucket:
            raise BundleError(f"{url}: a URL without a bucket or host", _ELSE)
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
        """What the file system calls it."""
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
            # tells no bundle from no bucket, and does not list what may be endless
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
        """What a bundle consists of, as a directory of this machine, which is made."""
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
                yield name, io.BufferedReader(_Watched(source, where), BLOCK)


class _Watched(io.RawIOBase):
    """A file whose failing reads are errors of the bundle: the file is not there or not to be
    had, which is something else than a damaged one."""

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
    """What Arrow's file systems raise as an error that names a remedy."""
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        remedy = next((text for part, text in REMEDIES.items() if part in message), _ELSE)
        raise BundleError(f"{where}: cannot be read: {message[:300]}", remedy) from None


def _s3_options(bucket: str) -> dict[str, Any]:
    """Where the bucket is: what the environment says, else Amazon is asked for its region."""
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
    """How a kind of store is reached; `with_host`: whether its paths begin with URL's host."""

    options: Callable[[str], dict[str, Any]]
    opened: Callable[[str, dict[str, Any]], FileSystem]
    with_host: bool


_S3 = _System(_s3_options, _s3, True)
_HDFS = _System(lambda _host: {}, _hdfs, False)
SYSTEMS = {"s3": _S3, "s3a": _S3, "hdfs": _HDFS, "viewfs": _HDFS}
