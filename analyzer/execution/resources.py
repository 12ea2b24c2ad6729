"""Resources of an analysis: threads, memory, temporary directories and DuckDB connections."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, TypeVar

from tracehint.analyzer.memory import give_back
from tracehint.errors import TracehintError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


# Progress callback: stage, number done, total, unit.
Tell = Callable[[str, int, int, str], None]


# Callback for a complete table: name (see analyzer.model.ANALYSIS_TABLES) and table.
Ready = Callable[[str, "pa.Table"], None]


def silent(_stage: str, _done: int, _total: int, _unit: str) -> None:
    """Report no progress."""


def wait(_name: str, _table: pa.Table) -> None:
    """Ignore a complete table; it is part of the returned analysis."""


@dataclass(frozen=True)
class Resources:
    """Number of threads, memory limit, directory of temporary files, and callbacks for progress
    (`tell`) and for each table as soon as it is complete (`ready`)."""

    threads: int = 1
    memory: int | None = None  # bytes, about half of it for the accesses; None: no limit
    folder: Path | None = None  # None: the system's directory for temporary files
    tell: Tell = silent
    ready: Ready = wait


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def half_of_memory() -> int:
    """Return half of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


T = TypeVar("T")
_RELEASE_INTERVAL = 4  # number of partitions after which freed memory is returned to the system


def start_beside(work: Callable[[], T], resources: Resources) -> Callable[[], T]:
    """Start `work` in a separate thread if two are allowed. Return a function that waits for the
    result; call it once only, because it does not keep the result."""
    if resources.threads < 2:
        return work
    pool = ThreadPoolExecutor(1)
    begun = [pool.submit(work)]
    pool.shutdown(wait=False)
    return lambda: begun.pop().result()


def compute_all(
    work: Callable[[int], T], chosen: Sequence[int], resources: Resources, stage: str
) -> list[T]:
    """Call `work` for each number of `chosen`, in parallel; return the results in order."""
    found: list[T] = []

    def keep(result: T) -> None:
        found.append(result)
        if not len(found) % _RELEASE_INTERVAL:
            give_back()
        resources.tell(stage, len(found), len(chosen), "partitions")

    if resources.threads < 2 or len(chosen) < 2:
        for i in chosen:
            keep(work(i))
        return found
    with ThreadPoolExecutor(resources.threads) as pool:
        for result in pool.map(work, chosen):
            keep(result)
    return found


_LOCK = "lock"  # file locked by the process that uses the directory


@contextmanager
def temporary_folder(prefix: str, where: Path | None = None) -> Iterator[Path]:
    """Create a temporary directory (mode 0700) in `where` (default: the system's directory for
    temporary files); remove directories with this prefix whose process has ended."""
    above = Path(where or tempfile.gettempdir())
    _remove_left(above, prefix)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
        held = _make_locked_file(folder)
    except OSError as error:
        raise TracehintError(
            f"{above}: cannot create temporary files: {error.strerror or error}",
            "Set TMPDIR to another directory.",
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _make_locked_file(folder: Path) -> int:
    """Create the lock file. It is locked under another name, so that it is never seen unlocked."""
    early = folder / f".{_LOCK}"
    held = os.open(early, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # no lock support: then no process can lock it and remove the folder
        fcntl.flock(held, fcntl.LOCK_EX)
    early.rename(folder / _LOCK)
    return held


def _remove_left(above: Path, prefix: str) -> None:
    """Remove directories left by this user's killed processes."""
    with suppress(OSError):
        for found in above.iterdir():
            if found.name.startswith(prefix):
                _remove_if_left(found)


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):
        seen = folder.lstat()
        if not S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return
        held = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(held)


def connect() -> duckdb.DuckDBPyConnection:
    """Return a new in-memory DuckDB connection; it can access only what is registered on it."""
    import duckdb

    con = duckdb.connect(
        ":memory:",
        config={
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    # In a notebook without ipywidgets it is off already, and setting it to off raises an error.
    shown = con.execute("select current_setting('enable_progress_bar')").fetchall()
    if shown[0][0]:
        con.execute("set enable_progress_bar = false")
    return con
