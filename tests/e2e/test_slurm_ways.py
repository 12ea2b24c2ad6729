"""Ways to start the recorder in every job, each on a real Slurm with a workflow of known edges."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.support import Run, analyze, makeflow_rules, tracehint
from tests.e2e.test_more_engines import PARSL, PARTS
from tests.e2e.test_nextflow import EDGES, PIPELINE, TASKS
from tests.support.ebpf import require_ebpf
from tests.support.engines import engine
from tests.support.slurm import Cluster, cluster, missing
from tracehint.schemas.manifest import read_manifest

pytestmark = [pytest.mark.slow, pytest.mark.engine]

PROGRAM = f"{sys.executable} -m tracehint"
MAKEFLOW = """
in.bin table.txt:
\thead -c 40000 /dev/urandom > in.bin; seq 1 5000 > table.txt

a_1.bin: in.bin table.txt
\tdd if=in.bin of=a_1.bin bs=20000 skip=0 count=1; wc -l table.txt >> a_1.bin

a_2.bin: in.bin table.txt
\tdd if=in.bin of=a_2.bin bs=20000 skip=1 count=1; wc -l table.txt >> a_2.bin

b.bin: a_1.bin a_2.bin
\tcat a_1.bin a_2.bin > b.bin

c.gz: b.bin
\tgzip -1 < b.bin > c.gz
"""


def merged(work: Path, *options: str | Path) -> Run:
    """All bundles of a folder as one run."""
    tracehint("merge", *sorted((work / "bundles").iterdir()), "-o", work / "run.trace", *options)
    return analyze(work / "run.trace")


def environment(work: Path) -> dict[str, str]:
    """What sbatch carries into the jobs."""
    return {
        "TRACEHINT_BUNDLE_DIR": str(work / "bundles"), "TRACEHINT_SHARED": str(work),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip


def test_makeflow_wrapper(slurm: Cluster, tmp_path: Path) -> None:
    if not shutil.which("makeflow"):
        pytest.skip("makeflow is not installed")
    (tmp_path / "w.mf").write_text(MAKEFLOW)
    slurm.run(
        "makeflow", "-T", "slurm", "--log-verbose", "w.mf", "--wrapper",
        f"{PROGRAM} record --quiet --collector strace --",
        cwd=tmp_path, env=environment(tmp_path),
    )  # fmt: skip
    run = merged(tmp_path, "--workflow", tmp_path / "w.mf.makeflowlog")
    rules = makeflow_rules(MAKEFLOW)
    label = {t["id"]: t["name"] for t in run.tasks.values()}
    assert sorted(label.values()) == sorted(targets[0] for targets, _, _ in rules)
    assert {t["source"] for t in run.tasks.values()} == {"both"}
    assert run.edges(label) == {
        (made[0], path, targets[0])
        for targets, sources, _ in rules for path in sources
        for made, _, _ in rules if path in made
    }  # fmt: skip
    assert "scatter" in run.labels("in.bin") and run.primary("table.txt") == "broadcast"
    assert run.primary("a_1.bin") == "reduce" and run.primary("b.bin") == "pipeline"
    # what the log declares goes with what was seen
    lint = tracehint("lint", tmp_path / "run.trace", tmp_path / "w.mf.makeflowlog",
                     "--select", "TD")  # fmt: skip
    assert "No findings" in lint.stdout


def test_task_prolog_names_what_a_plain_script_runs(slurm: Cluster, tmp_path: Path) -> None:
    """The job script's first line starts the recorder; its steps get names from the task prolog."""
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
    slurm.wait()
    run = merged(tmp_path)
    label = {t["id"]: t["name"] for t in run.tasks.values() if not t["engine"]}
    assert len(label) == 3 and {"first_0", "first_1"} <= set(label.values())
    (last,) = set(label.values()) - {"first_0", "first_1"}
    assert last.startswith("job ")
    assert run.edges(label) == {("first_0", "y", "first_1"), ("first_1", "z", last)}


