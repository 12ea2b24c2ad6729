"""Engines that submit to a real Slurm, each with its own way to start the recorder in jobs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.slurm_runs import PROGRAM, environment, merged
from tests.e2e.support import makeflow_rules, tracehint
from tests.e2e.test_more_engines import PARSL, PARTS
from tests.e2e.test_nextflow import EDGES, PIPELINE, TASKS
from tests.support.engines import engine
from tests.support.slurm import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.engine]

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

SMALL = (
    "".join(
        f"a_{i}.bin: in.bin\n\tdd if=in.bin of=a_{i}.bin bs=256000 skip={i - 1} count=1\n\n"
        for i in (1, 2)
    )
    + """
b.bin: a_1.bin a_2.bin
\tcat a_1.bin a_2.bin > b.bin

c.gz: b.bin
\tgzip -1n < b.bin > c.gz
"""
)


def test_makeflow_wrapper(slurm: Cluster, tmp_path: Path) -> None:
    if not shutil.which("makeflow"):
        pytest.skip("makeflow is not installed")
    (tmp_path / "w.mf").write_text(MAKEFLOW)
    slurm.run(
        "makeflow",
        "-T",
        "slurm",
        "--log-verbose",
        "w.mf",
        "--wrapper",
        f"{PROGRAM} record --quiet --collector strace --",
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    run = merged(slurm, tmp_path, "--workflow", tmp_path / "w.mf.makeflowlog")
    rules = makeflow_rules(MAKEFLOW)
    label = {t["id"]: t["name"] for t in run.tasks.values()}
    assert sorted(label.values()) == sorted(targets[0] for targets, _, _ in rules)
    assert {t["source"] for t in run.tasks.values()} == {"both"}
    assert run.edges(label) == {
        (made[0], path, targets[0])
        for targets, sources, _ in rules
        for path in sources
        for made, _, _ in rules
        if path in made
    }
    assert "scatter" in run.labels("in.bin") and run.primary("table.txt") == "broadcast"
    assert run.primary("a_1.bin") == "reduce" and run.primary("b.bin") == "pipeline"
    # the log's declarations match the observations
    lint = tracehint("lint", tmp_path / "run.trace", "--select", "TD")
    assert "No findings" in lint.stdout


def test_hints_of_a_run_on_slurm_act_on_slurm(slurm: Cluster, tmp_path: Path) -> None:
    """Record, learn, emit, run again: every job tags its own outputs before it writes them."""
    if not shutil.which("makeflow"):
        pytest.skip("makeflow is not installed")
    makeflow = ("makeflow", "-T", "slurm")
    program = f"{PROGRAM} record --quiet --collector strace --"
    folders = [tmp_path / name for name in ("first", "next")]
    for folder in folders:
        folder.mkdir()
        (folder / "in.bin").write_bytes(bytes(range(256)) * 2000)
        (folder / "w.mf").write_text(SMALL)
    first, after = folders
    slurm.run(*makeflow, "w.mf", "--wrapper", program, cwd=first, env=environment(first))
    merged(slurm, first, "--workflow", first / "w.mf")
    tracehint("hints", first / "run.trace", "-o", first / "hints.json")
    tracehint(
        "emit",
        first / "hints.json",
        "--workflow-engine",
        "makeflow",
        after / "w.mf",
        "-o",
        after / "hinted.mf",
    )
    slurm.run(*makeflow, "hinted.mf", cwd=after)
    for name in ("a_1.bin", "a_2.bin", "b.bin", "c.gz"):
        assert (first / name).read_bytes() == (after / name).read_bytes()
    tags = {name: os.listxattr(after / name) for name in ("a_1.bin", "a_2.bin", "b.bin")}
    assert all(tags.values()), tags


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


@pytest.mark.full  # test_run_slurm.py[cluster-generic]: the same executor, also recorded
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
    run = merged(slurm, tmp_path)
    assert sorted(t["type"] for t in run.tasks.values() if not t["engine"]) == [
        "count",
        "count",
        "total",
    ]
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


@pytest.mark.full  # test_nextflow.py covers Nextflow, the tests above recorders in engine jobs
def test_nextflow_shell(slurm: Cluster, tmp_path: Path) -> None:
    program = engine("nextflow")
    (tmp_path / "main.nf").write_text(PIPELINE)
    (tmp_path / "record.config").write_text(NEXTFLOW.format(python=sys.executable))
    slurm.run(
        program,
        "run",
        "main.nf",
        "-c",
        "record.config",
        "-ansi-log",
        "false",
        "-with-trace",
        "trace.txt",
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    run = merged(slurm, tmp_path, "--workflow", tmp_path / "trace.txt")
    label = {t["id"]: t["name"] for t in run.tasks.values() if not t["engine"]}
    assert sorted(label.values()) == TASKS
    assert {(p, path.rpartition("/")[2], c) for p, path, c in run.edges(label)} == EDGES
    assert {t["type"] for t in run.tasks.values()} == {"MAKE", "COUNT", "TOTAL"}
    assert all(f["path"].startswith("work/") for f in run.files.values() if f["producers"])


ON_SLURM = """provider=SlurmProvider(
            walltime="00:05:00", init_blocks=1, max_blocks=1, exclusive=False, cores_per_node=2,
            launcher=WrappedLauncher(prepend="{program} record --quiet --collector strace --"),
        ),"""


@pytest.mark.full  # test_more_engines.py covers Parsl, test_slurm.py workers that Slurm ends
def test_parsl_launcher(slurm: Cluster, tmp_path: Path) -> None:
    """Parsl cancels its pool of workers at the end: merge reads what the recorder left."""
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
    run = merged(slurm, tmp_path)
    label = {t["id"]: t["type"] for t in run.tasks.values() if not t["engine"]}
    assert sorted(label.values()) == ["cat", "seq", "sort", "sort", "sort"]
    assert run.edges(label) == {
        ("seq", "seed.txt", "sort"),
        *(("sort", part, "cat") for part in PARTS),
    }
