"""Mapping of a plan's tasks to an engine's tasks, by any of the names that a task has.

The plan uses the workflow's own names: a Makeflow rule's number (`n7`) or first output, an output
of a Snakemake job, `PROCESS (tag)` of a Nextflow task, the id of a WfFormat task.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.place.hosts import Host, read_hosts
from tracehint.adapters.place.parts import home_of
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile, Plan
from tracehint.schemas.wording import plural


@dataclass(frozen=True)
class Parts:
    """The part of each task of a workflow; None: the plan does not bind the task."""

    of_task: tuple[int | None, ...]
    unknown: int  # tasks of the plan that the workflow does not contain

    @cached_property
    def bound(self) -> int:
        """Number of tasks that have a part."""
        return sum(part is not None for part in self.of_task)

    @property
    def whole(self) -> bool:
        """Whether the plan was made for this graph: the workflow contains all tasks of the plan."""
        return self.bound > 0 and not self.unknown

    def remarks(self) -> list[str]:
        """Return messages for the user, one per line."""
        lines = []
        if free := len(self.of_task) - self.bound:
            lines.append(
                f"{plural(free, 'task')} without a part in the plan: they may run on any node"
            )
        if self.unknown:
            lines.append(
                f"{plural(self.unknown, 'task')} of the plan not found in this workflow: the plan "
                "may be for another one (create it again: tracehint plan WORKFLOW)"
            )
        return lines


def find_parts(plan: Plan, tasks: Sequence[Sequence[str]]) -> Parts:
    """Find the part of each task; `tasks` lists the names of each task, best first.

    A name that several tasks share identifies none of them.
    """
    by_name = {task.name: task.part for task in plan.tasks}
    shared: dict[str, int] = {}
    for names in tasks:
        for name in set(names):
            shared[name] = shared.get(name, 0) + 1
    used: set[str] = set()
    parts: list[int | None] = []
    for names in tasks:
        known = [name for name in names if shared[name] == 1 and name in by_name]
        used.update(known)
        parts.append(by_name[known[0]] if known else None)
    return Parts(tuple(parts), len(by_name.keys() - used))


def require_plan(hints: HintFile, engine: str) -> Plan:
    """Return the plan of the hint file. Raise UsageError if it has none or binds no task."""
    if hints.plan is None:
        raise UsageError(
            f"{engine} needs a plan, but the hint file has none",
            "Create one: tracehint plan WORKFLOW --cluster C.toml -o hints.json",
        )
    if not hints.plan.tasks:
        raise UsageError(
            f"the plan ({hints.plan.strategy}) binds no task to a node",
            "Start each task on the node of its inputs: tracehint place --store STORE.",
        )
    return hints.plan


def nodes_of(plan: Plan, hosts: Path | None) -> Mapping[int, Host]:
    """Return the node of each part that has a task, from a host file; empty without one."""
    if hosts is None:
        return {}
    rows = read_hosts(hosts)
    return {part: home_of(part, rows) for part in sorted({task.part for task in plan.tasks})}


def require_nodes(plan: Plan, hosts: Path | None, engine: str) -> Mapping[int, Host]:
    """Return the nodes of the parts. Raise UsageError without a host file."""
    if hosts is None:
        raise UsageError(
            f"{engine} needs the names of the nodes",
            "Give --hosts FILE (docs/how-to/start-where-data-is.md).",
        )
    return nodes_of(plan, hosts)


# `--workflow-engine json`: the plan for any scheduler, as plain JSON.
#
# {"schema": "tracehint.parts/1", "cluster", "strategy", "seconds": {"default", "planned"},
#  "parts": [{"part": 0, "node": "node1" or null, "tasks": [names], "files": [paths]}],
#  "files": [{"path", "part", "hints"}]}


def emit_json(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the file, for -o or standard output."""
    plan = require_plan(hints, "json")
    nodes = nodes_of(plan, request.hosts)
    parts: dict[int, dict[str, Any]] = {}
    for number in sorted({task.part for task in plan.tasks}):
        node = nodes[number].name if number in nodes else None
        parts[number] = {"part": number, "node": node, "tasks": [], "files": []}
    for task in plan.tasks:
        parts[task.part]["tasks"].append(task.name)
    for file in plan.files:
        if file.part in parts:
            parts[file.part]["files"].append(file.path)
    data = {
        "schema": "tracehint.parts/1",
        "cluster": plan.cluster,
        "strategy": plan.strategy,
        "seconds": asdict(plan.seconds),
        "parts": list(parts.values()),
        "files": [{"path": f.path, "part": f.part, "hints": f.hints} for f in plan.files],
    }
    return Emitted(
        files={request.output: (json.dumps(data, indent=1) + "\n").encode()},
        remarks=[f"{plural(len(plan.tasks), 'task')} in {plural(len(parts), 'part')}"],
    )


# Options of sbatch and srun for the node of a part.
#
# Names passed the allow-list of host files, so they need no quoting in a command line.


def slurm_options(host: Host) -> list[str]:
    """Return the feature in the host file (any node with it is suitable), otherwise the node."""
    if host.feature:
        return [f"--constraint={host.feature}"]
    return [f"--nodelist={host.name}"]
