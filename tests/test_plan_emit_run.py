"""A plan works in real engines: each runs the emitted file, with tasks on their planned nodes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines import engine
from tests.support.hints import rule
from tests.support.patience import PATIENCE_S
from tests.support.plans import planned, save_plan
from tests.support.slurm import Cluster, cluster, missing
from tracehint.cli import main
from tracehint.hintgen.hints.model import FilePart

pytestmark = [pytest.mark.slow, pytest.mark.engine]

PROGRAM = f"{sys.executable} -m tracehint"
HERE = 'start = ["env", "NODE={host}", "{argv}"]\n'
ROWS = '[[host]]\nname = "node1"\nslots = 2\n[[host]]\nname = "node2"\nslots = 2\n'
MAKEFLOW = r"""
a.txt: in.txt
	\$(true) echo \$(hostname) \${NODE-none} > a.txt
b c.txt: in.txt
	echo \$(hostname) \${NODE-none} > b; sort in.txt > c.txt
"out\$(touch evil).txt": a.txt b
@EXTRA=1
	cat a.txt b > 'out$(touch evil).txt'; echo \$(hostname) \${NODE-none} >> 'out$(touch evil).txt'
""".lstrip()
PLAN = {"a.txt": 0, "b": 1, "out$(touch evil).txt": 0}


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Return standard output and error of a program that must succeed."""
    done = subprocess.run(
        list(map(os.fspath, command)), cwd=cwd, text=True, capture_output=True, timeout=PATIENCE_S,
        env={**os.environ, **env},
    )  # fmt: skip  # a table
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def makeflow(folder: Path, *more: str) -> Path:
    """A directory with a workflow and the files emitted for it."""
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    (folder / "w.mf").write_text(MAKEFLOW)
    (folder / "in.txt").write_text("2\n1\n")
    hints = save_plan(folder, planned(PLAN, [FilePart("c.txt", 1, {"DP": "local"})]))
    (folder / "hosts.toml").write_text(HERE + ROWS)
    out = folder / "planned.mf"
    command = ["emit", str(hints), "--workflow-engine", "makeflow", str(folder / "w.mf")]
    assert main([*command, "-o", str(out), *more]) == 0
    return out


def test_makeflow_runs_each_rule_on_the_node_of_its_part(tmp_path: Path) -> None:
    out = makeflow(tmp_path)
    place = f"{PROGRAM} place --hosts hosts.toml --parts {out.name}.tracehint/parts --task %% --"
    said = run("makeflow", "-T", "local", "-j", "4", "--wrapper", place, out.name, cwd=tmp_path)
    words = [(tmp_path / name).read_text().split()[1] for name in ("a.txt", "b")]
    assert words == ["node1", "node2"], said
    last = (tmp_path / "out$(touch evil).txt").read_text().splitlines()
    assert last[-1].split()[1] == "node1"
    assert not (tmp_path / "evil").exists()
    assert os.getxattr(tmp_path / "c.txt", "user.DP") == b"local"
    assert run("makeflow_analyze", "-k", out.name, cwd=tmp_path) is not None


def test_makeflow_runs_when_a_node_is_away_and_says_it_once(tmp_path: Path) -> None:
    out = makeflow(tmp_path)
    check = 'check = ["test", "{host}", "!=", "node1"]\n'
    (tmp_path / "hosts.toml").write_text(HERE + check + ROWS)
    place = f"{PROGRAM} place --hosts hosts.toml --parts {out.name}.tracehint/parts --task %% --"
    said = run("makeflow", "-T", "local", "-j", "4", "--wrapper", place, out.name, cwd=tmp_path)
    words = [(tmp_path / name).read_text().split()[1] for name in ("a.txt", "b")]
    assert words == ["node2", "node2"]
    assert said.count("node1 does not answer") == 1, said
    assert "node1 is away" in said


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with cluster(("node1", "node2")) as started:
        yield started


def hosts_that_ran(folder: Path) -> list[str]:
    names = ("a.txt", "b", "out$(touch evil).txt")
    return [(folder / name).read_text().splitlines()[-1].split()[0] for name in names]


