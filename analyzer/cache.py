"""Cache of analyses in the user's cache directory, shared by all commands."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from tracehint.analyzer.roots import argument_names, started_in
from tracehint.analyzer.workflow_directory import script_names
from tracehint.errors import UsageError
from tracehint.limits import LIMITS, limit
from tracehint.schemas.cache_directory import CacheDirectory
from tracehint.schemas.manifest import MANIFEST_NAME, TABLE_NAMES, read_manifest
from tracehint.schemas.recovery import is_unfinished
from tracehint.schemas.store import segment_files
from tracehint.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.dataflow.partitions import Execution
    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.model import Analysis, Options
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle


VARIABLE = "TRACEHINT_CACHE"  # on, off
ANALYSES = CacheDirectory("analyses", ".analysis")


@dataclass(frozen=True)
class Shared:
    """Analysis with `sound` (its whole bundle was readable) and `kept` (it came from the cache)."""

    analysis: Analysis
    sound: bool
    kept: bool = False


def analysis_of(where: str, options: Options, resources: Resources | None = None) -> Shared:
    """Return the analysis of the bundle at a path or URL. Raises TracehintError if none."""
    from tracehint.analyzer.execution.bundle_files import Folder, files_at

    files = files_at(where)
    key = key_of(files.root, options) if is_enabled() and isinstance(files, Folder) else None
    if key is not None and (data := ANALYSES.get(key)) is not None:
        found = read(data, key, options)
        if found is not None:
            return Shared(found, sound=True, kept=True)
    made = _make_analysis(where, options, resources)
    if key is not None and made.sound and key == key_of(Path(files.root), options):
        ANALYSES.put(key, partial(write, key=key, analysis=made.analysis), limit("cache-bytes"))
    return made


def is_enabled() -> bool:
    """Whether the cache is enabled. Raises UsageError for an invalid TRACEHINT_CACHE."""
    value = os.environ.get(VARIABLE, "on")
    if value not in ("on", "off"):
        raise UsageError(f"{VARIABLE}: {value[:80]!r} is neither on nor off", f"{VARIABLE}=off")
    return value == "on"


def _make_analysis(where: str, options: Options, resources: Resources | None) -> Shared:
    from tracehint.analyzer.analyze import analyze
    from tracehint.analyzer.execution.local import run_at

    def work(bundle: Bundle, extents: Execution | None) -> Shared:
        sound = not bundle.problems
        return Shared(analyze(bundle, options, extents, resources, owned=True), sound)

    return run_at(where, work, None, resources)


FORMAT = "tracehint.shared-analysis/1"
_CHECKSUM = hashlib.sha256
_CHECKSUM_BYTES = 32


def write(stream: BinaryIO, key: str, analysis: Analysis) -> None:
    """Write an analysis that was made from a bundle. Raises OSError."""
    tables = {name: _pack_table(table) for name, table in _tables(analysis).items()}
    sizes = {name: len(text) for name, text in tables.items()}
    head = {"format": FORMAT, "key": key, "sizes": sizes, "run": analysis.run}
    total = _CHECKSUM()
    for piece in (json.dumps(head, allow_nan=False).encode() + b"\n", *tables.values()):
        total.update(piece)
        stream.write(piece)
    stream.write(total.digest())


def read(data: bytes, key: str, options: Options) -> Analysis | None:
    """Return the analysis in `data`, or None if it is damaged or has another key or format."""
    from tracehint.analyzer.model import Analysis

    content = memoryview(data)[:-_CHECKSUM_BYTES]
    if len(data) < _CHECKSUM_BYTES or _CHECKSUM(content).digest() != data[-_CHECKSUM_BYTES:]:
        return None
    try:
        line = data.index(b"\n")
        head = json.loads(data[:line])
        if (head["format"], head["key"]) != (FORMAT, key):
            return None
        tables = _unpack_tables(content[line + 1 :], head["sizes"])
        return None if tables is None else Analysis(head["run"], options=options, **tables)
    except (ValueError, TypeError, KeyError, OSError):  # includes Arrow's errors
        return None


def _schemas() -> dict[str, pa.Schema]:
    from tracehint.analyzer.model import ANALYSIS_TABLES, DECLARED_TASK, PROC_TASK

    return ANALYSIS_TABLES | {"proc_task": PROC_TASK, "declared_task": DECLARED_TASK}


def _tables(analysis: Analysis) -> dict[str, pa.Table]:
    return {name: getattr(analysis, name) for name in _schemas()}


def _pack_table(table: pa.Table) -> bytes:
    import pyarrow as pa

    stream = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(stream, table.schema, options=options) as writer:
        writer.write_table(table)
    return stream.getvalue()


def _unpack_tables(data: memoryview, sizes: dict[str, int]) -> dict[str, Any] | None:
    """Return the tables by name, or None if their names or schemas differ."""
    import pyarrow as pa

    schemas = _schemas()
    if list(sizes) != list(schemas):
        return None
    found, at = {}, 0
    for name, size in sizes.items():
        table = pa.ipc.open_stream(pa.py_buffer(data[at : at + size])).read_all()
        if not table.schema.equals(schemas[name]):
            return None
        found[name] = table
        at += size
    return found


_BLOCK = 1 << 20


def key_of(root: Path, options: Options) -> str | None:
    """Return the cache key (hex checksum), or None if it cannot cover all input: a killed recorder
    left a log, or a file cannot be read. Raises BundleError if there is no bundle."""
    manifest = read_manifest(root)
    if is_unfinished(root, manifest):
        return None
    sum_ = hashlib.sha256(json.dumps(_outside_inputs(manifest, options)).encode())
    try:
        for path in _files(root):
            sum_.update(os.fsencode(path.relative_to(root)) + b"\0" + _checksum(path))
    except OSError:
        return None
    return sum_.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    yield root / MANIFEST_NAME
    for name in TABLE_NAMES:
        yield from segment_files(root, name)


def _checksum(path: Path) -> bytes:
    found = hashlib.sha256()
    with path.open("rb", buffering=0) as stream:
        while block := stream.read(_BLOCK):
            found.update(block)
    return found.digest()


def _outside_inputs(manifest: Manifest, options: Options) -> list[Any]:
    """Return the inputs of an analysis that are not in the bundle."""
    cwd = started_in(manifest)
    found = [*script_names(manifest, cwd), *sorted(argument_names(manifest, cwd))]
    names = [os.fsdecode(name) for name in found]
    limits = {name: limit(name) for name in LIMITS if name != "cache-bytes"}
    return [__version__, _source_files(), dataclasses.asdict(options), names, limits]


@lru_cache(maxsize=1)
def _source_files() -> list[tuple[str, int, int]]:
    """Return name, bytes and time of each source file of an analysis: the version number stays
    the same during development."""
    import tracehint.analyzer
    import tracehint.schemas

    found = []
    for package in (tracehint.analyzer, tracehint.schemas):
        for folder in package.__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                info = path.stat()
                found.append((f"{package.__name__}/{path.name}", info.st_size, info.st_mtime_ns))
    return found
