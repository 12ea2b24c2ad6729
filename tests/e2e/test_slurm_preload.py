"""The preload collector in Slurm jobs: many tasks per node, an array, ranks by srun and by mpirun;
several nodes write to one directory, and few files are left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.e2e.slurm_runs import PROGRAM, environment
from tests.e2e.support import tracehint
from tests.support.needs import needs_preload
from tests.support.slurm import Cluster
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.engine, needs_preload()]
RECORD = f"{PROGRAM} record --quiet --collector preload --"
MOST_FILES = 15  # per recorder and node


def run(slurm: Cluster, work: Path, job: str, *options: str, seconds: float = 90) -> list[Path]:
    """Run the job script to its end and return its bundles."""
    carried = " ".join(f"{name}={value}" for name, value in environment(work).items())
    (work / "run.job").write_text(f"#!/bin/bash\nexport {carried}\n{job}\n")
    number = slurm.sbatch(*options, "run.job", cwd=work)
    slurm.wait(seconds)
    said = "\n".join(p.read_text() for p in sorted(work.glob("slurm-*.out")))
    assert slurm.state(str(number)) == "COMPLETED", said
    return sorted((work / "bundles").iterdir())


def files(bundle: Path) -> int:
    """Return the number of files of a bundle."""
    return sum(path.is_file() for path in bundle.rglob("*"))


def written(bundle: Bundle) -> dict[bytes, int]:
    """Return the bytes written by file name, for files below `out`."""
    rows = bundle.tables["opens"].to_pylist()
    mine = [r for r in rows if b"/out/" in r["path"] and r["write_bytes"]]
    return {r["path"].rpartition(b"/")[2]: r["write_bytes"] for r in mine}


def joined(work: Path, bundles: list[Path]) -> Bundle:
    """Merge all bundles into one run and check that nothing was lost."""
    tracehint("merge", *bundles, "-o", work / "run.trace")
    bundle = read_bundle(work / "run.trace")
    assert bundle.tables["losses"].to_pylist() == []
    return bundle


@pytest.mark.parametrize("tasks", [100, pytest.param(10_000, marks=pytest.mark.full)])
def test_many_tasks_on_two_nodes_leave_few_files(
    slurm: Cluster, tmp_path: Path, tasks: int
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "task.sh").write_text('printf "%${1}d" 1 > out/$SLURM_PROCID.$1\n')
    (tmp_path / "node.sh").write_text(f"seq {tasks} | xargs -P 4 -I[] sh task.sh []\n")
    bundles = run(
        slurm, tmp_path, f"srun -N2 -n2 {RECORD} sh node.sh", "-N2", seconds=90 + tasks / 25
    )
    assert len(bundles) == 2
    assert all(files(path) <= MOST_FILES for path in bundles)
    bundle = joined(tmp_path, bundles)
    assert written(bundle) == {
        b"%d.%d" % (node, i): i for node in range(2) for i in range(1, tasks + 1)
    }


def test_an_array_and_ranks_by_srun(slurm: Cluster, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    rank = 'head -c $((1000 + PMI_RANK)) /dev/zero > "out/$SLURM_ARRAY_TASK_ID.$PMI_RANK"'
    (tmp_path / "rank.sh").write_text(rank + "\n")
    bundles = run(slurm, tmp_path, f"srun -n2 --mpi=pmi2 {RECORD} sh rank.sh", "--array=1-2", "-n2")
    assert len(bundles) == 4
    found = written(joined(tmp_path, bundles))
    assert found == {b"%d.%d" % (i, r): 1000 + r for i in (1, 2) for r in (0, 1)}


def test_ranks_by_mpirun_are_in_one_bundle(slurm: Cluster, tmp_path: Path) -> None:
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    (tmp_path / "out").mkdir()
    rank = "head -c $((2000 + OMPI_COMM_WORLD_RANK)) /dev/zero > out/$OMPI_COMM_WORLD_RANK"
    (tmp_path / "rank.sh").write_text(rank + "\n")
    start = "mpirun --allow-run-as-root --oversubscribe --host localhost:3 -n 3"
    bundles = run(
        slurm, tmp_path, f"env -u SLURM_JOBID -u SLURM_JOB_ID {RECORD} {start} sh rank.sh"
    )
    assert len(bundles) == 1
    assert files(bundles[0]) <= MOST_FILES
    bundle = read_bundle(bundles[0])
    assert written(bundle) == {b"%d" % r: 2000 + r for r in range(3)}