def test_slurm_runs_the_submitted_jobs_in_order_on_their_nodes(
    slurm: Cluster, tmp_path: Path
) -> None:
    makeflow(tmp_path)
    out = tmp_path / "jobs.sh"
    command = ["emit", str(tmp_path / "plan.json"), "--workflow-engine", "slurm"]
    command += [str(tmp_path / "w.mf"), "--hosts", str(tmp_path / "hosts.toml"), "-o", str(out)]
    assert main(command) == 0
    said = slurm.run("sh", "jobs.sh", "--comment=ours", cwd=tmp_path)
    assert said.stdout == "submitted; squeue shows the jobs\n"
    slurm.wait()
    assert hosts_that_ran(tmp_path) == ["node1", "node2", "node1"]
    assert not (tmp_path / "evil").exists()


def test_makeflow_tells_slurm_the_nodes(slurm: Cluster, tmp_path: Path) -> None:
    hosts = tmp_path / "h.toml"
    hosts.write_text(ROWS)
    out = makeflow(tmp_path, "--hosts", str(hosts))
    slurm.run("makeflow", "-T", "slurm", out.name, cwd=tmp_path)
    assert hosts_that_ran(tmp_path) == ["node1", "node2", "node1"]


# Snakemake ------------------------------------------------------------------------------------

SNAKEFILE = """
rule all:
    input: expand("sum_{s}.txt", s=[1, 2])
rule make:
    output: "raw_{s}.txt"
    shell: "seq 3 > {output}"
rule left:
    input: "raw_{s}.txt"
    output: temp("left_{s}.txt")
    shell: "sort -n {input} > {output}"
rule right:
    input: "raw_{s}.txt"
    output: "right_{s}.txt"
    shell: "sort -rn {input} > {output}"
rule sum:
    input: "left_{s}.txt", "right_{s}.txt"
    output: "sum_{s}.txt"
    shell: "cat {input} > {output}"
"""
SUBMIT = """#!/bin/sh
# jobs of a queue: each submitted script runs at once, and is counted
echo x >> submitted
nohup sh "$1" > "$1.log" 2>&1 < /dev/null &
echo $!
"""
JOBS = {f"{name}_{s}.txt": s - 1 for name in ("raw", "left", "right", "sum") for s in (1, 2)}


QUEUE = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", "./submit",
         "--seconds-between-status-checks", "1")  # fmt: skip  # a table
ONE_SUM = (*QUEUE, "sum_1.txt")  # four jobs, each a separate Snakemake unless grouped


def snakemake(
    folder: Path, hosts: str, tasks: dict[str, int], *more: str, text: str = SNAKEFILE
) -> str:
    """Run the emitted workflow with a simulated queue."""
    if importlib.util.find_spec("snakemake_executor_plugin_cluster_generic") is None:
        pytest.skip("snakemake-executor-plugin-cluster-generic is not installed")
    (folder / "Snakefile").write_text(text)
    (folder / "submit").write_text(SUBMIT)
    (folder / "submit").chmod(0o755)
    hints = save_plan(folder, planned(tasks, rules=[rule("x_{n}", DP="local")]))
    (folder / "hosts.toml").write_text(hosts)
    command = ["emit", str(hints), "--workflow-engine", "snakemake", str(folder / "Snakefile")]
    command += ["--hosts", str(folder / "hosts.toml"), "-o", str(folder / "hinted.smk"), "--force"]
    assert main(command) == 0
    engine = [sys.executable, "-m", "snakemake", "-s", "hinted.smk", "-j", "4"]
    return run(*engine, *(more or QUEUE), cwd=folder)


def test_snakemake_submits_the_jobs_of_a_part_together(tmp_path: Path) -> None:
    said = snakemake(tmp_path, ROWS, JOBS)
    assert (tmp_path / "sum_2.txt").read_text() == "1\n2\n3\n3\n2\n1\n"
    assert "left out" not in said and "would read without a copy" not in said, said
    # raw has two readers in the group: each part is one group of four jobs
    assert (tmp_path / "submitted").read_text().count("x") == 2, said
    assert not (tmp_path / "left_1.txt").exists(), "temp() is still temp()"
    assert "left_1.txt (nodelocal)" in said, "and never leaves its group"


