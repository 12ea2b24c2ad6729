"""Makeflow and a plan: the parts table of `tracehint place`, and the options for a batch system.

With `-T local` the wrapper `tracehint place --parts ...` starts each rule on its part's node. With
`-T slurm` the variable BATCH_OPTIONS of a rule is passed to sbatch; it is written if the names of
the nodes are known. Work Queue places tasks by the files that its workers store (`-W files`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.makeflow.text import parse_rules, rule_spans
from tracehint.adapters.engines.makeflow.workflow import Workflow
from tracehint.adapters.engines.planned import Parts, slurm_options
from tracehint.adapters.paths import planned_files
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.place.parts import Placed, encode
from tracehint.hintgen.hints.model import HintFile
from tracehint.schemas.wording import plural

_GLOBAL = re.compile(r"^(?:export[ \t]+)?BATCH_OPTIONS[ \t]*\+?=", re.MULTILINE)
_OF_RULE = re.compile(r"^@BATCH_OPTIONS[ \t]*\+?=", re.MULTILINE)


def names(workflow: Workflow) -> list[list[str]]:
    """Return the names that a plan may use for each rule: an output, or its number in the log."""
    return [
        [*(p.decode("utf-8", "backslashreplace") for p in task.targets), f"n{number}"]
        for number, task in enumerate(workflow.tasks)
    ]


def is_planned(hints: HintFile, parts: Parts, workflow: Workflow) -> bool:
    """Whether the plan was made for this workflow, so files absent from the plan need no hint."""
    files = planned_files(hints).keys()
    bound = hints.plan is not None and hints.plan.tasks
    return parts.whole if bound else bool(files) and files <= set(workflow.files)


def table(workflow: Workflow, parts: Parts) -> bytes:
    """Return the encoded table with the part and the inputs of each rule."""
    return encode(
        [
            Placed(part, tuple(dict.fromkeys(task.sources)))
            for task, part in zip(workflow.tasks, parts.of_task, strict=True)
        ]
    )


def batch_options(parts: Parts, nodes: Mapping[int, Host]) -> list[str]:
    """Return the sbatch options of each rule as one text; empty if there are none."""
    return [
        " ".join(slurm_options(nodes[part])) if part is not None and part in nodes else ""
        for part in parts.of_task
    ]


def option_line(options: str, text: str, before: int, line: int) -> str:
    """Return the line above a rule's command at `line` of a classic file. The author's batch
    options, for all rules or this one (after `before`, the last rule's command), are kept."""
    earlier = _GLOBAL.search(text, 0, line) or _OF_RULE.search(text, before, line)
    return f"@BATCH_OPTIONS={'$BATCH_OPTIONS ' if earlier else ''}{options}\n"


def with_options(rule: dict[str, Any], options: str) -> dict[str, Any]:
    """Return a JSON workflow's rule with our options after its author's batch options."""
    if not options or not isinstance(rule.get("environment", {}), dict):
        return rule
    environment = dict(rule.get("environment", {}))
    earlier = environment.get("BATCH_OPTIONS")
    environment["BATCH_OPTIONS"] = f"{earlier} {options}" if isinstance(earlier, str) else options
    return {**rule, "environment": environment}


def describe_runs(parts: Parts, folder: str, output: str, hosts: Path | None) -> Sequence[str]:
    """Return the command line of each way to run the workflow."""
    file = hosts.name if hosts else "hosts.toml"
    store = "" if parts.bound else "--store STORE "
    place = f"tracehint place --hosts {file} {store}--parts {folder}/parts --task %% --"
    run = f"makeflow -T local -j SLOTS --wrapper '{place}' {output}"
    if not parts.bound and not parts.unknown:
        return [f"The plan binds no task to a node: start each on the node of its inputs: {run}"]
    lines = [
        f"{parts.bound:,} of {plural(len(parts.of_task), 'rule')} have a part of the plan. Run: "
        f"{run}",
        *parts.remarks(),
    ]
    if hosts is None:
        lines.append(
            "With --hosts FILE the rules also pass their nodes to Slurm (makeflow -T slurm)"
        )
    return lines


# The rules of a planned Makeflow file, reordered so that every part has work at any time.
#
# Makeflow starts ready rules in file order, a limited number at a time. If the rules of one part
# are adjacent, the nodes of other parts would be idle and run them. So the parts alternate; within
# a part the order stays. A rule's number (in the log, and `%%`) is its new position.


def interleave_parts(parts: Sequence[int | None]) -> list[int]:
    """Return rule numbers in round-robin order: the first of each part, the second of each, ..."""
    count: dict[int | None, int] = {}
    keys = []
    for number, part in enumerate(parts):
        count[part] = turn = count.get(part, 0) + 1
        keys.append((turn, -1 if part is None else part, number))
    return [number for _, _, number in sorted(keys)]


def order_by_parts(workflow: Workflow, parts: Parts) -> tuple[Workflow, Parts, list[str]]:
    """Return the workflow and its parts in round-robin order, and messages for the user."""
    order = interleave_parts(parts.of_task)
    moved = replace(parts, of_task=tuple(parts.of_task[number] for number in order))
    if order == sorted(order):
        return workflow, parts, []
    if workflow.data is not None:
        rules = [workflow.data["rules"][number] for number in order]
        tasks = tuple(workflow.tasks[number] for number in order)
        return Workflow(tasks=tasks, data={**workflow.data, "rules": rules}), moved, [_REORDERED]
    text = _reorder_text(workflow.text, order)
    if text is None:
        return workflow, parts, [_NOT_REORDERED]
    return Workflow(tasks=tuple(parse_rules(text)), text=text), moved, [_REORDERED]


_REORDERED = "The rules are reordered, so that all parts have work at any time"
_NOT_REORDERED = (
    "The rules keep their order because variables are set between them: where rules of one part "
    "are adjacent, nodes of other parts may run them"
)


def _reorder_text(text: str, order: Sequence[int]) -> str | None:
    """Return the file with its rules in this order; None if there is other text between them."""
    spans = rule_spans(text)
    if spans is None:
        return None
    begin, end = spans[0][0], spans[-1][1]
    if not text[begin:end].endswith("\n"):  # the last rule may end with the file
        return _reorder_text(text[:end] + "\n" + text[end:], order)
    return text[:begin] + "".join(text[slice(*spans[number])] for number in order) + text[end:]
