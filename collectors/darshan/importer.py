"""Import of many Darshan logs as one bundle."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tracehint.collectors.darshan.assembly import Assembly
from tracehint.collectors.darshan.records import LogFacts, Records, UnreadableLogError, check
from tracehint.errors import InputError, MissingDependencyError
from tracehint.limits import limit
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.store import Bundle, add_losses
from tracehint.schemas.writer import BundleWriter, write_bundle

if TYPE_CHECKING:
    import pyarrow as pa


def load_backend() -> Any:
    """Return the wheel's wrapper of the Darshan library. Only for worker processes (_read_chunk).

    pandas is replaced by a stub: the wheel needs it for tables only, which are not used here, and
    loading it takes 0.3 s of CPU, longer than a worker's other work for a few logs.
    """
    if "pandas" not in sys.modules:
        sys.modules["pandas"] = _ModuleStub("pandas")
    from darshan.backend import cffi_backend

    return cffi_backend


class _ModuleStub(ModuleType):
    """Stub for a module that is used in annotations at most."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):  # look-ups by Python itself, such as __path__
            raise AttributeError(name)
        return object


_PID_IN_NAME = re.compile(r"_id(\d+)-(\d{1,9})_")


def read_log(path: str) -> LogFacts:
    """Return all facts of a log. Raises UnreadableLogError."""
    backend = load_backend()
    lib, ffi = backend.libdutil, backend.ffi
    handle = lib.darshan_log_open(path.encode("utf-8", "surrogateescape"))
    if handle == ffi.NULL:
        raise UnreadableLogError("not a Darshan log, or cut short in its header")
    try:
        facts = LogFacts(path)
        _read_job(lib, ffi, handle, facts)
        _read_mounts(lib, ffi, handle, facts)
        names = _read_names(lib, ffi, handle)
        modules = _read_modules(lib, ffi, handle, facts)
        Records(lib, ffi, handle, facts, names, backend).read(modules)
        check(facts)
        return facts
    finally:
        lib.darshan_log_close(handle)


def _read_job(lib: Any, ffi: Any, handle: Any, facts: LogFacts) -> None:
    job = ffi.new("struct darshan_job *")
    if lib.darshan_log_get_job(handle, job) < 0:
        raise UnreadableLogError("its job record is damaged")
    facts.jobid, facts.uid, facts.nprocs = job.jobid, job.uid, max(1, job.nprocs)
    facts.start_ns = job.start_time_sec * 1_000_000_000 + job.start_time_nsec
    end = job.end_time_sec * 1_000_000_000 + job.end_time_nsec
    facts.end_ns = end if end >= facts.start_ns else None
    text = ffi.string(job.metadata, 1024).decode("utf-8", "replace")
    facts.metadata = dict(kv.split("=", 1) for kv in text.split("\n") if "=" in kv)
    exe = ffi.new("char[]", 1 << 16)
    if lib.darshan_log_get_exe(handle, exe) >= 0:
        facts.exe = ffi.string(exe).rstrip(b" \n")
    if match := _PID_IN_NAME.search(Path(facts.path).name):
        facts.pid = int(match[2])
    facts.hostname = facts.metadata.get("hostname", "")
    if facts.end_ns is None or ".converted" in facts.path:
        facts.losses.append(
            ("killed_process", 1, "the process was killed: recovered counters, no byte ranges")
        )


def _read_mounts(lib: Any, ffi: Any, handle: Any, facts: LogFacts) -> None:
    mounts, count = ffi.new("struct darshan_mnt_info **"), ffi.new("int *")
    if lib.darshan_log_get_mounts(handle, mounts, count) < 0:
        facts.losses.append(("log_limits", 1, "no mount table"))
        return
    for k in range(min(count[0], 4096)):
        path = ffi.string(mounts[0][k].mnt_path).decode("utf-8", "replace")
        kind = ffi.string(mounts[0][k].mnt_type).decode("utf-8", "replace")
        facts.mounts.append((path, kind))
    if count[0]:
        lib.darshan_free(mounts[0])


def _read_names(lib: Any, ffi: Any, handle: Any) -> dict[int, bytes]:
    records, count = ffi.new("struct darshan_name_record **"), ffi.new("int *")
    lib.darshan_log_get_name_records(handle, records, count)
    number = count[0]
    if number < 0 or number > limit("darshan-names"):
        raise UnreadableLogError(f"it claims {number:,} file names (limit darshan-names)")
    names = {}
    for k in range(number):
        name = records[0][k].name
        if name != ffi.NULL:
            names[int(records[0][k].id)] = ffi.string(name)
            lib.darshan_free(name)
    if number:
        lib.darshan_free(records[0])
    return names


def _read_modules(lib: Any, ffi: Any, handle: Any, facts: LogFacts) -> dict[str, int]:
    modules, count = ffi.new("struct darshan_mod_info **"), ffi.new("int *")
    lib.darshan_log_get_modules(handle, modules, count)
    found = {}
    for k in range(count[0]):
        name = ffi.string(modules[0][k].name).decode("ascii", "replace")
        found[name] = modules[0][k].idx
        if modules[0][k].partial_flag:
            facts.losses.append(
                ("log_limits", 1, f"{name}: its record or memory limit was reached")
            )
    if count[0]:
        lib.darshan_free(modules[0])
    return found


