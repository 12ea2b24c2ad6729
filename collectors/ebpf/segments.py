"""Few bundles per node, however many recorders there were.

A batch system kills a recorder together with the job that started it, the next
job starts another: 10,000 jobs, 10,000 bundles. So a recorder that finds more
than MOST bundles of its node, of which none is being written, joins them first.

It does so in a folder of its own beside them. As long as the joined bundle lies
there, the folder holds the originals and everything is put back; when it has
been moved out, the originals are old and go.
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

MOST = 8
_JOINED = "joined"


@contextlib.contextmanager
def as_recorder(place: Place) -> Iterator[None]:
    """While a recorder records and writes its bundle: nobody joins bundles. Joins them before
    and after, where nobody else records."""
    busy = Path(f"{place.socket}.busy")
    _join_if_alone(busy, place)
    with hold_lock(busy, shared=True):
        yield
    _join_if_alone(busy, place)


def _join_if_alone(busy: Path, place: Place) -> None:
    with contextlib.suppress(BlockingIOError), hold_lock(busy, wait=False):
        join_segments(place.bundles, place.host)
        busy.unlink()


def join_segments(folder: Path, host: str, most: int = MOST) -> int:
    """Join the bundles of this node's recorders when there are more than `most`.

    Nobody may be writing them. Bundles that cannot be read, and those of others, stay as they are.
    Returns how many were joined.
    """
    _put_back(folder, host)
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
    except OSError:  # somebody else's in a shared folder: the bundles stay as many as they are
        return 0
    whole.write(whole.writer(work / _JOINED))
    for part in parts:
        part.path.rename(work / part.path.name)
    (work / _JOINED).rename(min((part.path for part in parts), key=lambda path: len(path.name)))
    shutil.rmtree(work)
    return len(parts)


def segments(folder: Path, host: str) -> list[Path]:
    """The bundles that this node's recorders left."""
    name = re.compile(re.escape(node_stem(host)) + r"(-\d+)?\.trace")
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(p for p in entries if name.fullmatch(p.name) and is_own_folder(p))


def _put_back(folder: Path, host: str) -> None:
    """After somebody was killed while joining."""
    work = folder / f"{node_stem(host)}.joining"
    if not is_own_folder(work):
        return
    if (work / _JOINED).exists():
        for path in segments(work, host):
            path.rename(folder / path.name)
    shutil.rmtree(work)
