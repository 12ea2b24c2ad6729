"""Binary layout of the preload library's arena: collectors/preload/arena.h as NumPy types.

tests/test_preload_layout.py compiles the C header and compares every offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracehint.schemas.spool.layout import EPISODE_DT, EXEC_DT, LOST, PROCESS_DT

FILE = "arena"
MAGIC, VERSION, CHUNK_MAGIC, PAGE = 0x414E455241484E54, 8, 0x4B4E4843, 4096
UNIT, UNITS, UNIT_READY = 4 << 20, 8192, 2
PROGRAMS = 240  # programs whose class is cached
FIRST = 6  # episodes in the record of the process
EVENT, BRIEF = 16, 17
FORK, WAIT = 1, 2  # enum th_event_kind
# enum th_class; only programs of the first class can be entered
CLASSES = (
    "dynamic",
    "static",
    "Go",
    "another C library",
    "setuid",
    "AddressSanitizer",
    "32 bits",
    "unreadable",
    "without the library there",
    "may not open the recording",
)

_U64, _U32 = "<u8", "<u4"

PROGRAM_DT = np.dtype([("file", _U64), ("class", _U32), ("exe", _U32)], align=True)
HEAD_DT = np.dtype(
    [
        ("magic", _U64), ("version", _U32), ("epochs", _U32), ("size", _U64), ("used", _U64),
        ("allocated", _U64), ("gap", _U64), ("mounts", _U32), ("root_mount", _U32),
        ("root_ino", _U64), ("remounts", _U32), ("spare", _U32),
        ("lost", _U64, (LOST + 1,)), ("unplaced", _U64),
        ("units", "u1", (UNITS,)), ("programs", PROGRAM_DT, (PROGRAMS,)),
    ],
    align=True,
)  # fmt: skip  # a table
CHUNK_DT = np.dtype(
    [
        ("magic", _U32),
        ("kind", _U32),
        ("self", _U64),
        ("size", _U32),
        ("epoch", _U32),
        ("used", _U32),
        ("spare", _U32),
    ],
    align=True,
)
CLOCK_DT = np.dtype([("ticks", _U64), ("boot_ns", _U64)], align=True)
PAGE_DT = np.dtype(
    [
        ("head", CHUNK_DT),
        ("proc", PROCESS_DT),
        ("exec", EXEC_DT),
        ("began", CLOCK_DT),
        ("unentered", _U32),
        ("first_used", _U32),
        ("space", _U32),
        ("mounts", _U32),
        ("first", EPISODE_DT, (FIRST,)),
    ],
    align=True,
)
EVENT_DT = np.dtype(
    [("kind", _U32), ("epoch", _U32), ("pid", _U32), ("status", "<i4"), ("t", _U64)], align=True
)
BRIEF_DT = np.dtype(
    [
        ("kind", _U32), ("state", _U32), ("open_id", _U64), ("ino", _U64), ("dev", _U32),
        ("generation", _U32), ("mode", _U32), ("flags", _U32), ("nlink", _U32), ("path", _U32),
        ("fd", "<i4"), ("run_seq", _U32), ("size_open", _U64), ("size_close", _U64),
        ("open_ns", _U64), ("close_ns", _U64), ("first_ns", _U64), ("last_ns", _U64),
        ("read_bytes", _U64), ("write_bytes", _U64), ("read_ops", _U32), ("write_ops", _U32),
        ("seq_ops", _U32), ("small_ops", _U32),
    ],
    align=True,
)  # fmt: skip  # a table
STRUCTS = {
    "th_arena": HEAD_DT,
    "th_chunk": CHUNK_DT,
    "th_clock": CLOCK_DT,
    "th_process_page": PAGE_DT,
    "th_event": EVENT_DT,
    "th_brief": BRIEF_DT,
    "th_program_known": PROGRAM_DT,
}


_MAX = 1 << 62


@dataclass(frozen=True)
class Clock:
    """Linear conversion of ticks to CLOCK_BOOTTIME."""

    ticks: int
    boot_ns: int
    ns_per_tick: float

    def boot(self, ticks: NDArray[Any]) -> NDArray[np.uint64]:
        """Convert ticks to nanoseconds of CLOCK_BOOTTIME; 0 means none and stays 0."""
        since = ticks.astype(np.int64) - np.int64(self.ticks)
        at = np.int64(self.boot_ns) + np.rint(since * self.ns_per_tick).astype(np.int64)
        return np.where(ticks == 0, 0, np.maximum(at, 1)).astype(np.uint64)


def clock_of(samples: NDArray[Any], start: dict[str, Any], end: dict[str, Any]) -> Clock:
    """Return the clock through the first and the last known sample.

    If the recorder was killed, these are samples of the processes. If all are close together,
    the slope is the frequency that the recorder measured at its start.
    """
    pairs = [_pair(start), _pair(end)]
    if len(samples):
        order = np.argsort(samples["ticks"])
        pairs += [(int(s["ticks"]), int(s["boot_ns"])) for s in samples[order[[0, -1]]]]
    known = sorted({p for p in pairs if p is not None and 0 < p[0] < _MAX and 0 < p[1] < _MAX})
    hertz = start.get("tick_hz")
    usual = 1e9 / hertz if isinstance(hertz, (int, float)) and hertz > 0 else 1.0
    if not known:
        return Clock(0, 0, usual)
    (t0, b0), (t1, b1) = known[0], known[-1]
    steep = (b1 - b0) / (t1 - t0) if t1 > t0 and b1 > b0 else usual
    trusted = b1 - b0 > 20_000_000 and 0.5 < steep / usual < 2 if usual != 1.0 else t1 > t0
    return Clock(t0, b0, steep if trusted else usual)


def _pair(data: dict[str, Any]) -> tuple[int, int] | None:
    ticks, boot = data.get("ticks"), data.get("tick_boot_ns")
    return (ticks, boot) if isinstance(ticks, int) and isinstance(boot, int) else None
