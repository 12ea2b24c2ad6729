"""Facts about each workflow engine: one table for all code that names an engine.

The processes of engines that are jobs are in analyzer/tasks/engine_processes.py: the analyzer does
not import from here.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

By = Literal["runs", "api", "grammar"]


@dataclass(frozen=True)
class Accepted:
    """Evidence for an emitter's files: an engine that ran them, an API, or a grammar.

    `by`: kind; `what`: version, or source of the grammar; `test`: FILE::FUNCTION below tests/.
    """

    by: By
    what: str
    test: str


@dataclass(frozen=True)
class EarlyGraph:
    """How to get the graph of a command before its run, if all tasks run on the engine's node.
    dry_run: options that make the command print the graph and run no task; empty: a workflow
        file that the command names contains the graph.
    remote: pattern of arguments, each after a NUL, with which tasks run on other nodes or not
        at all.
    profiles: files and environment variables that can set such arguments.
    side_effects: pattern of workflow text that makes a dry run execute a recipe.
    """

    dry_run: tuple[str, ...] = ()
    remote: str = "(?!)"  # none
    profiles: tuple[str, ...] = ()
    side_effects: bytes = b""


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """One engine; fields that do not apply keep their defaults.
    graph: module of this package with `sniff(path, head)` and `read(path)`; `reads`: its input,
        for messages and docs.
    emit: MODULE:FUNCTION of this package, called with (hints, request); `accepted`: evidence.
    programs: run the engine. `start` is the usual command line, `again` how to repeat all work
        when everything is up to date.
    files: the workflow's usual names in its directory; the first existing one counts.
    reads_unnamed: workflow files that the program reads without an argument.
    statement: pattern in each of its workflow files, if the emitter does not parse them.
    copied: annotations are written to a copy of the workflow file, which is the argument of one
        of `options`, or the last argument that is a file.
    early: the graph before a run.
    """

    graph: str = ""
    reads: str = ""
    emit: str = ""
    accepted: Accepted | None = None
    programs: tuple[str, ...] = ()
    start: str = ""
    again: str = ""
    files: tuple[str, ...] = ()
    reads_unnamed: tuple[str, ...] = ()
    statement: bytes = b""
    copied: bool = False
    options: tuple[str, ...] = ()
    early: EarlyGraph | None = None

    def start_line(self, workflow: str) -> str:
        """Return the command for this workflow file; empty if it needs more than the file."""
        if not self.start or (workflow in self.reads_unnamed and "FILE" not in self.start):
            return self.start
        file = shlex.quote(workflow)
        if "FILE" in self.start:
            return self.start.replace("FILE", file)
        return " ".join((self.start, *self.options[:1], file))

    def find_workflow(self, arguments: Sequence[str]) -> str:
        """Return the workflow file that a command names; empty if the file is not copied."""
        if not self.copied:
            return ""
        if not self.options:
            given = (word for word in reversed(arguments) if Path(word).is_file())
            return next(given, self.reads_unnamed[0])
        named = [value for word, value in pairwise(arguments) if word in self.options]
        usual = [name for name in self.reads_unnamed if Path(name).is_file()]
        return [*named, *usual, self.reads_unnamed[0]][0]


_SWIFT = "our reading of its grammar: no Swift installs here"
# In the order in which readers are tried. A new engine needs a module or package, and a row here.
ENGINES: dict[str, EngineFacts] = {
    "snakemake": EngineFacts(
        graph="snakemake.graph",
        reads="directory with .snakemake, output of -n, --detailed-summary, or --d3dag (JSON)",
        emit="snakemake.emit:emit",
        accepted=Accepted("runs", "Snakemake 8.0 to 9.27",
            "test_plan_emit_run.py::test_other_snakemakes_group_as_well"),
        programs=("snakemake",),
        start="snakemake -c4",
        again="snakemake --forceall runs all rules again",
        files=("Snakefile", "workflow/Snakefile", "*.smk"),
        reads_unnamed=("Snakefile", "workflow/Snakefile", "snakefile"),
        statement=rb"(?m)^[ \t]*(rule|checkpoint|include|module|use rule|configfile)\b",
        copied=True,
        options=("-s", "--snakefile"),
        early=EarlyGraph(
            dry_run=("--dry-run", "--quiet", "reason"),
            remote="\0(-e|-d|--(executor|cluster|drmaa|slurm|kubernetes|tibanna|tes|profile"
            "|workflow-profile|directory|default-storage|touch|batch|unlock|delete|report|lint"
            "|cleanup|archive|containerize|generate|export|edit|draft|list|conda-c))",
            profiles=("SNAKEMAKE_PROFILE", "profiles/default", "workflow/profiles/default"),
        ),
    ),
    "wfformat": EngineFacts(
        graph="wfformat.graph", reads="WfFormat 1.0-1.6 instance (.json, also packed)"
    ),
    "nextflow": EngineFacts(
        graph="nextflow.graph",
        reads="trace.txt (its work directory beside it is used)",
        emit="nextflow.emit:emit",
        accepted=Accepted("runs", "Nextflow 24.10",
            "test_plan_emit_run.py::test_nextflow_tells_each_task_its_part"),
        programs=("nextflow",),
        start="nextflow run FILE",
        again="leave out -resume",
        files=("main.nf", "*.nf"),
        reads_unnamed=("main.nf",),
        statement=rb"(?m)^[ \t]*(process|workflow|include|nextflow\.)",
    ),
    "nextflow-log": EngineFacts(
        graph="nextflow.log", reads=".nextflow.log (with the work directories below)"
    ),
    "parallel": EngineFacts(graph="parallel", reads="file of --joblog"),
    "make": EngineFacts(
        graph="make",
        reads="output of make -np or make --debug=j",
        programs=("make",),
        start="make -j4",
        again="make -B makes all targets again",
        files=("Makefile", "makefile"),
        reads_unnamed=("GNUmakefile", "makefile", "Makefile"),
        early=EarlyGraph(
            dry_run=("-np",),
            # -n still runs these recipes, and those that build included files
            side_effects=rb"\$[({]MAKE\b|(?m:^\t[ \t@-]*\+)|(?m:^ *[-s]?include\b)",
        ),
    ),
    "ninja": EngineFacts(programs=("ninja",), again="ninja -t clean, then run it again"),
    "cwl": EngineFacts(
        graph="cwl",
        reads="directory of cwltool --provenance",
        emit="cwl:emit",
        accepted=Accepted("runs", "cwltool 3.3, which ignores the hints as the standard asks",
            "test_emit_cwl.py::test_cwltool_runs_the_hinted_workflow_on_the_hinted_inputs"),
        files=("*.cwl",),
    ),
    "pegasus": EngineFacts(
        graph="pegasus.graph",
        reads="workflow.yml, kickstart records, or a submit directory",
        emit="pegasus.emit:emit",
        accepted=Accepted(
            "api", "what Pegasus' Python API 5.1 writes: no planner installs here",
            "test_emit_pegasus.py::test_the_api_writes_the_same_for_these_words"),
    ),
    "swift": EngineFacts(
        emit="swift:emit",
        accepted=Accepted("grammar", _SWIFT,
            "test_emit_swift.py::test_every_pattern_has_its_policy"),
    ),
    "swift-k": EngineFacts(
        graph="swift.k",
        reads="SCRIPT-RUNID.log (its .d directory beside it is used)",
        emit="swift.k:emit",
        accepted=Accepted("grammar", _SWIFT,
            "test_emit_swift.py::test_every_pattern_has_its_policy"),
        programs=("swift",),
    ),
    "swift-t": EngineFacts(
        graph="swift.t",
        reads="log of TURBINE_LOG=1",
        emit="swift.t:emit",
        accepted=Accepted("grammar", _SWIFT, "test_emit_swift.py::test_locations_for_swift_t"),
        programs=("swift-t",),
        files=("*.swift",),
    ),
    "makeflow": EngineFacts(
        graph="makeflow.graph",
        reads="Makeflow file (classic, JSON, JX) or .makeflowlog",
        emit="makeflow.emit:emit",
        accepted=Accepted("runs", "Makeflow 9.9",
            "test_plan_emit_run.py::test_makeflow_runs_each_rule_on_the_node_of_its_part"),
        programs=("makeflow",),
        start="makeflow",
        again="makeflow --clean WORKFLOW, then run it again",
        files=("*.makeflow", "Makeflow", "*.mf"),
        reads_unnamed=("Makeflow",),
        copied=True,
        early=EarlyGraph(remote="\0(-T\0?+|--batch-type[=\0])(?!local(\0|$))"),
    ),
    "confuga": EngineFacts(
        emit="confuga:emit",
        accepted=Accepted("runs", "Makeflow and Confuga of cctools 9.9; JSON jobs by its head",
            "test_confuga.py::test_the_planned_run_moves_the_shared_file_once"),
    ),
    "work-queue": EngineFacts(
        emit="work_queue:emit",
        accepted=Accepted("runs", "Makeflow and workers of cctools 9.9",
            "test_work_queue.py::test_the_planned_start_sends_no_intermediate_again"),
    ),
    "parsl": EngineFacts(
        emit="python_programs.emit:emit_parsl",
        accepted=Accepted("runs", "Parsl 2026.10",
            "test_plan_emit_run.py::test_parsl_runs_each_call_on_the_executor_of_its_part"),
    ),
    "dask": EngineFacts(
        emit="python_programs.emit:emit_dask",
        accepted=Accepted("runs", "Dask 2026.8, workers of its own",
            "test_emit_modules.py::test_dask_starts_each_task_on_the_worker_of_its_part"),
    ),
    "taskvine": EngineFacts(
        emit="python_programs.emit:emit_taskvine",
        accepted=Accepted("grammar",
            "the signatures of ndcctools.taskvine, which no registry of packages has here",
            "test_emit_modules.py::test_taskvine_declares_files_as_their_hints_say"),
    ),
    "slurm": EngineFacts(
        emit="slurm.emit:emit",
        accepted=Accepted("runs", "Slurm 22.05",
            "test_plan_emit_run.py::test_slurm_runs_the_submitted_jobs_in_order_on_their_nodes"),
    ),
    "json": EngineFacts(
        emit="planned:emit_json",
        accepted=Accepted("grammar", "reading it back",
            "test_plan_emit.py::test_json_for_any_scheduler"),
    ),
}  # fmt: skip  # a table
READERS = {name: facts for name, facts in ENGINES.items() if facts.graph}
EMITTERS = {name: facts for name, facts in ENGINES.items() if facts.emit}


def load(module: str) -> Any:
    """Import a module of this package by its name in the table."""
    return importlib.import_module(f"tracehint.adapters.engines.{module}")


def engine_of_program(program: str) -> str:
    """Return the engine that a program runs; empty if it is unknown."""
    return next((name for name, facts in ENGINES.items() if program in facts.programs), "")
