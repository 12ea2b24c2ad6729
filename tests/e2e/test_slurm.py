"""A real Slurm of two nodes: a job, an array of 4 and dependent jobs, each recorded separately."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.support import Run, analyze, tracehint
from tests.support.patience import until
from tests.support.slurm import Cluster
from tracehint.collectors.ebpf import EbpfCollector

pytestmark = [pytest.mark.slow, pytest.mark.engine]

TASKS = 4
PART = 3000  # bytes of in.bin that one array element reads
PROGRAM = f"{sys.executable} -m tracehint"
# As in the how-to page: the recorder runs inside the job, started by srun.
RECORD = f"srun {PROGRAM} record --quiet --collector strace --"
SCRIPTS = {
    "make.sh": f"head -c {TASKS * PART} /dev/urandom > in.bin; seq 1 9000 > table.txt",
    "map.sh": f"dd if=in.bin of=part_$1.bin bs={PART} skip=$(($1 - 1)) count=1 2>/dev/null\n"
    "cat table.txt | wc -l >> part_$1.bin",
    "reduce.sh": "cat part_*.bin > total.bin",
    "check.sh": "gzip -1 < total.bin > check_$SLURM_PROCID.gz",
    "ranks.sh": "cat total.bin > rank_$PMI_RANK.bin",
}
JOBS = {
    "make.job": f"{RECORD} sh make.sh",
    "map.job": f"{RECORD} sh map.sh $SLURM_ARRAY_TASK_ID",
    "reduce.job": f"{RECORD} sh reduce.sh",
    "check.job": f"srun -n2 {PROGRAM} record --quiet --collector strace -- sh check.sh",
    # as an MPI program is started: its ranks are one task
    "ranks.job": f"srun -n2 --mpi=pmi2 {PROGRAM} record --quiet --collector strace -- sh ranks.sh",
}


def stop_at_once(slurm: Cluster, job: int) -> None:
    slurm.run("scancel", str(job))


def let_time_run_out(slurm: Cluster, job: int) -> None:
    """Set the end time; the controller checks time limits every half minute."""
    slurm.run("scontrol", "update", f"JobId={job}", "EndTime=now+1")


# SIGTERM to every process of the job, the recorder's included, then SIGKILL
ENDINGS = {
    "srun-scancel": ("srun", "strace", stop_at_once, "CANCELLED"),
    "exec-scancel": ("exec", "strace", stop_at_once, "CANCELLED"),
    "srun-limit": ("srun", "strace", let_time_run_out, "TIMEOUT"),
    "srun-ebpf": ("srun", "ebpf", stop_at_once, "CANCELLED"),
}
LONG = "seq 1 20000 > out.txt; sort -rn out.txt > sorted.txt; touch up; sleep 600; echo > never"


Ending = dict[str, tuple[Path, int]]


@pytest.fixture(scope="module")
def ending(slurm: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Ending:
    """A folder and a job per ending; the job's end is already requested."""
    jobs = {}
    for name, (start, collector, _, _) in ENDINGS.items():
        if collector == "ebpf" and not EbpfCollector().check().usable:
            continue
        work = tmp_path_factory.mktemp(name)
        (work / "work.sh").write_text(LONG)
        (work / "long.job").write_text(
            f"#!/bin/bash\n{start} {PROGRAM} record --quiet --collector {collector} "
            "-o long.trace -- sh work.sh\n"
        )
        jobs[name] = (work, slurm.sbatch("long.job", cwd=work))
    for name, (work, job) in jobs.items():
        until((work / "up").exists, f"{name} begins")
        ENDINGS[name][2](slurm, job)
    return jobs


