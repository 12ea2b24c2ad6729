"""`tracehint run` in front of a submission to PBS or LSF: its jobs are recorded and have hints.

tests/support/batch.py simulates both. tests/e2e/test_run_slurm.py uses a real Slurm.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import cli
from tests.support.batch import batch
from tests.support.needs import needs_preload
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, needs_preload()]

PBS = 'cd "$PBS_O_WORKDIR"\nN=${PBS_ARRAY_INDEX:-0}\nsort in >mid_$N\n'
LSF = "N=$LSB_JOBINDEX\nsort in >mid_$N\n"
LAST = 'cd "${PBS_O_WORKDIR:-.}"\ncat mid_* >out\n'
QSUB, BSUB = "qsub -V -W block=true", "bsub -K"


def run(folder: Path, programs: Path, *command: str) -> str:
    env = {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = cli.tracehint("run", "--collector", "preload", "--", *command, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stderr


def workflow(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "in").write_text("1\n" * 40_000)
    (folder / "job.sh").write_text(text)
    (folder / "last.sh").write_text(LAST)
    return folder


ROWS = {  # two submissions, the script of the first, its number of jobs
    "qsub": (f"{QSUB} job.sh && {QSUB} last.sh", PBS, 1),
    "qsub, array": (f"{QSUB} -J 1-2 job.sh && {QSUB} last.sh", PBS, 2),
    "bsub": (f"{BSUB} sh job.sh && {BSUB} sh last.sh", LSF, 1),
    "bsub, array": (f"{BSUB} -J 'name[1-2]' sh job.sh && {BSUB} sh last.sh", LSF, 2),
}


ONE_JOB = ("qsub", "bsub")  # arrays cover the cases of single jobs


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=[pytest.mark.full] * (row in ONE_JOB)) for row in ROWS]
)
def test_jobs_are_learned_from_and_hinted(tmp_path: Path, row: str) -> None:
    command, text, jobs = ROWS[row]
    folder = workflow(tmp_path / "wf", text)
    with batch(tmp_path) as programs:
        said = run(folder, programs, "sh", "-c", command)
        assert f"{jobs + 1} recordings of jobs on 1 host joined" in said
        assert "left no recording" not in said
        assert "learned from this run" in said
        said = run(folder, programs, "sh", "-c", command)
    assert f"hints set on {jobs} of {jobs} matching file{'s' * (jobs > 1)}" in said
    rows = read_bundle(folder / ".tracehint/runs/0002.trace").tables["settings"].to_pylist()
    made = {os.path.basename(row["path"]) for row in rows}  # noqa: PTH119
    first = 1 if jobs > 1 else 0
    assert made == {b"mid_%d" % (first + i) for i in range(jobs)}


def test_qsub_without_the_environment_is_told(tmp_path: Path) -> None:
    """Jobs run as without recording; the message names the option to add."""
    folder = workflow(tmp_path / "wf", PBS)
    with batch(tmp_path) as programs:
        said = run(folder, programs, "qsub", "-W", "block=true", "job.sh")
    assert "1 of 1 job left no recording" in said
    assert "qsub passes the environment on with -V (or #PBS -V in the script)" in said
    assert (folder / "mid_0").stat().st_size == 80_000


def test_an_array_of_pbs_is_one_submission(tmp_path: Path) -> None:
    """A job without a recording that was submitted separately is counted as missing."""
    folder = workflow(tmp_path / "wf", PBS)
    both = f"{QSUB} -J 1-3 job.sh && qsub -W block=true job.sh"
    with batch(tmp_path) as programs:
        said = run(folder, programs, "sh", "-c", both)
    assert "1 of 2 jobs left no recording" in said