@pytest.mark.full  # groups that are divided by parts: see the test after the next
def test_snakemake_groups_only_as_wide_as_a_node(tmp_path: Path) -> None:
    said = snakemake(tmp_path, ROWS.replace("slots = 2", "slots = 1"), JOBS, *ONE_SUM)
    assert (tmp_path / "sum_1.txt").read_text() == "1\n2\n3\n3\n2\n1\n"
    assert (tmp_path / "submitted").read_text().count("x") > 1, said


@pytest.mark.parametrize(
    ("minutes", "together"), [pytest.param(0, False, marks=pytest.mark.full), (15, True)]
)
def test_snakemake_asks_for_no_time_that_nobody_gives(
    tmp_path: Path, minutes: int, together: bool
) -> None:
    """A group of three levels of 5 minutes needs 15, more than any job requests by itself."""
    text = SNAKEFILE.replace("    shell:", "    resources: runtime=5\n    shell:")
    hosts = ROWS.replace("slots = 2", f"slots = 2\nminutes = {minutes}")
    said = snakemake(tmp_path, hosts, JOBS, *ONE_SUM, text=text)
    assert (tmp_path / "sum_1.txt").read_text() == "1\n2\n3\n3\n2\n1\n"
    count = (tmp_path / "submitted").read_text().count("x")
    assert (count == 1) == together, said
    assert "left out" not in said, said


@pytest.mark.full  # the emitted rules are those of the test above with parts exchanged
def test_snakemake_never_groups_across_parts(tmp_path: Path) -> None:
    across = {**JOBS, "right_1.txt": 1, "right_2.txt": 0}
    said = snakemake(tmp_path, ROWS, across, *ONE_SUM)
    assert (tmp_path / "sum_1.txt").read_text() == "1\n2\n3\n3\n2\n1\n"
    assert (tmp_path / "submitted").read_text().count("x") > 1, said
    assert "left out" not in said, said


def test_snakemake_says_what_undoes_the_hints(tmp_path: Path) -> None:
    said = snakemake(tmp_path, ROWS, JOBS, "-n", "--keep-storage-local-copies")
    assert "would read without a copy" in said


@pytest.mark.full
@pytest.mark.parametrize("version", ["8.20.0", "8.30.0", "9.0.0"])
def test_other_snakemakes_group_as_well(tmp_path: Path, version: str) -> None:
    program = engine(f"snakemake-{version}/bin/snakemake")
    snakemake(tmp_path, ROWS, JOBS, "-n")
    queue = [*QUEUE, "-j", "4", "--quiet", "all"]
    for more in (["-n"], ["-n", "--quiet"], queue):
        run(program, "-s", "hinted.smk", *more, cwd=tmp_path)
    assert (tmp_path / "sum_2.txt").read_text() == "1\n2\n3\n3\n2\n1\n"
    assert (tmp_path / "submitted").read_text().count("x") == 2


@pytest.mark.parametrize(
    "more", [pytest.param(("--quiet", "all"), marks=pytest.mark.full), ("-n", "--quiet")]
)
def test_snakemake_starts_whatever_is_asked(tmp_path: Path, more: tuple[str, ...]) -> None:
    assert "left out" not in snakemake(tmp_path, ROWS, JOBS, *more)


@pytest.mark.full
def test_snakemakes_own_executor_for_slurm_sends_groups_to_their_nodes(
    slurm: Cluster, tmp_path: Path
) -> None:
    program = engine("snakemake-9.27.1/bin/snakemake")
    text = SNAKEFILE.replace("cat {input}", "hostname > where_{wildcards.s}; cat {input}")
    snakemake(tmp_path, ROWS, JOBS, "-n", text=text)
    (tmp_path / "bin").mkdir()
    # the executor removes Slurm's variables from its jobs, but this Slurm is found only by them
    conf = slurm.env["SLURM_CONF"]
    wrapper = f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which("srun")} "$@"\n'
    (tmp_path / "bin" / "srun").write_text(wrapper)
    (tmp_path / "bin" / "srun").chmod(0o755)
    said = slurm.run(
        program, "-s", "hinted.smk", "-j", "4", "--executor", "slurm",
        "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "3",
        "--default-resources", "slurm_account=x", "--seconds-between-status-checks", "1",
        cwd=tmp_path, timeout=PATIENCE_S,
        env={"PATH": f"{tmp_path / 'bin'}:{program.parent}:{os.environ['PATH']}"},
    ).stderr  # fmt: skip  # a table
    assert said.count("has been submitted with SLURM jobid") == 2, said
    assert [(tmp_path / f"where_{s}").read_text() for s in (1, 2)] == ["node1\n", "node2\n"]


