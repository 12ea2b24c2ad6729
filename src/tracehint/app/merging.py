"""Find, read and join bundles that are named by their path, their directory or a URL."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from tracehint.errors import BundleError, TracehintError
from tracehint.progress import stages

if TYPE_CHECKING:
    from tracehint.analyzer.execution.resources import Tell
    from tracehint.collectors.join import BundlePart, Joined
    from tracehint.schemas.store import Bundle


def bundles_at(named: Sequence[str]) -> list[str]:
    """Return paths and URLs of bundles. A directory or URL that is not a bundle yields the bundles
    in it, sorted by name. Raises BundleError for a URL that is unreadable or has no bundle."""
    found: list[str] = []
    for where in named:
        found += _list_objects(where) if is_url(where) else _list_bundles(where)
    return found


def is_url(where: str) -> bool:
    """Whether `where` is the URL of an object store (`file://` is not)."""
    from tracehint.analyzer.execution.bundle_files import URL

    return URL.match(where) is not None and not where.startswith("file://")


def fetch_bundle(where: str, folder: Path) -> Path:
    """Return the bundle as a local directory; remote objects are copied below `folder`."""
    from tracehint.analyzer.execution.bundle_files import RemoteObjects, files_at

    files = files_at(where)
    if not isinstance(files, RemoteObjects):
        return Path(files.root)
    target = folder / (where.rstrip("/").rpartition("/")[2] or "run.trace")
    files.copied_to(target)
    return target


def _list_objects(url: str) -> list[str]:
    from tracehint.analyzer.execution.bundle_files import RemoteObjects

    found = RemoteObjects.bundles_at(url)
    if not found:
        raise BundleError(
            f"{url}: no trace bundle there or directly below",
            "Name a bundle, or the location of copied bundles.",
        )
    return found


def _list_bundles(where: str) -> list[str]:
    """Return the bundles of a directory; any other path is returned unchanged."""
    from tracehint.schemas.kinds import bundles_in

    return [os.fspath(path) for path in bundles_in(Path(where))] or [where]


_READERS = 4  # maximum of bundles read in parallel
_MEMORY_BUDGET = 64 << 20  # bytes of rows kept in memory; more go to temporary files


@dataclass(frozen=True)
class MergeRequest:
    """The bundles to join, the output, and the options."""

    bundles: tuple[str, ...]
    output: Path
    force: bool
    keep_clocks: bool
    workflow: Path | None
    quiet: bool


@contextmanager
def parts_of(paths: Sequence[str | Path]) -> Iterator[tuple[list[BundlePart], list[str]]]:
    """Yield the readable bundles, and the problems of others. Raises BundleError for none.

    Rows beyond the memory budget are in temporary files until the block ends.
    """
    from tracehint.analyzer.execution.resources import temporary_folder

    with temporary_folder("tracehint-merge-") as folder:
        with stages() as seen:
            found = _read_parts(paths, folder, seen.tell)
        yield found


def _read_parts(
    paths: Sequence[str | Path], folder: Path, tell: Tell
) -> tuple[list[BundlePart], list[str]]:
    parts, problems = [], []
    remedies: list[str] = []
    for number, (path, part) in enumerate(zip(paths, _read_each(paths, folder), strict=True)):
        tell("reading", number, len(paths), "bundles")
        if isinstance(part, TracehintError):
            named = Path(path).name in part.what
            problems.append(part.what if named else f"{path}: {part.what}")
            remedies.append(part.remedy)
        else:
            parts.append(part)
    if not parts:
        raise BundleError(
            "no bundle can be read: " + "; ".join(problems), "\n  ".join(dict.fromkeys(remedies))
        )
    return parts, problems


def _read_each(paths: Sequence[str | Path], folder: Path) -> Iterator[BundlePart | TracehintError]:
    """Yield each bundle, or the error of reading it, in order. Bundles are read in parallel, except
    the small files of jobs: their reading is Python code, where threads wait for each other."""
    from tracehint.schemas.recovery import JOB_SUFFIX

    numbers, memory = range(len(paths)), _Memory(_MEMORY_BUDGET)
    large = sum(Path(path).suffix != JOB_SUFFIX for path in paths)
    with ThreadPoolExecutor(max(1, min(_READERS, large, len(os.sched_getaffinity(0))))) as pool:
        try:
            yield from pool.map(
                lambda number: _read_part(paths[number], folder / str(number), memory), numbers
            )
        finally:  # after an interrupt: cancel reads that have not begun
            pool.shutdown(wait=False, cancel_futures=True)


class _Memory:
    """A memory budget in bytes that all readers share."""

    def __init__(self, size: int) -> None:
        self._left, self._lock = size, Lock()

    def reserve(self, size: int) -> bool:
        """Reserve `size` bytes if the budget allows it; return whether it does."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True


def _read_part(path: str | Path, folder: Path, memory: _Memory) -> BundlePart | TracehintError:
    from tracehint.collectors.join import in_memory, set_aside
    from tracehint.schemas.store import read_bundle

    try:
        here = (
            fetch_bundle(str(path), folder.with_suffix(".copy"))
            if is_url(str(path))
            else Path(path)
        )
        bundle = _refuse_empty(read_bundle(here))
    except TracehintError as error:
        return error
    room = memory.reserve(sum(table.nbytes for table in bundle.tables.values()))
    return in_memory(bundle) if room else set_aside(bundle, folder)


def join_bundles(
    parts: Sequence[BundlePart], problems: Sequence[str], asked: MergeRequest
) -> tuple[Joined, str]:
    """Join the bundles; return the result and how clocks were moved (empty: they were not).

    Its losses include tasks that no recorder followed, and bundles that could not be read.
    """
    import pyarrow as pa

    from tracehint.collectors.ebpf.missed import add_missed, folders_of, missed_in
    from tracehint.collectors.join import Joined
    from tracehint.schemas.store import losses_table

    whole = Joined(parts)
    manifest, more = whole.manifest, {"losses": whole.losses}
    folders = folders_of(local_bundles(asked.bundles))
    for host in manifest.hosts:
        for path in missed_in(folders, host.name):
            add_missed(more, manifest.notes, host.name, path, keep=True, no_args=manifest.no_args)
    moved = "" if asked.keep_clocks else whole.align()
    manifest.notes += [f"bundle not read: {text}" for text in problems]
    unread = losses_table(manifest, [("unreadable_log", 1, text) for text in problems])
    whole.losses = pa.concat_tables([more["losses"], unread])
    return whole, moved


def local_bundles(bundles: Sequence[str]) -> list[Path]:
    """Return the bundles that are local directories."""
    return [Path(where) for where in bundles if not is_url(where)]


def _refuse_empty(bundle: Bundle) -> Bundle:
    """Return the bundle. Raises BundleError if nothing of it can be read."""
    if bundle.problems and not any(t.num_rows for n, t in bundle.tables.items() if n != "losses"):
        raise BundleError(f"{bundle.path.name}: {bundle.problems[0]}", "Record the run again.")
    return bundle
