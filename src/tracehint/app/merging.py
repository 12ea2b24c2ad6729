"""Bundles that are named: by themselves, by the directory that they are in, or by a URL."""

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
    """Paths and URLs of the bundles; for a directory, or a URL, that is none itself those that are
    in it, by their names. Raises BundleError where a URL cannot be read, or has none."""
    found: list[str] = []
    for where in named:
        found += _list_objects(where) if is_url(where) else _list_bundles(where)
    return found


def is_url(where: str) -> bool:
    """Whether it is the name of something in an object store."""
    from tracehint.analyzer.execution.bundle_files import URL

    return URL.match(where) is not None and not where.startswith("file://")


def fetch_bundle(where: str, folder: Path) -> Path:
    """The bundle as a directory of this machine: objects are copied below `folder`."""
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
            f"{url}: no trace bundle is there, and none directly below it",
            "Name a bundle, or what bundles were copied below.",
        )
    return found


def _list_bundles(where: str) -> list[str]:
    """The bundles of a directory; whatever else it is stays as it is named."""
    from tracehint.schemas.kinds import bundles_in

    return [os.fspath(path) for path in bundles_in(Path(where))] or [where]


_READERS = 4  # bundles that are read at one time, at most
_IN_MEMORY = 64 << 20  # bytes of rows that are not written to temporary files


@dataclass(frozen=True)
class MergeRequest:
    """What becomes one bundle, and how."""

    bundles: tuple[str, ...]
    output: Path
    force: bool
    keep_clocks: bool
    workflow: Path | None
    quiet: bool


@contextmanager
def parts_of(paths: Sequence[str | Path]) -> Iterator[tuple[list[BundlePart], list[str]]]:
    """The bundles that can be read, and why the others cannot. Raises BundleError for none.

    Rows that have no room in memory are in temporary files until the block ends.
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
    """The bundles in their order, or why one cannot be read; several are read at one time, but not
    the small files of jobs: reading them is Python's work, and threads only wait for each other."""
    from tracehint.schemas.recovery import JOB_SUFFIX

    numbers, memory = range(len(paths)), _Memory(_IN_MEMORY)
    large = sum(Path(path).suffix != JOB_SUFFIX for path in paths)
    with ThreadPoolExecutor(max(1, min(_READERS, large, len(os.sched_getaffinity(0))))) as pool:
        try:
            yield from pool.map(
                lambda number: _read_part(paths[number], folder / str(number), memory), numbers
            )
        finally:  # interrupted: what has not begun is not read any more
            pool.shutdown(wait=False, cancel_futures=True)


class _Memory:
    """Bytes of memory that all readers share."""

    def __init__(self, size: int) -> None:
        self._left, self._lock = size, Lock()

    def take(self, size: int) -> bool:
        """Whether there is room for so many bytes; then they are taken."""
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
    room = memory.take(sum(table.nbytes for table in bundle.tables.values()))
    return in_memory(bundle) if room else set_aside(bundle, folder)


def join_bundles(
    parts: Sequence[BundlePart], problems: Sequence[str], asked: MergeRequest
) -> tuple[Joined, str]:
    """The bundles as one, and how clocks were moved for it; empty: they were not.

    Tasks that no recorder has taken up, and what could not be read, are among its losses.
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
    """Those that are directories of this machine."""
    return [Path(where) for where in bundles if not is_url(where)]


def _refuse_empty(bundle: Bundle) -> Bundle:
    """The bundle. Raises BundleError where nothing of it can be read."""
    if bundle.problems and not any(t.num_rows for n, t in bundle.tables.items() if n != "losses"):
        raise BundleError(f"{bundle.path.name}: {bundle.problems[0]}", "Record the run again.")
    return bundle
