"""Every engine's outputs have their hint before the first byte; a missing output is noticed.

One row per engine: the same small workflow (three parts, a total), unmodified, under `run`.
The kernel waits for a watcher before each access (tests/support/first_byte.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.test_more_engines import CWL, CWL_WORKFLOW
from tests.support import slurm
from tests.support.cli import TRACEHINT, tracehint
from tests.support.engines import engine
from tests.support.first_byte import Watch
from tests.support.hints import rule, save
from tests.support.once import once

pytestmark = [pytest.mark.slow, pytest.mark.engine]

WANTED = {"user.DP": b"local", "user.Replication": b"2"}
PARTS = [f"part_{n}.dat" for n in (1, 2, 3)]
TOTAL = "cat part_1.dat part_2.dat part_3.dat >total.dat\n"
MAKEFLOW = "total.dat: part_1.dat part_2.dat part_3.dat\n\t" + TOTAL
RULE = "part_{n}.dat: in\n\t{step}\n"
STEP = "sort -r in >part_{n}.dat"
FORGETS = "sort -r in >/dev/null"
SNAKEFILE = """
rule all:
    input: "total.dat"
rule part:
    input: "in"
    output: "part_{n}.dat"
    shell: "if [ {wildcards.n} = FORGOTTEN ]; then :; else sort -r {input} >{output}; fi"
rule total:
    input: expand("part_{n}.dat", n=[1, 2, 3])
    output: "total.dat"
    shell: "cat {input} >{output}"
"""
NEXTFLOW = """
process PART {
    publishDir 'out', mode: 'copy'
    input: tuple val(n), path(seed)
    output: path "part_${n}.dat"
    script: "if [ $n = FORGOTTEN ]; then :; else sort -r ${seed} >part_${n}.dat; fi"
}
process TOTAL {
    publishDir 'out', mode: 'copy'
    input: path parts
    output: path 'total.dat'
    script: "cat ${parts} >total.dat"
}
workflow { TOTAL(PART(channel.of(1, 2, 3).map { [it, file('in')] }).collect()) }
"""
PARSL = """
from parsl import File, bash_app, load
from parsl.config import Config
from parsl.executors.threads import ThreadPoolExecutor

@bash_app
def part(n, outputs=()):
    return f"if [ {n} = FORGOTTEN ]; then :; else sort -r in >{outputs[0]}; fi"

@bash_app
def total(inputs=(), outputs=()):
    return f"cat {' '.join(map(str, inputs))} >{outputs[0]}"

if __name__ == "__main__":
    with load(Config(executors=[ThreadPoolExecutor(max_threads=2)])):
        parts = [part(n, outputs=[File(f"part_{n}.dat")]).outputs[0] for n in (1, 2, 3)]
        total(inputs=parts, outputs=[File("total.dat")]).result()
"""
SHELL = "for n in 1 2 3; do [ $n = FORGOTTEN ] || sort -r in >part_$n.dat; done\n"
PARALLEL = "[ {} = FORGOTTEN ] || sort -r in >part_{}.dat"
JOB = "n=$SLURM_ARRAY_TASK_ID; [ $n = FORGOTTEN ] || sort -r in >part_$n.dat"
GLOB = ("part_?.dat", "total.dat")


def rules(head: str) -> Callable[[str], dict[str, str]]:
    """Return a function that makes a Makefile or Makeflow; one part may be forgotten."""

    def texts(forgotten: str) -> dict[str, str]:
        steps = {n: FORGETS if n == forgotten else STEP.format(n=n) for n in "123"}
        return {"w": head + "".join(RULE.format(n=n, step=step) for n, step in steps.items())}

    return texts


def one(text: str, name: str = "w") -> Callable[[str], dict[str, str]]:
    """Return a function that makes one file; the missing part's number replaces FORGOTTEN."""
    return lambda forgotten: {name: text.replace("FORGOTTEN", forgotten or "0")}


