"""Slurm with node-local scratch: what many jobs read goes to every node once, with sbcast; what a
job makes for another of its part stays on the node as well.

A job's command runs in a folder of links on the node's own disk (slurm_stage.sh); results come back
when it ends. A rule whose command leaves its folder (`..`, cd) runs as it is.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.engines.planned import Parts
from tracehint.adapters.engines.workflow import Task, Workflow
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.plan import build_plan
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile

SCRIPT = Path(__file__).with_name("slurm_stage.sh")
_LEAVES = re.compile(r"\.\.|\bcd\b|\bpushd\b|\$PWD|\bpwd\b")


@dataclass(frozen=True)
class Staging:
    """`local`: the directory that each node has for itself; `script`: the name of slurm_stage.sh.

    `shared`: files for every node. `uses`: for each rule, files whose copy it uses or leaves.
    """

    local: str
    script: str
    shared: tuple[bytes, ...]
    uses: tuple[tuple[bytes, ...], ...]
    nodes: tuple[str, ...]

    def command(self, number: int, line: str) -> str:
        """The line of a rule's job."""
        files = self.uses[number]
        if not files or _LEAVES.search(line):
            return line
        return self._words("run", line, files)

    def lines(self, jobs: int) -> tuple[str, str]:
        """What the script does before the jobs, and after them."""
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


def staging(
    hints: HintFile,
    workflow: Workflow,
    parts: Parts,
    nodes: Mapping[int, Host],
    local: str,
    script: str,
) -> Staging | None:
    """None: no directory was given, or nothing gains. Raises UsageError for one that is odd."""
    if not local:
        return None
    if not re.fullmatch(r"/[A-Za-z0-9_./-]+", local) or ".." in local:
        raise UsageError(
            f"--local-dir {local[:80]!r}: not a plain absolute path", "Use one like /local/scratch."
        )
    shared = _shared(hints, workflow)
    handed = _handed(workflow, parts)
    uses = tuple(
        tuple(p for p in dict.fromkeys((*t.sources, *t.targets)) if p in shared or p in handed)
        for t in workflow.tasks
    )
    if not any(uses):
        return None
    names = tuple(dict.fromkeys(host.name for host in nodes.values()))
    return Staging(local, script, tuple(sorted(shared)), uses, names)


def _shared(hints: HintFile, workflow: Workflow) -> Collection[bytes]:
    """Inputs of the run that hints want copies of, and that several rules read."""
    paths = Paths(files=[], declared=workflow.files, known=workflow.known(frozenset(hints.peeks)))
    plan = build_plan(hints, paths, directories=False)
    wanted = {target.path for target in plan.targets if "Replication" in target.hints}
    made = {path for task in workflow.tasks for path in task.targets}
    return {p for p in wanted - made if _plain(p) and len(_readers(workflow.tasks, p)) > 1}


def _readers(tasks: Sequence[Task], path: bytes) -> list[int]:
    return [number for number, task in enumerate(tasks) if path in task.sources]


def _handed(workflow: Workflow, parts: Parts) -> Collection[bytes]:
    """Files that a rule makes and another one of its part reads."""
    part = {p: parts.of_task[n] for n, t in enumerate(workflow.tasks) for p in t.targets}
    return {
        path
        for number, task in enumerate(workflow.tasks)
        for path in task.sources
        if part.get(path) is not None and part[path] == parts.of_task[number] and _plain(path)
    }


def _plain(path: bytes) -> bool:
    """Names that no tool takes for something else."""
    return inside(path) and not path.startswith(b"-") and b"\n" not in path
