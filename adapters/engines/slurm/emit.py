"""Slurm: a script that submits each rule of a Makeflow file as a job, on the node of its part.

Jobs wait for the producers of their inputs (`--dependency=afterok`). Commands and names are single
shell words, whatever their content; only job numbers are expanded. A job fails if an output of its
rule is missing, as in Makeflow. Tasks without a part run where Slurm chooses. For job arrays and
user scripts, `tracehint place --part N` prints the node for `sbatch --nodelist`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.makeflow import parts as makeflow_parts
from tracehint.adapters.engines.makeflow.text import Task, shell_text
from tracehint.adapters.engines.makeflow.workflow import Workflow, read_workflow
from tracehint.adapters.engines.planned import (
    Parts,
    find_parts,
    require_nodes,
    require_plan,
    slurm_options,
)
from tracehint.adapters.engines.tag_table import check_folder_name
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.plan import build_plan
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.schemas.wording import plural
from tracehint.version import __version__

_HEAD = f"""\
#!/bin/sh
# tracehint {__version__}: a planned workflow as jobs of Slurm; run it in the workflow's folder.
# Arguments of this script are passed to every sbatch: sh THIS-FILE --partition=short
set -eu
stage= last=
submit() {{
    after=${{1:+${{last:-afterok}}$1}} name=$2 line=$3
    shift 3
    after=$after${{stage:+${{after:+,}}afterany:$stage}}
    sbatch --parsable --kill-on-invalid-dep=yes ${{after:+"--dependency=$after"}} \\
        --job-name="$name" --wrap="$line" "$@" | cut -d ';' -f 1
}}
"""


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the script, for -o or standard output."""
    plan = require_plan(hints, "slurm")
    nodes = require_nodes(plan, request.hosts, "slurm")
    if request.workflow is None:
        raise UsageError(
            "no workflow given",
            "Add the Makeflow file: tracehint emit H.json --workflow-engine slurm W.mf -o F",
        )
    workflow = read_workflow(request.workflow)
    parts = find_parts(plan, makeflow_parts.names(workflow))
    name = request.output.name if request.output else "F"
    stage = f"{name}.stage"
    copies = plan_staging(hints, workflow, parts, nodes, request.local_dir, stage)
    text = script(workflow, parts, nodes, copies)
    files = {request.output: text.encode("utf-8", "surrogateescape")}
    if copies is not None:
        check_folder_name(stage)
        if request.output is None:
            raise UsageError("--local-dir needs a second file next to the script", "Give -o FILE.")
        files[request.output.with_name(stage)] = SCRIPT.read_bytes()
    return Emitted(
        files=files,
        executable={request.output} if request.output else set(),
        remarks=[
            f"{plural(len(workflow.tasks), 'job')}, {parts.bound:,} with a node. Run: sh {name}",
            *parts.remarks(),
        ],
    )


def script(
    workflow: Workflow, parts: Parts, nodes: Mapping[int, Host], copies: Staging | None = None
) -> str:
    """Return the script's text, with each job after its dependencies."""
    maker = {path: i for i, task in enumerate(workflow.tasks) for path in task.targets}
    needs = [
        sorted({maker[path] for path in task.sources if path in maker and maker[path] != i})
        for i, task in enumerate(workflow.tasks)
    ]
    first, last = copies.lines(len(workflow.tasks)) if copies else ("", "")
    lines = [_HEAD, first]
    for number in _sort_by_needs(needs):
        part = parts.of_task[number]
        words = slurm_options(nodes[part]) if part is not None else []
        lines.append(_job(number, workflow, needs[number], words, copies))
    return "\n".join([*lines, last, 'echo "submitted; squeue shows the jobs"', ""])


def _job(
    number: int,
    workflow: Workflow,
    needs: Sequence[int],
    words: Sequence[str],
    copies: Staging | None,
) -> str:
    task = workflow.tasks[number]
    if task.at is None or not task.command:
        raise InputError(
            f"rule {number} has no command (a nested workflow?)", "Emit the inner workflow itself."
        )
    if "\0" in task.command:
        raise InputError(f"rule {number} has a command with a NUL", "Check the workflow.")
    after = "".join(f":$j{i}" for i in needs)
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", task.type)[:40]
    given = "".join(f" {word}" for word in words)
    command = _command(task, workflow)
    made = [os.fsdecode(path) for path in task.targets]
    line = shlex.quote(_check_outputs(copies.command(number, command) if copies else command, made))
    return f'j{number}=$(submit "{after}" n{number}-{name} {line}{given} "$@")'


def _check_outputs(command: str, outputs: Sequence[str]) -> str:
    """Return the command in its own shell, followed by Makeflow's check of outputs: a job without
    its outputs has failed, and its dependents do not start."""
    if not outputs:
        return command
    names = " ".join(map(shlex.quote, outputs))
    return (
        f"sh -c {shlex.quote(command)} || exit\n"
        f'for made in {names}; do [ -e "$made" ] && continue\n'
        'echo "not created by this rule: $made" >&2; exit 1; done'
    )


def _command(task: Task, workflow: Workflow) -> str:
    """Return the text passed to the rule's shell, which encodes to the file's original bytes."""
    if workflow.data is not None:
        return task.command
    return shell_text(task.command).encode("latin-1").decode("utf-8", "surrogateescape")