def cwl(forgotten: str) -> dict[str, str]:
    """The workflow of tests/e2e, with parts that run in a shell."""
    head = {"cwlVersion": "v1.2", "class": "CommandLineTool"}
    tools = {
        **CWL,
        "make.cwl": {**CWL["make.cwl"], "stdout": "part_0.dat"},
        "count.cwl": {
            "baseCommand": ["sh", "-c"],
            "arguments": [
                f"[ $(inputs.name) = part_{forgotten}.dat ] || sort -r $(inputs.seed.path) "
                ">$(inputs.name)"
            ],
            "outputs": {"out": {"type": "File", "outputBinding": {"glob": "$(inputs.name)"}}},
            "inputs": {"seed": "File", "name": "string"},
        },
        "total.cwl": {**CWL["total.cwl"], "stdout": "total.dat"},
    }
    files = {name: json.dumps(head | tool) for name, tool in tools.items()}
    outputs = {
        "total": {"type": "File", "outputSource": "total/out"},
        "parts": {"type": "File[]", "outputSource": "count/out"},
    }
    job = json.dumps({"n": 300, "names": PARTS})
    return {**files, "w": json.dumps({**CWL_WORKFLOW, "outputs": outputs}), "job.json": job}


@dataclass(frozen=True)
class Row:
    """An engine: its command ({0}: the engine's program), its files, its outputs."""

    command: tuple[str, ...]
    files: Callable[[str], dict[str, str]]
    program: Callable[[], str]
    made: tuple[str, ...] = GLOB
    count: int = 4


def on_path(name: str) -> Callable[[], str]:
    """Return a function that finds a program on PATH and skips the test if it is missing."""

    def found() -> str:
        place = shutil.which(name)
        return place or pytest.skip(f"{name} is not installed")

    return found


def fetched(name: str) -> Callable[[], str]:
    return lambda: os.fspath(engine(name))


SNAKEMAKE = ("{0}", "-s", "w", "-c2", "--quiet", "all")
ENGINES = {
    "shell": Row(("sh", "w"), one("set -e\n" + SHELL + TOTAL), lambda: "sh"),
    "make": Row(("{0}", "-j2", "-f", "w"), rules("all: total.dat\n" + MAKEFLOW), on_path("make")),
    "GNU parallel": Row(
        ("sh", "w"),
        one(f"set -e\nparallel -j2 --will-cite '{PARALLEL}' ::: 1 2 3\n" + TOTAL),
        on_path("parallel"),
    ),
    "Makeflow": Row(("{0}", "-j", "2", "w"), rules(MAKEFLOW), on_path("makeflow")),
    "Snakemake": Row(
        SNAKEMAKE, one(SNAKEFILE), lambda: os.fspath(Path(sys.executable).parent / "snakemake")
    ),
    "Snakemake 8": Row(SNAKEMAKE, one(SNAKEFILE), fetched("snakemake-8.30.0/bin/snakemake")),
    "Nextflow": Row(
        ("{0}", "run", "w", "-ansi-log", "false"), one(NEXTFLOW), fetched("nextflow"),
        made=("out/*.dat", "work/*/*/part_?.dat", "work/*/*/total.dat"), count=8,
    ),
    "cwltool": Row(
        ("{0}", "--quiet", "--outdir", "out", "w", "job.json"), cwl, fetched("cwltool"),
        made=("out/*.dat",),
    ),
    "cwltool in place": Row(
        ("{0}", "--quiet", "--outdir", "out", "--tmp-outdir-prefix", "tmp/", "--tmpdir-prefix",
         "tmp/", "w", "job.json"), cwl, fetched("cwltool"), made=("out/*.dat",),
    ),
    "Parsl": Row(("{0}", "w"), one(PARSL), fetched("python")),
}  # fmt: skip  # a table


def prepared(folder: Path, row: Row, forgotten: str = "") -> tuple[list[str], dict[str, str]]:
    """Write the workflow into a fresh folder; return its command and environment."""
    program = row.program()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    (folder / "in").write_text("".join(f"line a {i}\n" for i in range(300)))
    for name, text in row.files(forgotten).items():
        (folder / name).write_text(text)
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    return [word.format(program) for word in row.command], {**os.environ, "PATH": path}


def hinted(hints: Path) -> list[str]:
    """Arguments of tracehint before the command."""
    return ["run", "--no-record", "--hints", str(hints), "--"]


def made(folder: Path, row: Row) -> list[str]:
    found = (path for pattern in row.made for path in folder.glob(pattern))
    return sorted(os.fspath(p.relative_to(folder)) for p in found if not p.is_symlink())


