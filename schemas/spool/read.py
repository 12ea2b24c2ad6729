"""Read the spool's files: complete records only, every offset checked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehint.errors import BundleError
from tracehint.schemas.spool.arena_layout import FILE as ARENA
from tracehint.schemas.spool.arena_links import RealPaths
from tracehint.schemas.spool.constants import VERSION
from tracehint.schemas.spool.layout import FILES, take_records
from tracehint.schemas.spool.mount_names import mounts_of
from tracehint.schemas.wording import agree, plural

Records = NDArray[Any]

_MAX_TEXT = 1 << 31  # bytes of all strings of one column


@dataclass
class Spool:
    """The records of one host's recording, as written, and the clock."""

    host: str
    records: dict[str, Records]
    heap: NDArray[np.uint8]
    boot_ns: int
    real_ns: int
    ended: bool
    problems: list[str] = field(default_factory=list)
    outlived: int = 0  # processes that outlived the command
    joined: bool = False  # tasks requested tracing: each begins as the program that does so
    of_processes: list[tuple[int, str, str]] = field(default_factory=list)  # epoch, loss, what

    def wall(self, boottime: Records) -> NDArray[np.int64]:
        """Convert CLOCK_BOOTTIME to nanoseconds since the epoch."""
        return boottime.astype(np.int64) + np.int64(self.real_ns - self.boot_ns)

    def texts(self, offsets: Records, lengths: Records) -> pa.BinaryArray:
        """Return strings of the heap as one Arrow column; strings outside the heap are empty."""
        offsets = offsets.astype(np.int64)
        lengths = lengths.astype(np.int64)
        inside = (offsets >= 0) & (lengths >= 0) & (offsets + lengths <= len(self.heap))
        if not inside.all():
            self.problems.append(
                agree(int((~inside).sum()), "spool: {n} [string is|strings are] outside the heap")
            )
        lengths = np.where(inside, lengths, 0)
        total = int(lengths.sum())
        if total > _MAX_TEXT:
            raise BundleError("spool: strings of more than 2 GiB", "The spool is damaged.")
        ends = np.cumsum(lengths)
        starts = np.concatenate([np.zeros(1, np.int64), ends])
        index = np.repeat(offsets - starts[:-1], lengths) + np.arange(total)
        data = self.heap[index] if total else np.zeros(0, np.uint8)
        buffers = [None, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(data)]
        return pa.BinaryArray.from_buffers(pa.binary(), len(lengths), buffers)


def read_spool(folder: Path, host: str) -> Spool:
    """Read all records below `folder`. Raises BundleError: start.json or arena is unreadable."""
    start, end = _json(folder / "start.json"), end_of(folder)
    _check_version(start, str(folder))
    if os.path.lexists(folder / ARENA):
        from tracehint.schemas.spool.arena import read_arena

        links = RealPaths(here=_is_recorded_here(start), mounts=mounts_of(start))
        arena = read_arena(folder / ARENA)
        return spool_of_arena(arena, start, end, links, host, str(folder))
    problems = list[str]()
    records = {name: _records(folder / f"{name}.bin", dt, problems) for name, dt in FILES.items()}
    heap = _records(folder / "heap.bin", np.dtype("u1"), problems)
    return _spool(host, start, end, records, heap, problems=problems)


def spool_of_arena(
    arena: Records,
    start: dict[str, Any],
    end: dict[str, Any],
    links: RealPaths,
    host: str,
    what: str,
) -> Spool:
    """Read the records in an arena's content; `what` names it in errors. Raises BundleError."""
    from tracehint.schemas.spool.arena import arena_records

    _check_version(start, what)
    try:
        records, heap, losses = arena_records(arena, start, end, links)
    except BundleError as error:
        raise BundleError(f"{what}: {error.what}", error.remedy) from None
    return _spool(host, start, end, records, heap, of_processes=losses)


def _spool(
    host: str,
    start: dict[str, Any],
    end: dict[str, Any],
    records: dict[str, Records],
    heap: NDArray[np.uint8],
    **more: Any,
) -> Spool:
    return Spool(
        host,
        records,
        heap,
        boot_ns=_number(start, "boot_ns"),
        real_ns=_number(start, "real_ns"),
        ended=bool(end),
        outlived=_number(end, "outlived") if _number(start, "command") else 0,
        joined=start.get("joined") is True,
        **more,
    )


def _check_version(start: dict[str, Any], what: str) -> None:
    if start.get("version") != VERSION:
        raise BundleError(
            f"{what}: spool of version {start.get('version')!r}, this program reads {VERSION}",
            "Convert it with the tracehint that recorded it.",
        )


def _is_recorded_here(start: dict[str, Any]) -> bool:
    """Whether this machine made the recording and was not rebooted since."""
    try:
        return start.get("boot_id") == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return False


def end_of(folder: Path) -> dict[str, Any]:
    """Return the facts that the recorder wrote at its end; empty if it did not finish."""
    try:
        return _json(folder / "end.json")
    except BundleError:
        return {}


def _number(data: dict[str, Any], key: str) -> int:
    value = data.get(key)
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else 0


def _json(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > 1 << 16 or not path.is_file():
            raise ValueError("no regular file, or too large")
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError(f"{path}: cannot be read: {error}", "Record the run again.") from None
    if not isinstance(data, dict):
        raise BundleError(f"{path}: not a spool", "Record the run again.")
    return data


def _records(path: Path, dtype: np.dtype[Any], problems: list[str]) -> Records:
    """Read the complete records of a file; a torn last one is left out."""
    try:
        if path.is_symlink():
            raise OSError("is a symbolic link")
        if path.exists() and not path.is_file():
            raise OSError("is no regular file")
        count, rest = divmod(path.stat().st_size, dtype.itemsize)
        if rest:
            problems.append(f"spool: {path.name}: {plural(rest, 'byte')} of a torn record left out")
        return np.fromfile(path, dtype=dtype, count=count)
    except OSError as error:
        problems.append(f"spool: {path.name}: {error}")
        return np.zeros(0, dtype=dtype)


def path_lookup(spool: Spool) -> Callable[[Records], pa.Array]:
    """Return a function from path identifiers to the paths' text, null if unknown."""
    table = spool.records["paths"]
    table = take_records(table, np.argsort(table["id"], kind="stable"))
    texts = spool.texts(table["off"], table["len"])

    def text(ids: Records) -> pa.Array:
        at = np.searchsorted(table["id"], ids)
        inside = np.minimum(at, max(len(table) - 1, 0))
        known = (at < len(table)) & (len(table) > 0)
        if len(table):
            known &= table["id"][inside] == ids
        return texts.take(pa.array(inside, mask=~known))

    return text
