"""How fast a batch system starts jobs: measured with a few that only record their start time."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tracehint.adapters.probe.measurements import Seen

ALONE, BURST = 3, 10  # jobs submitted one at a time, and all at once
LIMIT_S = 30.0  # until all of them have started
_POLL_S = 0.05
_TIMEOUT_S = 20
_JOB = "date +%s%N >{name}.part && mv {name}.part {name}"


def measure_jobs(seen: Seen, directory: Path, hosts: Sequence[str]) -> None:
    """Record the seconds from submission to start of a job, the seconds between starts of queued
    jobs, and the nodes' slots; nothing without Slurm. `directory`: visible to all nodes."""
    if shutil.which("sbatch") is None:
        return
    until, jobs = time.monotonic() + LIMIT_S, list[str]()
    try:
        seen.slots = _count_slots(hosts)
        for number in range(ALONE):
            begin = time.time()
            (started,) = _start_times(directory, [f"j{number}"], jobs, until)
            seen.samples["job_delay"].append(max(0.0, started - begin))
        times = sorted(_start_times(directory, [f"b{i}" for i in range(BURST)], jobs, until))
        seen.samples["job_interval"].append((times[-1] - times[0]) / (BURST - 1))
    except (OSError, ValueError, subprocess.SubprocessError):
        seen.skipped.append("starting jobs")
    finally:
        if jobs:
            _run_tool("scancel", "--quiet", *jobs)


def _start_times(
    directory: Path, names: Sequence[str], jobs: list[str], until: float
) -> list[float]:
    """Submit a job per name and return their start times, by the clocks of their nodes. Raises
    TimeoutError, and SubprocessError if `sbatch` fails."""
    for name in names:
        path = directory / name
        words = ("--parsable", "--output=/dev/null", "--chdir=/", "--ntasks=1", "--time=1")
        done = _run_tool("sbatch", *words, f"--wrap={_JOB.format(name=shlex.quote(str(path)))}")
        done.check_returncode()
        jobs.append(done.stdout.partition(";")[0].strip())
    waiting = {directory / name for name in names}
    while waiting:
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(_POLL_S)
        waiting -= set(directory.iterdir())  # listed afresh: clients cache that a name is absent
    return [int((directory / name).read_text()) / 1e9 for name in names]


def _count_slots(hosts: Sequence[str]) -> int:
    """Return the minimum number of processors for jobs over the nodes; 0: unknown."""
    words = ("--noheader", "--Node", "--format=%c")
    found = _run_tool("sinfo", *words, f"--nodes={','.join(hosts)}").stdout.split()
    found = found or _run_tool("sinfo", *words).stdout.split()
    return min(map(int, filter(str.isdigit, found)), default=0)


def _run_tool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, capture_output=True, text=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
    )