@pytest.fixture
def hints(tmp_path: Path) -> Path:
    """Hints for parts and totals in any directory."""
    both = ("{dirs}part_{n}.dat", "{dirs}total.dat")
    return save(tmp_path, *(rule(name, DP="local", Replication="2") for name in both))


# Full runs only: another version of an engine creates its outputs in the same way; Nextflow's tasks
# are shells like the others' (test_run_engine_logs.py checks that each file has its own hint); and
# cwltool moves files as mv does in a row of test_created_programs.py.
SEEN = ("Snakemake 8", "Nextflow", "cwltool in place")
MAKING = [pytest.param(n, marks=pytest.mark.full) if n in SEEN else n for n in ENGINES]


@pytest.mark.parametrize("name", MAKING)
def test_outputs_of_an_engine_have_hints_before_the_first_byte(
    name: str, mounted: Path, watch: Watch, hints: Path
) -> None:
    row, folder = ENGINES[name], mounted / "w"
    command, env = prepared(folder, row)
    done = tracehint(*hinted(hints), *command, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    names = made(folder, row)
    late = watch.late(folder, dict.fromkeys(names, WANTED))
    assert not late, f"{len(names) - len(late)} of {len(names)} hinted\n{done.stderr}"
    assert len(names) == row.count, names


End = tuple[int, bool, bool]  # exit code; whether the forgotten part and the total exist


def ended(folder: Path, row: Row, status: int) -> End:
    """Describe a run that should forget part 2; parts that ran in parallel may vary."""
    names = {Path(path).name for path in made(folder, row)}
    return status, "part_2.dat" in names, "total.dat" in names


def forgetful(factory: pytest.TempPathFactory, name: str) -> End:
    """Return how an engine ends without hints if part 2 is forgotten; it must report that."""

    def make(folder: Path) -> None:
        row = ENGINES[name]
        command, env = prepared(folder / "w", row, forgotten="2")
        done = subprocess.run(command, cwd=folder / "w", env=env, capture_output=True)
        (folder / "end").write_text(json.dumps(ended(folder / "w", row, done.returncode)))

    end = json.loads((once(factory, f"forgetful {name}", make) / "end").read_text())
    status, written, total = end
    assert not written
    assert status or not total  # Makeflow reports it and exits with 0
    return status, written, total


# Full runs only: another version or other directories of an engine do not change its end, and the
# hints that `run` sets do not depend on the program that makes a file.
HELD = ("Snakemake 8", "cwltool", "cwltool in place", "Nextflow", "Parsl", "GNU parallel")
FORGETFUL = [pytest.param(n, marks=pytest.mark.full) if n in HELD else n for n in ENGINES]


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_forgotten_output_is_noticed_as_without_hints(
    name: str, tmp_path: Path, hints: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    row, folder = ENGINES[name], tmp_path / "w"
    command, env = prepared(folder, row, forgotten="2")
    done = tracehint(*hinted(hints), *command, cwd=folder, env=env)
    found = ended(folder, row, done.returncode)
    assert found == forgetful(tmp_path_factory, name), done.stdout + done.stderr


def test_outputs_of_a_slurm_array_have_hints_before_the_first_byte(
    mounted: Path, watch: Watch, hints: Path
) -> None:
    if slurm.missing():
        pytest.skip(slurm.missing())
    row = Row(("sbatch", "--wait", "--array=1-3", "w"), one(f"#!/bin/sh\n{JOB}\n"), lambda: "sh")
    folder = mounted / "w"
    with slurm.cluster(("node1", "node2")) as cluster:
        command, _ = prepared(folder, row)
        words = [*TRACEHINT, *hinted(hints), *command]
        done = cluster.run(*words, cwd=folder)
        names = made(folder, row)
        assert len(names) == 3
        assert not watch.late(folder, dict.fromkeys(names, WANTED)), done.stderr
        assert "hints set on 3 of 3 matching files" in done.stderr
        prepared(folder, row, forgotten="2")
        cluster.run("sh", "-c", " ".join(words) + " || test $? = 1", cwd=folder)
        assert made(folder, row) == ["part_1.dat", "part_3.dat"]