def _sort_by_needs(needs: Sequence[Sequence[int]]) -> list[int]:
    """Return tasks in topological order. Raise InputError for a cycle."""
    left = [len(before) for before in needs]
    then: list[list[int]] = [[] for _ in needs]
    for number, before in enumerate(needs):
        for other in before:
            then[other].append(number)
    ready = [number for number, count in enumerate(left) if not count]
    for number in ready:
        for other in then[number]:
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    if len(ready) < len(needs):
        raise InputError("the workflow's rules wait for each other", "Check it: makeflow_analyze")
    return ready


# Slurm with node-local scratch: inputs that many jobs read are copied to every node once, with
# sbcast; a copy of each file produced for a job of the same part stays on the node.
#
# A job's command runs in a folder of links on the node's local disk (slurm_stage.sh); results are
# copied back when it ends. A command that leaves its folder (`..`, cd) runs without staging.


SCRIPT = Path(__file__).with_name("slurm_stage.sh")
_LEAVING_FOLDER = re.compile(r"\.\.|\bcd\b|\bpushd\b|\$PWD|\bpwd\b")


@dataclass(frozen=True)
class Staging:
    """`local`: node-local directory on each node; `script`: the name of slurm_stage.sh.

    `shared`: files for every node. `uses`: for each rule, files whose local copy it uses or keeps.
    """

    local: str
    script: str
    shared: tuple[bytes, ...]
    uses: tuple[tuple[bytes, ...], ...]
    nodes: tuple[str, ...]

    def command(self, number: int, line: str) -> str:
        """Return the command line of a rule's job."""
        files = self.uses[number]
        if not files or _LEAVING_FOLDER.search(line):
            return line
        return self._words("run", line, files)

    def lines(self, jobs: int) -> tuple[str, str]:
        """Return the script's lines before the jobs, and after them."""
        where = f"--nodes={len(self.nodes)} --ntasks-per-node=1 --nodelist={','.join(self.nodes)}"
        first = "TRACEHINT_RUN=$(date +%s)-$$; export TRACEHINT_RUN\nstage=\n"
        copy = shlex.quote(self._words("copy", None, self.shared))
        first += f'stage=$(submit "" tracehint-copy {copy} {where} "$@")\n'
        wait = "".join(f":$j{number}" for number in range(jobs))
        clean = shlex.quote(self._words("clean", None, ()))
        last = (
            f'stage= last=afterany submit "{wait}" tracehint-clean {clean} {where} "$@" >/dev/null'
        )
        return first, last

    def _words(self, verb: str, line: str | None, files: Sequence[bytes]) -> str:
        words = ["sh", f"./{self.script}", verb, self.local, *([] if line is None else [line])]
        return " ".join(map(shlex.quote, [*words, *map(os.fsdecode, files)]))


def plan_staging(
    hints: HintFile,
    workflow: Workflow,
    parts: Parts,
    nodes: Mapping[int, Host],
    local: str,
    script: str,
) -> Staging | None:
    """Plan copies of files; None without a directory or files to copy. Raises UsageError."""
    if not local:
        return None
    if not re.fullmatch(r"/[A-Za-z0-9_./-]+", local) or ".." in local:
        raise UsageError(
            f"--local-dir {local[:80]!r}: not a plain absolute path", "Use one like /local/scratch."
        )
    shared = _shared_inputs(hints, workflow)
    handed = _find_part_files(workflow, parts)
    uses = tuple(
        tuple(p for p in dict.fromkeys((*t.sources, *t.targets)) if p in shared or p in handed)
        for t in workflow.tasks
    )
    if not any(uses):
        return None
    names = tuple(dict.fromkeys(host.name for host in nodes.values()))
    return Staging(local, script, tuple(sorted(shared)), uses, names)


def _shared_inputs(hints: HintFile, workflow: Workflow) -> Collection[bytes]:
    """Return inputs of the run with a replication hint that several rules read."""
    paths = Paths(
        files=[], declared=workflow.files, known=workflow.describe_files(frozenset(hints.peeks))
    )
    plan = build_plan(hints, paths, directories=False)
    wanted = {target.path for target in plan.targets if "Replication" in target.hints}
    made = {path for task in workflow.tasks for path in task.targets}
    return {p for p in wanted - made if _is_plain_path(p) and len(_readers(workflow.tasks, p)) > 1}


def _readers(tasks: Sequence[Task], path: bytes) -> list[int]:
    return [number for number, task in enumerate(tasks) if path in task.sources]


def _find_part_files(workflow: Workflow, parts: Parts) -> Collection[bytes]:
    """Return files that one rule produces and another rule of its part reads."""
    part = {p: parts.of_task[n] for n, t in enumerate(workflow.tasks) for p in t.targets}
    return {
        path
        for number, task in enumerate(workflow.tasks)
        for path in task.sources
        if part.get(path) is not None
        and part[path] == parts.of_task[number]
        and _is_plain_path(path)
    }


def _is_plain_path(path: bytes) -> bool:
    """Whether no tool would interpret the name as an option or a separator."""
    return inside(path) and not path.startswith(b"-") and b"\n" not in path
