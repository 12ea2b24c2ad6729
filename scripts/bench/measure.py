"""Run a command as a process and read its cost from the operating system."""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the command become ours, with their CPU time


@dataclass(frozen=True)
class Cost:
    """Seconds of wall and processor time of a process and its children, peak MiB of the largest of
    them and, if measured (`tree`), of all together."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    all_mib: float = 0.0


def run(
    command: Sequence[str | Path],
    cwd: Path | None = None,
    ok: Sequence[int] = (0,),
    *,
    tree: bool = False,
) -> Cost:
    """Return the cost of one run. Raises RuntimeError if the exit code is not in `ok`. `tree`:
    sample the memory of all processes every 50 ms (shared pages once), add CPU time of orphans."""
    if tree:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    begin, before, peak = time.perf_counter(), os.times(), 0
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=errors, stdin=subprocess.DEVNULL
        )
        ended, status, usage = os.wait4(process.pid, os.WNOHANG if tree else 0)
        while not ended:
            peak = max(peak, _measure_pss(process.pid))
            time.sleep(0.05)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in ok:
            errors.seek(0)
            text = errors.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{command}: exit {process.returncode}\n{text}")
    spent = usage.ru_utime + usage.ru_stime
    if tree:
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        after = os.times()
        spent = after.children_user + after.children_system
        spent -= before.children_user + before.children_system
    return Cost(wall, spent, usage.ru_maxrss / 1024, peak / 1024)


def _measure_pss(root: int) -> int:
    """Return the proportional set size, in KiB, of the process tree below `root`."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    total, todo = 0, [root]
    while todo:
        one = todo.pop()
        todo += parents.get(one, [])
        with contextlib.suppress(OSError, IndexError, ValueError):
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += int(text.split("\nPss:")[1].split()[0])
    return total


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure, separately."""
    return Cost(*map(statistics.median, zip(*map(astuple, costs), strict=True)))
