"""Makeflow and a plan: the table that `tracehint place` looks parts up in, and what a batch system
is told.

With `-T local` the wrapper `tracehint place --parts ...` starts each rule on its part's node. With
`-T slurm` the variable BATCH_OPTIONS of a rule goes to sbatch; it is written where the names of the
nodes are known. Work Queue places tasks by the files that its workers hold (`-W files`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.planned import Parts
from tracehint.adapters.engines.slurm_options import for_host
from tracehint.adapters.engines.workflow import Workflow
from tracehint.adapters.paths import planned_files
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.place.table import Placed, encode
from tracehint.hintgen.hints.model import HintFile

_GLOBAL = re.compile(r"^(?:export[ \t]+)?BATCH_OPTIONS[ \t]*\+?=", re.MULTILINE)
_OF_RULE = re.compile(r"^@BATCH_OPTIONS[ \t]*\+?=", re.MULTILINE)


def names(workflow: Workflow) -> list[list[str]]:
    """What a plan may call each rule: an output, or its number in the log."""
    return [
        [*(p.decode("utf-8", "backslashreplace") for p in task.targets), f"n{number}"]
        for number, task in enumerate(workflow.tasks)
    ]


def is_for(hints: HintFile, parts: Parts, workflow: Workflow) -> bool:
    """Whether the plan was made for this workflow: then its silence on a file means something."""
    files = planned_files(hints).keys()
    bound = hints.plan is not None and hints.plan.tasks
    return parts.whole if bound else bool(files) and files <= set(workflow.files)


def table(workflow: Workflow, parts: Parts) -> bytes:
    """Part and inputs of each rule."""
    return encode(
        [
            Placed(part, tuple(dict.fromkeys(task.sources)))
            for task, part in zip(workflow.tasks, parts.of_task, strict=True)
        ]
    )


def batch_options(parts: Parts, nodes: Mapping[int, Host]) -> list[str]:
    """Words for sbatch, a text for each rule; empty: nothing is said."""
    return [
        " ".join(for_host(nodes[part])) if part is not None and part in nodes else ""
        for part in parts.of_task
    ]


def option_line(options: str, text: str, before: int, line: int) -> str:
    """The line above a rule's command at `line` of a classic file; `before`: where the last rule's
    command begins. What the author says to the batch system, for all rules or this one, stays."""
    said = _GLOBAL.search(text, 0, line) or _OF_RULE.search(text, before, line)
    return f"@BATCH_OPTIONS={'$BATCH_OPTIONS ' if said else ''}{options}\n"


def with_options(rule: dict[str, Any], options: str) -> dict[str, Any]:
    """A rule of a JSON workflow; what its author says to the batch system stays, before ours."""
    if not options or not isinstance(rule.get("environment", {}), dict):
        return rule
    environment = dict(rule.get("environment", {}))
    said = environment.get("BATCH_OPTIONS")
    environment["BATCH_OPTIONS"] = f"{said} {options}" if isinstance(said, str) else options
    return {**rule, "environment": environment}


def told(parts: Parts, folder: str, output: str, hosts: Path | None) -> Sequence[str]:
    """What to type for each way to run it."""
    file = hosts.name if hosts else "hosts.toml"
    store = "" if parts.bound else "--store STORE "
    place = f"tracehint place --hosts {file} {store}--parts {folder}/parts --task %% --"
    run = f"makeflow -T local -j SLOTS --wrapper '{place}' {output}"
    if not parts.bound and not parts.unknown:
        return [f"The plan binds no task to a node: start each where its inputs lie: {run}"]
    lines = [
        f"{parts.bound:,} of {len(parts.of_task):,} rules have a part of the plan. Run them there: "
        f"{run}",
        *parts.remarks(),
    ]
    if hosts is None:
        lines.append("With --hosts FILE the rules also tell Slurm their nodes (makeflow -T slurm)")
    return lines
