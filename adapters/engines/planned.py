"""A plan's tasks and an engine's: the same ones, found by any of the names that a task goes by.

The plan has the workflow's own names: of a Makeflow rule its number (`n7`) or its first output, of
a Snakemake job an output, of a Nextflow task `PROCESS (tag)`, of a WfFormat task its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tracehint.adapters.place.hosts import Host, read_hosts
from tracehint.adapters.place.parts import home_of
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.plan import Plan
from tracehint.hintgen.text.units import plural


@dataclass(frozen=True)
class Parts:
    """The part of each task of a workflow; None: the plan does not bind it."""

    of_task: tuple[int | None, ...]
    unknown: int  # tasks that the plan names and the workflow does not have

    @cached_property
    def bound(self) -> int:
        """Tasks that have a part."""
        return sum(part is not None for part in self.of_task)

    @property
    def whole(self) -> bool:
        """Whether the plan was made for this graph: nothing that it names is missing."""
        return self.bound > 0 and not self.unknown

    def remarks(self) -> list[str]:
        """What people have to know, a line each."""
        lines = []
        if free := len(self.of_task) - self.bound:
            lines.append(f"{plural(free, 'task')} without a part in the plan: they run anywhere")
        if self.unknown:
            lines.append(
                f"{plural(self.unknown, 'task')} of the plan not found in this workflow: the plan "
                "may be for another one (make it again: tracehint plan WORKFLOW)"
            )
        return lines


def find_parts(plan: Plan, tasks: Sequence[Sequence[str]]) -> Parts:
    """`tasks`: the names that each task of the workflow goes by, best first.

    A name that several tasks go by tells nothing about any of them.
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
    """The plan of the hint file. Raises UsageError: there is none, or it binds no task."""
    if hints.plan is None:
        raise UsageError(
            f"{engine} takes a plan, and the hint file has none",
            "Make one: tracehint plan WORKFLOW --cluster C.toml -o hints.json",
        )
    if not hints.plan.tasks:
        raise UsageError(
            f"the plan ({hints.plan.strategy}) binds no task to a node",
            "Start each task where its inputs lie: tracehint place --store STORE.",
        )
    return hints.plan


def nodes_of(plan: Plan, hosts: Path | None) -> Mapping[int, Host]:
    """The node of each part that a task has, by a host file; empty without one."""
    if hosts is None:
        return {}
    rows = read_hosts(hosts)
    return {part: home_of(part, rows) for part in sorted({task.part for task in plan.tasks})}


def require_nodes(plan: Plan, hosts: Path | None, engine: str) -> Mapping[int, Host]:
    """The same where the engine cannot do without. Raises UsageError."""
    if hosts is None:
        raise UsageError(
            f"{engine} needs the names of the nodes",
            "Give --hosts FILE (docs/how-to/start-where-data-is.md).",
        )
    return nodes_of(plan, hosts)
