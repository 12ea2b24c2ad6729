"""Joining of a node's bundles, so that there are few however many recorders ran.

A batch system kills a recorder together with the job that started it, and the next job starts
another: 10,000 jobs, 10,000 bundles. So a recorder that finds more than MAX_BUNDLES of its node,
none of which is being written, joins them first.

It works in its own folder next to them. If that is interrupted while the joined bundle is in the
folder, the originals in it are moved back; once the joined bundle has been moved out, they are
obsolete and deleted.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tracehint.collectors.ebpf.missed import node_stem
from tracehint.collectors.ebpf.node import Place, hold_lock
from tracehint.errors import BundleError
from tracehint.schemas.plain import is_own_folder

MAX_BUNDLES = 8
_JOINED = "joined"


@contextlib.contextmanager
def as_recorder(place: Place) -> Iterator[None]:
    """Prevent joining of bundles while this recorder writes its own. Joins them before and after,
    if no other recorder is active."""
    busy = Path(f"{place.socket}.busy")
    _join_if_alone(busy, place)
    with hold_lock(busy, shared=True):
        yield
    _join_if_alone(busy, place)


def _join_if_alone(busy: Path, place: Place) -> None:
    with contextlib.suppress(BlockingIOError), hold_lock(busy, wait=False):
        join_segments(place.bundles, place.host)
        busy.unlink()


def join_segments(folder: Path, host: str, most: int = MAX_BUNDLES) -> int:
    """Join the bundles of this node's recorders if there are more than `most`.

    No recorder may be writing them. Unreadable bundles and those of other users are left unchanged.
    Returns the number of joined bundles.
    """
    _undo_join(folder, host)
    found = segments(folder, host)
    if len(found) <= most:
        return 0
    from tracehint.collectors.join import Joined, in_memory
    from tracehint.schemas.store import read_bundle

    parts = []
    for path in found:
        with contextlib.suppress(BundleError):
            parts.append(read_bundle(path))
    if len(parts) < 2:
        return 0
    whole = Joined([in_memory(part) for part in parts])
    work = folder / f"{node_stem(host)}.joining"
    try:
        work.mkdir(mode=0o700)
    except OSError:  # another user's, in a shared folder: the bundles are not joined
        return 0
    whole.write(whole.writer(work / _JOINED))
    for part in parts:
        part.path.rename(work / part.path.name)
    (work / _JOINED).rename(min((part.path for part in parts), key=lambda path: len(path.name)))
    shutil.rmtree(work)
    return len(parts)


def segments(folder: Path, host: str) -> list[Path]:
    """Return the bundles written by this node's recorders."""
    name = re.compile(re.escape(node_stem(host)) + r"(-\d+)?\.trace")
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(p for p in entries if name.fullmatch(p.name) and is_own_folder(p))


def _undo_join(folder: Path, host: str) -> None:
    """Clean up after a process that was killed while joining."""
    work = folder / f"{node_stem(host)}.joining"
    if not is_own_folder(work):
        return
    if (work / _JOINED).exists():
        for path in segments(work, host):
            path.rename(folder / path.name)
    shutil.rmtree(work)