SNAKEFILE = """
rule all:
    input: "total.txt"

rule count:
    input: "in_{s}.txt", "table.bin"
    output: "count_{s}.txt"
    shell: "cat table.bin > /dev/null && sort -rn {input[0]} > {output}"

rule total:
    input: expand("count_{s}.txt", s=["a", "b"])
    output: "total.txt"
    shell: "cat {input} > {output}"
"""
PROFILE = """
executor: cluster-generic
cluster-generic-submit-cmd: sbatch --parsable
jobscript: profile/job.sh
jobs: 10
seconds-between-status-checks: 1
"""
JOBSCRIPT = f"""#!/bin/bash
# properties = {{properties}}
{PROGRAM} record --quiet --collector strace -- bash -e -c "$(cat <<'END'
{{exec_job}}
END
)"
"""


def test_snakemake_profile(slurm: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("snakemake_executor_plugin_cluster_generic")
    (tmp_path / "profile").mkdir()
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "profile" / "config.yaml").write_text(PROFILE)
    (tmp_path / "profile" / "job.sh").write_text(JOBSCRIPT)
    (tmp_path / "table.bin").write_bytes(bytes(50_000))
    for name in "ab":
        (tmp_path / f"in_{name}.txt").write_text("".join(f"{i}\n" for i in range(3000)))
    slurm.run("snakemake", "--profile", "profile", cwd=tmp_path, env=environment(tmp_path))
    run = merged(tmp_path)
    assert sorted(t["type"] for t in run.tasks.values() if not t["engine"]) == [
        "count", "count", "total",
    ]  # fmt: skip
    label = {t["id"]: t["type"] for t in run.tasks.values()}
    assert run.edges(label) == {("count", f"count_{x}.txt", "total") for x in "ab"}
    assert run.primary("table.bin") == "broadcast" and run.primary("count_a.txt") == "reduce"


NEXTFLOW = """
process {{
    executor = 'slurm'
    shell = ['{python}', '-m', 'tracehint', 'record', '--quiet', '--collector', 'strace',
             '--data-root', "$launchDir", '--', 'bash', '-ue']
}}
executor {{ pollInterval = '1 sec'; queueStatInterval = '2 sec' }}
"""


def test_nextflow_shell(slurm: Cluster, tmp_path: Path) -> None:
    program = engine("nextflow")
    (tmp_path / "main.nf").write_text(PIPELINE)
    (tmp_path / "record.config").write_text(NEXTFLOW.format(python=sys.executable))
    slurm.run(program, "run", "main.nf", "-c", "record.config", "-ansi-log", "false",
              "-with-trace", "trace.txt", cwd=tmp_path, env=environment(tmp_path))  # fmt: skip
    run = merged(tmp_path, "--workflow", tmp_path / "trace.txt")
    label = {t["id"]: t["name"] for t in run.tasks.values() if not t["engine"]}
    assert sorted(label.values()) == TASKS
    assert {(p, path.rpartition("/")[2], c) for p, path, c in run.edges(label)} == EDGES
    assert {t["type"] for t in run.tasks.values()} == {"MAKE", "COUNT", "TOTAL"}
    assert all(f["path"].startswith("work/") for f in run.files.values() if f["producers"])


ON_SLURM = """provider=SlurmProvider(
            walltime="00:05:00", init_blocks=1, max_blocks=1, exclusive=False, cores_per_node=2,
            launcher=WrappedLauncher(prepend="{program} record --quiet --collector strace --"),
        ),"""


def test_parsl_launcher(slurm: Cluster, tmp_path: Path) -> None:
    """Parsl cancels its pool of workers at the end: what the recorder left is read by merge."""
    program = engine("python")
    head = (
        "from parsl.launchers import WrappedLauncher\nfrom parsl.providers import SlurmProvider\n"
    )
    local = "provider=LocalProvider(init_blocks=1, max_blocks=1),"
    assert local in PARSL
    (tmp_path / "wf.py").write_text(head + PARSL.replace(local, ON_SLURM.format(program=PROGRAM)))
    path = f"{program.parent}:{os.environ['PATH']}"
    slurm.run(program, "wf.py", cwd=tmp_path, env=environment(tmp_path) | {"PATH": path})
    slurm.wait()
    run = merged(tmp_path)
    label = {t["id"]: t["type"] for t in run.tasks.values() if not t["engine"]}
    assert sorted(label.values()) == ["cat", "seq", "sort", "sort", "sort"]
    assert run.edges(label) == {
        ("seq", "seed.txt", "sort"), *(("sort", part, "cat") for part in PARTS),
    }  # fmt: skip


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
    run = merged(tmp_path)
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
