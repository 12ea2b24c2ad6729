"""Other load of the machine during a measurement: seconds mean nothing without it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

LOADED = 0.3  # share of the processors used by others above which seconds are marked
_GROUPS = (
    (Path("/sys/fs/cgroup/cpu"), "cpu.shares", "262144"),
    (Path("/sys/fs/cgroup"), "cpu.weight", "10000"),
)
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """Shares of the machine's processors over a run: used by the bench, by others, stolen by the
    hypervisor; the load average at the start; whether the bench had priority."""

    own: float
    others: float
    steal: float
    average: float
    preferred: bool = False


def prefer() -> bool:
    """Move this process and its future children to a control group (v1 or v2) with the highest
    processor share; return whether that succeeded (it needs root)."""
    for base, knob, most in _GROUPS:
        group = base / "tracehint-bench"
        if not (base / "cgroup.procs").exists():
            continue
        try:
            group.mkdir(exist_ok=True)
            (group / knob).write_text(most)
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            continue
        return True
    return False


@dataclass
class Watch:
    """Measures load from its creation to `stop`. `folder`: processes with it in their command line
    belong to the bench; `preferred`: the result of `prefer`."""

    folder: Path
    preferred: bool = False

    def __post_init__(self) -> None:
        self.average = os.getloadavg()[0]
        self.began, self.machine, self.own = time.monotonic(), _machine(), _own(self.folder)

    def stop(self) -> Load:
        """Return the load since the creation."""
        (busy, steal), own = _machine(), _own(self.folder)
        whole = (time.monotonic() - self.began) * (os.cpu_count() or 1)
        mine = own - self.own
        return Load(
            own=mine / whole,
            others=max(0.0, busy - self.machine[0] - mine) / whole,
            steal=(steal - self.machine[1]) / whole,
            average=self.average,
            preferred=self.preferred,
        )


def _machine() -> tuple[float, float]:
    """Return the seconds of all processors: busy, stolen."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _wait, irq, soft, steal = (int(x) / _TICK for x in words[:8])
    return user + nice + system + irq + soft, steal


def _own(folder: Path) -> float:
    """Return the processor seconds of this process and of all with the folder in their command."""
    total = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            mine = int(entry.name) == os.getpid()
            if mine or os.fsencode(folder) in (entry / "cmdline").read_bytes():
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / _TICK
        except OSError:
            continue  # it ended meanwhile
    return total