@pytest.fixture(scope="module")
def merged(
    slurm: Cluster, ending: Ending, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Run, dict[str, int]]:
    """The merged run and each job's number; the jobs of `ending` end meanwhile."""
    _ = ending
    work = tmp_path_factory.mktemp("array")
    write(work)
    job = {"make": slurm.sbatch("make.job", cwd=work)}
    for name, before, *more in (
        ("map", "make", f"--array=1-{TASKS}"),
        ("reduce", "map"),
        ("check", "reduce", "--ntasks=2"),
        ("ranks", "reduce", "--nodes=1", "--ntasks=2"),
    ):
        after = f"--dependency=afterok:{job[before]}"
        job[name] = slurm.sbatch(after, *more, f"{name}.job", cwd=work)
    slurm.wait()
    assert {slurm.state(str(job[name])) for name in ("check", "ranks")} == {"COMPLETED"}, outputs(
        work
    )
    bundles = sorted((work / "bundles").iterdir())
    assert len(bundles) == 1 + TASKS + 1 + 2 + 2, outputs(work)
    tracehint("merge", *bundles, "-o", work / "run.trace")
    return analyze(work / "run.trace"), job


def write(work: Path) -> None:
    """Write the scripts and their jobs."""
    for name, text in SCRIPTS.items():
        (work / name).write_text(text + "\n")
    for name, text in JOBS.items():
        (work / name).write_text(
            f"#!/bin/bash\nexport TRACEHINT_BUNDLE_DIR={work}/bundles TRACEHINT_SHARED={work}\n"
            f"{text}\n"
        )


def outputs(work: Path) -> str:
    """Return the output of the jobs."""
    return "\n".join(p.read_text() for p in sorted(work.glob("slurm-*.out")))


def test_each_job_element_and_process_is_a_task(merged: tuple[Run, dict[str, int]]) -> None:
    run, job = merged
    assert {t["name"] for t in run.tasks.values()} == {
        f"job {job['make']}.0",
        *(f"job {job['map']}_{i}.0" for i in range(1, TASKS + 1)),
        f"job {job['reduce']}.0",
        *(f"job {job['check']}.0 task {i}" for i in range(2)),
        f"job {job['ranks']}.0",
    }
    assert not any(t["engine"] for t in run.tasks.values())
    assert {t["host"] for t in run.tasks.values()} == {"node1", "node2"}
    assert {t["exit_status"] for t in run.tasks.values()} == {0}


def test_edges_are_the_true_ones(merged: tuple[Run, dict[str, int]]) -> None:
    run, job = merged
    label = {t["id"]: t["name"].removeprefix("job ") for t in run.tasks.values()}
    elements = {i: f"{job['map']}_{i}.0" for i in range(1, TASKS + 1)}
    made, reduced = f"{job['make']}.0", f"{job['reduce']}.0"
    assert run.edges(label) == {
        *((made, name, e) for e in elements.values() for name in ("in.bin", "table.txt")),
        *((e, f"part_{i}.bin", reduced) for i, e in elements.items()),
        *((reduced, "total.bin", f"{job['check']}.0 task {i}") for i in range(2)),
        (reduced, "total.bin", f"{job['ranks']}.0"),
    }


def test_patterns_are_the_true_ones(merged: tuple[Run, dict[str, int]]) -> None:
    run, _ = merged
    assert "scatter" in run.labels("in.bin")
    assert run.primary("table.txt") == "broadcast"
    assert run.primary("total.bin") == "broadcast"
    for i in range(1, TASKS + 1):
        assert run.primary(f"part_{i}.bin") == "reduce"
    assert run.analysis["run"]["completeness"]["score"] == 1


@pytest.mark.parametrize("how", ENDINGS)
def test_job_that_was_ended_leaves_a_bundle(slurm: Cluster, ending: Ending, how: str) -> None:
    if how not in ending:
        pytest.skip("eBPF recording is not possible here")
    work, job = ending[how]
    slurm.wait()
    assert slurm.state(str(job)) == ENDINGS[how][3], outputs(work)
    tracehint("merge", work / "long.trace", "-o", work / "run.trace")
    run = analyze(work / "run.trace", "--data-root", os.fspath(work))
    label = {t["id"]: t["type"] for t in run.tasks.values()}
    assert run.edges(label) == {("seq", "out.txt", "sort")}
    assert not any(f["path"] == "never" for f in run.files.values())
    assert "disk" not in str(run.analysis["run"]["completeness"]["notes"])