CHUNK = 32
Outcome = tuple[str, LogFacts | str]  # path; facts, or the reason why there are none


def _read_chunk(paths: Sequence[str], reader: Callable[[str], LogFacts]) -> list[Outcome]:
    """Read logs in a worker, where the library's own messages on stderr are suppressed."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    os.close(devnull)
    found: list[Outcome] = []
    for path in paths:
        try:
            found.append((path, reader(path)))
        except UnreadableLogError as error:
            found.append((path, str(error)))
        except Exception as error:  # from the library's wrapper, which does not validate its input
            reason = str(error) or type(error).__name__
            found.append((path, f"it cannot be understood: {reason[:200]}"))
    return found


def read_logs(
    paths: Sequence[str], workers: int | None = None, reader: Callable[[str], LogFacts] = read_log
) -> Iterator[Outcome]:
    """Yield (path, facts or reason) for every log, in no particular order."""
    chunks = [paths[k : k + CHUNK] for k in range(0, len(paths), CHUNK)]
    count = min(len(chunks), workers or os.cpu_count() or 1)
    retry: list[Sequence[str]] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        futures = {pool.submit(_read_chunk, chunk, reader): chunk for chunk in chunks}
        for future in as_completed(futures):
            try:
                yield from future.result()
            except BrokenProcessPool:
                retry.append(futures[future])
    yield from _read_one_by_one([path for chunk in retry for path in chunk], reader, context)


def _read_one_by_one(
    paths: Sequence[str], reader: Callable[[str], LogFacts], context: SpawnContext
) -> Iterator[Outcome]:
    """Read logs of chunks that crashed the library, one by one; a new worker after each crash."""
    pool: ProcessPoolExecutor | None = None
    for path in paths:
        pool = pool or ProcessPoolExecutor(1, mp_context=context)
        try:
            yield from pool.submit(_read_chunk, [path], reader).result()
        except BrokenProcessPool:
            yield path, "it crashed the Darshan library (damaged log)"
            pool.shutdown()
            pool = None
    if pool:
        pool.shutdown()


_MAX_NAMED_SOURCES = 16  # sources named in the manifest


def find_logs(sources: Sequence[Path]) -> list[Path]:
    """Return source files, and .darshan files below source directories without links, sorted."""
    found: set[Path] = set()
    for source in sources:
        if source.is_dir():
            found.update(p for p in source.rglob("*.darshan") if not p.is_symlink() and p.is_file())
        elif source.exists():
            found.add(source)
        else:
            raise InputError(f"{source}: no such file or directory", "Check the path.")
    return sorted(found)


def import_darshan(sources: Sequence[Path], output: Path, *, force: bool = False) -> Manifest:
    """Read all logs and write the bundle.

    Logs that cannot be read are listed in the manifest's notes and counted as
    losses. Raises InputError when none can be read.
    """
    tables, manifest = gather(sources)
    manifest.command = ["tracehint", "import", *map(str, sources[:_MAX_NAMED_SOURCES])]
    write_bundle(BundleWriter(output, force=force), tables, manifest)
    return manifest


def gather(sources: Sequence[Path]) -> tuple[dict[str, pa.Table], Manifest]:
    """Return tables and manifest of all logs. Raises InputError when none can be read."""
    if importlib.util.find_spec("darshan") is None:  # the workers load it
        raise MissingDependencyError(
            "reading Darshan logs needs the package `darshan`",
            "Install it: pip install 'tracehint[darshan]'",
        )
    logs = find_logs(sources)
    if not logs:
        raise InputError("no .darshan files found", "Give log files or a directory of them.")
    facts, bad = [], []
    for path, outcome in read_logs([str(p) for p in logs]):
        if isinstance(outcome, LogFacts):
            facts.append(outcome)
        else:
            bad.append((path, outcome))
    if not facts:
        reasons = "; ".join(f"{path}: {why}" for path, why in sorted(bad)[:3])
        raise InputError(
            f"none of {len(logs)} Darshan logs can be read ({reasons})",
            "Copy the logs again from Darshan's log directory.",
        )
    facts.sort(key=lambda f: (f.start_ns, f.jobid, f.pid or 0, f.path))
    assembly = Assembly(facts)
    return assembly.tables(sorted(bad)), assembly.manifest(sorted(bad))


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """Return tables, no problems; complete the manifest. Raises TracehintError without a log.

    A process that had not ended has no log and is missing.
    """

    tables, facts = gather([root / RAW_DIR])
    manifest.started_ns, manifest.blind_to = facts.started_ns, facts.blind_to
    manifest.notes = facts.notes
    bundle = Bundle(root, manifest, tables)
    add_losses(bundle, [("killed_recorder", 1, "processes that had not ended have no log")])
    return bundle.tables, []
