"""The real workflows for judging every lint rule: how each is created, run and declared."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import test_demo, test_engines, test_more_engines, test_nextflow
from tests.e2e.real.compare import missing
from tests.e2e.real.model import Workflow
from tests.e2e.real.workflows import WORKFLOWS
from tests.e2e.support import tracehint
from tests.support.engines import engine
from tests.support.gains import check_gains
from tests.support.recordings import Recording, recorded

# The inputs are small: at the default thresholds most rules would find nothing.
THRESHOLDS = """\
[lint]
min-bytes = 4096
min-storage-bytes = 16384
tiny-file-count = 10
straggler-seconds = 0.1
"""


@dataclass(frozen=True)
class LintRun:
    """`declared`: the WORKFLOW argument of `lint`, below the working directory; "" is none."""

    name: str
    record: Callable[[pytest.TempPathFactory], Recording]
    declared: str = ""
    absent: Callable[[], list[str]] = list


def _real(workflow: Workflow) -> LintRun:
    declared = next((w for w in workflow.command if w.endswith(".makeflow")), "")
    if workflow.command[0] == "snakemake":
        declared = "."
    return LintRun(
        workflow.name,
        lambda factory: recorded(
            factory, workflow.name, workflow.prepare, lambda: workflow.command
        ),
        declared,
        lambda: missing(workflow),
    )


def _cwl(folder: Path) -> None:
    for name, tool in test_more_engines.CWL.items():
        head = {"cwlVersion": "v1.2", "class": "CommandLineTool"}
        (folder / name).write_text(json.dumps(head | tool))
    (folder / "wf.cwl").write_text(json.dumps(test_more_engines.CWL_WORKFLOW))
    (folder / "job.json").write_text(json.dumps({"n": 20000, "names": test_more_engines.PARTS}))


def _no_snakemake() -> list[str]:
    return [] if (Path(sys.executable).parent / "snakemake").exists() else ["snakemake"]


def _needs(*programs: str) -> Callable[[], list[str]]:
    return lambda: [program for program in programs if not shutil.which(program)]


# `rule all` requests the counts and the sorted table; two independent rules read the table; both
# write logs, and one writes a by-product.
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


def _delivery(folder: Path) -> None:
    (folder / "Snakefile").write_text(DELIVERY)
    (folder / "data.txt").write_text(DATA)


def _record_cwl(factory: pytest.TempPathFactory) -> Recording:
    words = (str(engine("cwltool")), "--quiet", "--outdir", "out", "wf.cwl", "job.json")
    return recorded(factory, "cwl", _cwl, lambda: words)


def _record_delivery(factory: pytest.TempPathFactory) -> Recording:
    return recorded(factory, "delivery", _delivery, test_engines.snakemake)


RUNS = (
    *(_real(workflow) for workflow in WORKFLOWS),
    LintRun("demo", lambda factory: test_demo.recording(factory, "shell")),
    LintRun(
        "demo-makeflow", lambda factory: test_demo.recording(factory, "makeflow"),
        "demo.makeflow", _needs("makeflow"),
    ),
    LintRun("snakemake", test_engines.recording, ".", _no_snakemake),
    LintRun("delivery", _record_delivery, ".", _no_snakemake),
    LintRun("parallel", test_more_engines.record_parallel, "", _needs("parallel")),
    LintRun("nextflow", test_nextflow.recording, "trace.txt"),
    LintRun("cwl", _record_cwl),
    LintRun("parsl", test_more_engines.record_parsl),
)  # fmt: skip  # a table


def findings(run: LintRun, folder: Path, factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return lint's findings for the workflow; its configuration is in the empty `folder`."""
    if absent := run.absent():
        pytest.skip(f"not installed: {', '.join(absent)}")
    found = run.record(factory)
    (folder / "tracehint.toml").write_text(THRESHOLDS)
    declared = [found.work / run.declared] if run.declared else []
    options = ("--config", folder, "--nodes", "8", "--format", "json")
    done = tracehint("lint", found.bundle, *declared, *options, cwd=found.work, ok=(0, 1))
    document = json.loads(done.stdout)
    check_gains(document)
    said: list[dict[str, Any]] = document["findings"]
    return said
