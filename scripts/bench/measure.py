"""Run a command as a whole process and read its cost from the operating system."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Seconds of wall and processor time of a process and its children, peak memory in MiB."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def run(command: Sequence[str | Path], cwd: Path | None = None, ok: Sequence[int] = (0,)) -> Cost:
    """Cost of one run. Raises RuntimeError when the exit code is not one of `ok`."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in ok:
        raise RuntimeError(f"{command}: exit {process.returncode}\n{errors.decode()[-2000:]}")
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each figure by itself."""
    return Cost(
        statistics.median(c.wall_s for c in costs),
        statistics.median(c.cpu_s for c in costs),
        statistics.median(c.peak_mib for c in costs),
    )


def pairs(
    a: Sequence[str | Path], b: Sequence[str | Path], count: int, cwd: Path | None = None
) -> tuple[list[Cost], list[Cost]]:
    """Costs of a and b in turn, A B A B ..., after one warm-up of each."""
    run(a, cwd)
    run(b, cwd)
    costs: tuple[list[Cost], list[Cost]] = ([], [])
    for _ in range(count):
        costs[0].append(run(a, cwd))
        costs[1].append(run(b, cwd))
    return costs
