"""The real workflows that every lint rule is judged on: how each is made, run and declared."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import test_engines, test_more_engines, test_nextflow
from tests.e2e.real.compare import missing
from tests.e2e.real.model import Workflow
from tests.e2e.real.workflows import WORKFLOWS
from tests.e2e.support import tracehint
from tests.support.engines import ROOT, engine

# The inputs are small: at the usual thresholds most rules would have nothing to say.
THRESHOLDS = """\
[lint]
min-bytes = 4096
min-storage-bytes = 16384
tiny-file-count = 10
straggler-seconds = 0.1
"""


@dataclass(frozen=True)
class LintRun:
    """`declared`: what `lint` gets as WORKFLOW, below the working directory; "" is nothing."""

    name: str
    prepare: Callable[[Path], None]
    command: Callable[[], tuple[str, ...]]
    declared: str = ""
    absent: Callable[[], list[str]] = list


def _real(workflow: Workflow) -> LintRun:
    declared = next((w for w in workflow.command if w.endswith(".makeflow")), "")
    if workflow.command[0] == "snakemake":
        declared = "."
    command = workflow.command
    return LintRun(
        workflow.name, workflow.prepare, lambda: command, declared, lambda: missing(workflow)
    )


def _demo(folder: Path) -> None:
    shutil.copytree(ROOT / "datasets" / "demo", folder, dirs_exist_ok=True)


def _texts(**files: str | bytes) -> Callable[[Path], None]:
    """Files by name; `__` stands for the dot of an extension."""

    def prepare(folder: Path) -> None:
        for name, text in files.items():
            data = text if isinstance(text, bytes) else text.encode()
            (folder / name.replace("__", ".")).write_bytes(data)

    return prepare


def _cwl(folder: Path) -> None:
    for name, tool in test_more_engines.CWL.items():
        head = {"cwlVersion": "v1.2", "class": "CommandLineTool"}
        (folder / name).write_text(json.dumps(head | tool))
    (folder / "wf.cwl").write_text(json.dumps(test_more_engines.CWL_WORKFLOW))
    (folder / "job.json").write_text(json.dumps({"n": 20000, "names": test_more_engines.PARTS}))


def _snakemake() -> tuple[str, ...]:
    return (str(Path(sys.executable).parent / "snakemake"), "--cores", "2", "--quiet", "all")


def _no_snakemake() -> list[str]:
    return [] if (Path(sys.executable).parent / "snakemake").exists() else ["snakemake"]


def _needs(*programs: str) -> Callable[[], list[str]]:
    return lambda: [program for program in programs if not shutil.which(program)]


def _parsl() -> tuple[str, ...]:
    program = engine("python")
    return ("env", f"PATH={program.parent}:{os.environ['PATH']}", str(program), "wf.py")


# `rule all` asks for the counts and the sorted table; the table is read by two rules that know
# nothing of each other; both write logs, and one writes a by-product.
DELIVERY = """
rule all:
    input: "sorted.txt", "depth.txt", "stats.txt"

rule sort:
    input: "data.txt"
    output: "sorted.txt"
    log: "logs/sort.log"
    shell: "(sort -n {input} > {output}; echo sorted) 2> {log} >&2"

rule stats:
    input: "sorted.txt"
    output: "stats.txt"
    log: "logs/stats.log"
    shell: "wc -l {input} > {output} 2> {log}; echo done >> {log}"

rule depth:
    input: "sorted.txt"
    output: "depth.txt"
    shell: "sleep 1; uniq -c {input} > {output}; echo depth of {input} > depth.out"
"""
DATA = "".join(f"{k * 7919 % 100_003}\n" for k in range(60_000))

RUNS = (
    *(_real(workflow) for workflow in WORKFLOWS),
    LintRun("demo", _demo, lambda: ("sh", "run.sh")),
    LintRun(
        "demo-makeflow", _demo, lambda: ("makeflow", "-j", "2", "demo.makeflow"),
        "demo.makeflow", _needs("makeflow"),
    ),
    LintRun(
        "snakemake", _texts(Snakefile=test_engines.SNAKEFILE, table__bin=bytes(range(256)) * 1024),
        _snakemake, ".", _no_snakemake,
    ),
    LintRun("delivery", _texts(Snakefile=DELIVERY, data__txt=DATA), _snakemake, ".", _no_snakemake),
    LintRun("parallel", _texts(run__sh=test_more_engines.SHELL), lambda: ("sh", "run.sh"), "",
            _needs("parallel")),
    LintRun(
        "nextflow", _texts(main__nf=test_nextflow.PIPELINE),
        lambda: tuple(test_nextflow.command()), "trace.txt",
    ),
    LintRun(
        "cwl", _cwl,
        lambda: (str(engine("cwltool")), "--quiet", "--outdir", "out", "wf.cwl", "job.json"),
    ),
    LintRun("parsl", _texts(wf__py=test_more_engines.PARSL), _parsl),
)  # fmt: skip  # a table


def findings(run: LintRun, folder: Path) -> list[dict[str, Any]]:
    """What lint finds in the workflow, run once in the empty `folder`/work."""
    if absent := run.absent():
        pytest.skip(f"not installed: {', '.join(absent)}")
    (program, *rest), work = run.command(), folder / "work"
    # As tests/e2e/real: Snakemake is beside the Python of the tests, which may not be on the PATH.
    beside = shutil.which(program, path=os.fspath(Path(sys.executable).parent))
    command = (program if shutil.which(program) else beside or program, *rest)
    work.mkdir()
    run.prepare(work)
    (folder / "tracehint.toml").write_text(THRESHOLDS)
    bundle = folder / "run.trace"
    tracehint("record", "--collector", "ebpf", "-o", bundle, "--", *command, cwd=work)
    declared = [work / run.declared] if run.declared else []
    options = ("--config", folder, "--nodes", "8", "--format", "json")
    done = tracehint("lint", bundle, *declared, *options, cwd=work, ok=(0, 1))
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found
