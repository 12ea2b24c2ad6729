"""`tracehint run` of workflows whose jobs a real Slurm starts: it learns from the jobs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.support import analyze
from tests.e2e.test_slurm_engines import SNAKEFILE
from tests.support.cli import TRACEHINT
from tests.support.engines import engine
from tests.support.needs import needs_preload
from tests.support.slurm import Cluster
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.engine, needs_preload()]
RUN = [*TRACEHINT, "run", "--"]
LINES = 200_000

ARRAY = """#!/bin/sh
#SBATCH --mem=100
sort -r in >part_$SLURM_ARRAY_TASK_ID.dat
"""
LAST = """#!/bin/sh
cat part_1.dat part_2.dat part_3.dat >total.dat
"""
SCRIPT = "sbatch --wait --array=1-3 part.job && sbatch --wait last.job && srun wc -c total.dat"


def afresh(folder: Path, *made: str) -> None:
    """Reset the workflow to the state before its first run; keep what tracehint learned."""
    folder.mkdir(exist_ok=True)
    for pattern in (*made, ".snakemake", "slurm-*.out"):
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_jobs_and_steps_of_a_script(slurm: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    for number in (1, 2):
        afresh(folder, "*.dat")
        (folder / "in").write_text("".join(f"line {i}\n" for i in range(LINES)))
        (folder / "part.job").write_text(ARRAY)
        (folder / "last.job").write_text(LAST)
        said = slurm.run(*RUN, "sh", "-c", SCRIPT, cwd=folder).stderr
        assert "5 recordings of jobs on" in said, said
        assert "left no recording" not in said
        assert ("hints set on 3 of 3 matching files" in said) == (number == 2)
    assert not list((folder / ".tracehint/runs").glob("jobs-*"))
    run = analyze(folder / ".tracehint/runs/0001.trace")
    assert run.primary("part_1.dat") == "reduce"
    assert run.analysis["run"]["requested"]["slurm_script"] == {
        "cores": 1,
        "memory_bytes": 100 << 20,
    }
    assert {"user.DP"} <= set(os.listxattr(folder / "part_1.dat"))
    assert read_bundle(folder / ".tracehint/runs/0001.trace").manifest.exit_status == 0


JOB_SCRIPT = "slurm_script"  # with the slurm executor, the script that starts the rule by srun
EXECUTORS = {
    "cluster-generic": ("--cluster-generic-submit-cmd", "sbatch --parsable"),
    "slurm": ("--slurm-no-account", "--slurm-status-command", "squeue",
              "--slurm-init-seconds-before-status-checks", "1"),
}  # fmt: skip  # a table


def path_with_srun(slurm: Cluster, folder: Path) -> str:
    """Return a PATH with an srun for this cluster: the executor unsets SLURM_CONF in its jobs."""
    own = folder / "bin"
    own.mkdir()
    conf, srun = slurm.env["SLURM_CONF"], shutil.which("srun")
    (own / "srun").write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {srun} "$@"\n')
    (own / "srun").chmod(0o755)
    return f"{own}:{os.environ['PATH']}"


# Both submit by sbatch; `slurm` starts each rule again by srun and takes twice as long.
USUAL = "cluster-generic"
CASES = [pytest.param(n, marks=[pytest.mark.full] * (n != USUAL)) for n in EXECUTORS]


@pytest.mark.parametrize("executor", CASES)
def test_snakemake_with_jobs_of_slurm(slurm: Cluster, tmp_path: Path, executor: str) -> None:
    """Snakemake treats a job's marker as its end, so the recordings end later. Its slurm executor
    runs each rule by srun within the job."""
    folder, program = tmp_path / "w", engine("snakemake-9.27.1/bin/snakemake")
    words = (program, "-j4", "--executor", executor, *EXECUTORS[executor],
             "--seconds-between-status-checks", "1")  # fmt: skip  # a table
    env = {"PATH": path_with_srun(slurm, tmp_path)}
    for number in (1, 2):
        afresh(folder, "*.txt")
        (folder / "Snakefile").write_text(SNAKEFILE)
        (folder / "table.bin").write_bytes(bytes(3_000_000))
        for name in "ab":
            text = "".join(f"{i}\n" for i in range(LINES))
            (folder / f"in_{name}.txt").write_text(text)
        said = slurm.run(*RUN, *words, cwd=folder, env=env, timeout=400).stderr
        assert "3 recordings of jobs on" in said, said
        assert ("hints set on 2 of 2 matching files" in said) == (number == 2)
        slurm.wait()
        run = analyze(folder / f".tracehint/runs/{number:04}.trace")
        kinds = sorted(t["type"] for t in run.tasks.values() if not t["engine"])
        assert [kind for kind in kinds if kind != JOB_SCRIPT] == ["count", "count", "total"]


def test_a_job_without_a_recording_is_told(slurm: Cluster, tmp_path: Path) -> None:
    """One job that Slurm starts without our environment, and one that outlives the run."""
    (tmp_path / "job").write_text("#!/bin/sh\nwhile [ -e wait ]; do sleep 1; done; echo x >$1\n")
    (tmp_path / "wait").touch()
    script = (
        "sbatch job a; sbatch --export=NONE job b; "
        "until ls -d .tracehint/runs/jobs-*/*.job; do sleep 0.1; done"
    )
    try:
        said = slurm.run(*RUN, "sh", "-c", script, cwd=tmp_path, timeout=300).stderr
    finally:
        (tmp_path / "wait").unlink()
    assert "2 of 2 jobs left no recording: 1 job started no recorder" in said, said
    assert "1 recording unfinished after 30 s" in said
    slurm.wait()
    (left,) = (tmp_path / ".tracehint/runs").glob("jobs-*/*.job")
    assert read_bundle(left).manifest.complete
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "x\n"
    said = slurm.run(*RUN, "true", cwd=tmp_path, timeout=300).stderr
    assert "0001.trace: 1 recording of jobs on 1 host joined" in said
    assert not left.exists()
    wrote = read_bundle(tmp_path / ".tracehint/runs/0001.trace").tables["opens"].to_pylist()
    assert any(row["path"].endswith(b"/a") and row["write_bytes"] == 2 for row in wrote)
