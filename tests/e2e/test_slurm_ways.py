"""Other ways to start the recorder on a real Slurm: first line, prologs, one per node."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.slurm_runs import PROGRAM, environment, merged
from tests.e2e.support import analyze
from tests.support.ebpf import require_ebpf
from tests.support.slurm import Cluster, cluster, missing
from tracehint.schemas.manifest import read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.engine]


def test_task_prolog_names_what_a_plain_script_runs(slurm: Cluster, tmp_path: Path) -> None:
    """The job script's first line starts the recorder; the task prolog names its steps."""
    (tmp_path / "prolog.sh").write_text(
        '#!/bin/sh\necho "export TRACEHINT_TASK=${SLURM_JOB_NAME}_${SLURM_STEP_ID}"\n'
    )
    (tmp_path / "prolog.sh").chmod(0o755)
    (tmp_path / "two.job").write_text(
        f"#!/bin/bash\nexport SLURM_TASK_PROLOG={tmp_path}/prolog.sh\n"
        f"record='{PROGRAM} record --quiet --collector strace --'\n"
        'srun --task-prolog="$SLURM_TASK_PROLOG" $record sh -c "seq 900 > x; sort x > y"\n'
        'srun --task-prolog="$SLURM_TASK_PROLOG" $record sort -r y -o z\n'
    )
    (tmp_path / "one.job").write_text(
        f"#!/usr/bin/env -S {PROGRAM} record --quiet --collector strace -- bash\n"
        "#SBATCH --job-name=last\ngzip -1 < z > z.gz\nrm z\n"
    )
    env = environment(tmp_path)
    first = slurm.sbatch("--job-name=first", "two.job", cwd=tmp_path, env=env)
    slurm.sbatch(f"--dependency=afterok:{first}", "one.job", cwd=tmp_path, env=env)
    run = merged(slurm, tmp_path)
    label = {t["id"]: t["name"] for t in run.tasks.values() if not t["engine"]}
    assert len(label) == 3 and {"first_0", "first_1"} <= set(label.values())
    (last,) = set(label.values()) - {"first_0", "first_1"}
    assert last.startswith("job ")
    assert run.edges(label) == {("first_0", "y", "first_1"), ("first_1", "z", last)}


NODE_JOB = """#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2
srun --overlap --ntasks-per-node=1 {program} record --node &
for i in 1 2 3 4; do
    srun --overlap -N1 -n1 --relative=$((i % 2)) \\
        {program} record --node --wait 30 -- sh -c "cat table.txt > part_$i.txt" &
    tasks="$tasks $!"
done
wait $tasks
srun --overlap -N1 -n1 {program} record --node --wait 30 -- sh -c "cat part_*.txt > all.txt"
srun --overlap --ntasks-per-node=1 {program} record --node --stop
wait
"""


@pytest.mark.ebpf
def test_one_recorder_per_node_of_an_allocation(slurm: Cluster, tmp_path: Path) -> None:
    require_ebpf()
    (tmp_path / "table.txt").write_text("x" * 50_000)
    (tmp_path / "node.job").write_text(NODE_JOB.format(program=PROGRAM))
    slurm.sbatch("node.job", cwd=tmp_path, env=environment(tmp_path))
    slurm.wait()
    printed = "".join(p.read_text() for p in tmp_path.glob("slurm-*.out"))
    assert len(list((tmp_path / "bundles").iterdir())) == 2, printed
    run = merged(slurm, tmp_path)
    tasks = [t for t in run.tasks.values() if not t["engine"]]
    assert len(tasks) == 5, [t["command"] for t in tasks]
    label = {t["id"]: t["command"][-11:] for t in tasks}
    assert {path for _, path, _ in run.edges(label)} == {f"part_{i}.txt" for i in range(1, 5)}
    assert run.primary("part_1.txt") == "reduce" and run.primary("table.txt") == "broadcast"
    assert {t["host"] for t in tasks} == {"node1", "node2"}


@pytest.mark.ebpf
def test_prolog_of_the_nodes_starts_one_recorder_for_all_jobs(tmp_path: Path) -> None:
    """The centre's own way: the first job's prolog starts it, jobs join, it ends when idle."""
    require_ebpf()
    if lost := missing():
        pytest.skip(lost)
    (tmp_path / "in.txt").write_text("x" * 50_000)
    (tmp_path / "copy.job").write_text(
        f"#!/bin/bash\n{PROGRAM} record --node --wait 30 -- cp $1 $2\n"
    )
    start = f"export TRACEHINT_BUNDLE_DIR={tmp_path}/bundles\n{PROGRAM} record --node --idle 4"
    with cluster(("node1",), prolog=f"{start} --start >/dev/null") as slurm:
        env = environment(tmp_path)
        one = slurm.sbatch("copy.job", "in.txt", "one.txt", cwd=tmp_path, env=env)
        slurm.sbatch("copy.job", "in.txt", "two.txt", cwd=tmp_path, env=env)
        after = f"--dependency=afterok:{one}"
        slurm.sbatch(after, "copy.job", "one.txt", "end.txt", cwd=tmp_path, env=env)
        slurm.wait()
        wait_for(lambda: (tmp_path / "bundles").is_dir())
        (bundle,) = (tmp_path / "bundles").iterdir()
        wait_for(lambda: read_manifest(bundle).complete)
    run = analyze(bundle)
    label = {t["id"]: t["command"] for t in run.tasks.values() if not t["engine"]}
    assert sorted(label.values()) == [
        "cp in.txt one.txt",
        "cp in.txt two.txt",
        "cp one.txt end.txt",
    ]
    assert run.edges(label) == {("cp in.txt one.txt", "one.txt", "cp one.txt end.txt")}
    assert {t["name"] for t in run.tasks.values()} == {"job 1", "job 2", "job 3"}


def wait_for(true: Callable[[], bool]) -> None:
    for _ in range(300):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come so far")