# Nextflow and Parsl ---------------------------------------------------------------------------

NEXTFLOW = '''
process MAKE { output: path 'seed.txt'
    script: """seq 1 4 > seed.txt
echo $task.ext.tracehint_part $task.clusterOptions > $launchDir/said_make""" }
process COUNT {
    tag "$n"
    input: path seed; each n
    output: path "count_${n}.txt"
    script: """head -n $n $seed > count_${n}.txt
echo $task.ext.tracehint_part $task.clusterOptions > $launchDir/said_$n""" }
workflow { COUNT(MAKE(), [1, 2, 3]) }
'''


def test_nextflow_tells_each_task_its_part(tmp_path: Path) -> None:
    nextflow = engine("nextflow")
    (tmp_path / "main.nf").write_text(NEXTFLOW)
    tasks = {"MAKE": 1, "COUNT (1)": 0, "COUNT (2)": 1} | {f"COUNT (x{k})": 0 for k in range(900)}
    hints = save_plan(tmp_path, planned(tasks))
    command = [
        "emit",
        str(hints),
        "--workflow-engine",
        "nextflow",
        "-o",
        str(tmp_path / "h.config"),
    ]
    assert main([*command, "--hosts", str(tmp_path / "hosts.toml")]) == 0
    run(nextflow, "run", "main.nf", "-c", "h.config", "-ansi-log", "false", cwd=tmp_path)
    said = {n: (tmp_path / f"said_{n}").read_text().split() for n in ("make", "1", "2", "3")}
    assert said == {
        "make": ["1", "--nodelist=node2"],
        "1": ["0", "--nodelist=node1"],
        "2": ["1", "--nodelist=node2"],
        "3": ["null"],
    }


PARSL = """
import parsl, sys
from parsl.config import Config
from parsl.executors.threads import ThreadPoolExecutor
import tracehint_parts

def make(label, node):
    assert node in ("node1", "node2"), node
    return ThreadPoolExecutor(label=label, max_threads=1)

def write(text, outputs=()):
    return "echo " + text + " > " + outputs[0].filepath

if __name__ == "__main__":
    parsl.load(Config(executors=tracehint_parts.executors(make)))
    app = tracehint_parts.planned(parsl.bash_app, write)
    calls = [app(f"t{k}", outputs=[parsl.File(f"f{k}.txt")]) for k in range(4)]
    calls.append(app("named", outputs=[parsl.File("other.txt")], tracehint_task="by name"))
    for call in calls:
        call.result()
        print("RAN", call.task_record["executor"])
    parsl.dfk().cleanup()
"""


def test_parsl_runs_each_call_on_the_executor_of_its_part(tmp_path: Path) -> None:
    python = engine("python")
    tasks = {"f0.txt": 0, "f1.txt": 1, "f2.txt": 0, "by name": 1}
    hints = save_plan(tmp_path, planned(tasks))
    out = tmp_path / "tracehint_parts.py"
    command = ["emit", str(hints), "--workflow-engine", "parsl", "-o", str(out)]
    assert main([*command, "--hosts", str(tmp_path / "hosts.toml")]) == 0
    (tmp_path / "program.py").write_text(PARSL)
    said = re.findall(r"^RAN (.*)$", run(python, "program.py", cwd=tmp_path), re.MULTILINE)
    part = [f"tracehint_part_{k}" for k in (0, 1)]
    assert said[:3] == [part[0], part[1], part[0]]
    assert said[3] in part
    assert said[4] == part[1]
    assert (tmp_path / "f3.txt").read_text() == "t3\n"
    assert json.loads(out.with_suffix(".json").read_text())["tasks"] == tasks
