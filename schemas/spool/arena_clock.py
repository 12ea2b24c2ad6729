"""From the processor's time stamp counter to CLOCK_BOOTTIME."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAX = 1 << 62


@dataclass(frozen=True)
class Clock:
    """A straight line through two samples."""

    ticks: int
    boot_ns: int
    ns_per_tick: float

    def boot(self, ticks: NDArray[Any]) -> NDArray[np.uint64]:
        """Nanoseconds of CLOCK_BOOTTIME; 0, which means none, stays 0."""
        since = ticks.astype(np.int64) - np.int64(self.ticks)
        at = np.int64(self.boot_ns) + np.rint(since * self.ns_per_tick).astype(np.int64)
        return np.where(ticks == 0, 0, np.maximum(at, 1)).astype(np.uint64)


def clock_of(samples: NDArray[Any], start: dict[str, Any], end: dict[str, Any]) -> Clock:
    """The line through the first and the last sample that are known.

    Of a recorder that was killed it is those of the processes; where all fall together, the
    frequency that the recorder measured at its beginning.
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
