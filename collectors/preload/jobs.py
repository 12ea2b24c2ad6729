"""Recordings of the jobs of a run: a job records itself (job/join.c) into the run's folder.

The folder is in the workflow's directory, which the nodes share. Each recording is one file, named
after its job and host. It is empty when its recorder begins and complete when the recorder has
ended (schemas/spool/packed.py). Nothing is written while the job runs; if a job is killed together
with its recorder, the empty file remains.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tracehint.collectors.hostinfo import SHARED, host_name
from tracehint.collectors.preload.library import LIBRARY, can_be_named
from tracehint.errors import InputError, TracehintError
from tracehint.schemas.recovery import JOB_SUFFIX
from tracehint.schemas.writer import safe_host

JOBS, JOB = "TRACEHINT_JOBS", "TRACEHINT_JOB"
# Variables that identify jobs, steps and processes; the same as `variables` in job/join.c.
VARIABLES = (
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURMD_NODENAME",
    "PBS_JOBID",
    "LSB_JOBID",
    "LSB_JOBINDEX",
)
SUBMIT = ("sbatch", "srun", "salloc", "qsub", "bsub")
_JOB_IDS = ("SLURM_ARRAY_JOB_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")  # of submitted jobs
_SCRIPT = "recorder.py"
_TEXT = '''"""Started by jobs of a run: becomes their recorder, else the program itself."""
import os, sys
program, argv = sys.argv[1], sys.argv[2:]
sys.path[:] = {path!r}
try:
    from tracehint.collectors.preload.job_recorder import record_program
except Exception:
    os.execv(program, argv)
status = record_program(os.path.dirname(os.path.abspath(__file__)), program, argv)
os._exit(status)  # to finalize the interpreter would take a seventh of the recorder's time
'''
_POLL_S = 0.2
_QUERY_S, _VISIBLE_S = 2.0, 5.0  # interval of Slurm queries; delay until other nodes' files appear
_MAX_RECORDINGS = 100_000  # recordings of one job on one host


def identity(env: Mapping[str, str]) -> str:
    """Return the job of a process in the form that join.c writes; empty: no job."""
    values = [env.get(name, "") for name in VARIABLES]
    return "/".join(values) + "/" if any(values) else ""


def has_batch_system() -> bool:
    """Whether jobs can be submitted from here."""
    return any(map(shutil.which, SUBMIT))


def jobs_environment(folder: Path) -> dict[str, str]:
    """Return the variables that make jobs record into `folder`; empty: no usable Python path.
    Raises TracehintError if the library cannot be preloaded."""
    why, remedy = can_be_named()
    if remedy:
        raise TracehintError(why, remedy)
    if ":" in sys.executable or not sys.executable:
        return {}
    script = folder / _SCRIPT
    script.write_text(_TEXT.format(path=[path for path in sys.path if path]), encoding="utf-8")
    before = os.environ.get("LD_PRELOAD", "")
    preload = before if str(LIBRARY) in before.split(":") else f"{LIBRARY}:{before}".rstrip(":")
    return {
        JOBS: f"{sys.executable}:{script}",
        JOB: identity(os.environ),
        "LD_PRELOAD": preload,
        SHARED: shared_directories(Path.cwd()),
    }


def shared_directories(directory: Path) -> str:
    """Return the directories that all hosts share, including the workflow's `directory`."""
    given = os.environ.get(SHARED, "")
    return ":".join(filter(None, (given, "" if ":" in str(directory) else str(directory))))


def file_of_job(folder: Path, env: Mapping[str, str]) -> Path:
    """Create and return an empty file for the job that begins. Raises InputError, OSError."""
    job = next((env[name] for name in _JOB_IDS if env.get(name)), "job")
    job = re.sub(r"\[.*\]", "", job)  # PBS: the index of an array job
    stem = f"{re.sub(r'[^A-Za-z0-9]', '_', job)[:60]}.{safe_host(host_name())}"
    for number in range(1, _MAX_RECORDINGS):
        place = folder / f"{stem}.{number}{JOB_SUFFIX}"
        try:
            place.touch(mode=0o600, exist_ok=False)
            return place
        except FileExistsError:
            continue
    raise InputError(f"{folder}: too many recordings of job {job}", "Record fewer steps.")


def recordings_in(folder: Path) -> list[Path]:
    """Return the recordings that jobs have begun in `folder`, in order."""
    return sorted(p for p in folder.glob(f"*{JOB_SUFFIX}") if not p.is_symlink())


def jobs_of(recordings: Iterable[Path]) -> set[str]:
    """Return the ids of the submitted jobs that have a recording."""
    return {path.name.partition(".")[0] for path in recordings}


def find_unfinished(recordings: Iterable[Path]) -> list[Path]:
    """Return the recordings that are still empty: their recorders have not finished."""
    return [path for path in recordings if not path.stat().st_size]


def wait_for_jobs(folder: Path, seconds: float) -> list[Path]:
    """Wait up to `seconds` for the jobs that began; return the unfinished recordings. If Slurm
    lists none of their jobs (killed with the recorder or the node), wait only _VISIBLE_S more."""
    deadline = time.monotonic() + seconds
    asked = 0.0
    while (rest := find_unfinished(recordings_in(folder))) and time.monotonic() < deadline:
        if time.monotonic() - asked >= _QUERY_S:
            asked = time.monotonic()
            if _left_queue(rest):
                deadline = min(deadline, asked + _VISIBLE_S)
        time.sleep(_POLL_S)
    return rest


def _left_queue(recordings: Iterable[Path]) -> bool:
    """Whether Slurm lists none of their jobs any more; False if squeue fails."""
    import subprocess

    try:
        words = ["squeue", "-h", "-u", str(os.getuid()), "-o", "%F"]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_VISIBLE_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return not done.returncode and jobs_of(recordings).isdisjoint(done.stdout.split())
