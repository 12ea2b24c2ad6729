"""Nextflow and a plan: the part of each task, by its tag, as directives of its process.

`ext.tracehint_part` is for one's own configuration (`task.ext.tracehint_part`); with the names of
nodes, `clusterOptions` tells the batch system. A process without a tag has one task, or tasks that
cannot be told apart before they start; those run anywhere. (Labels that a configuration sets choose
no `withLabel`, tried with 24.10: so none are set.)

Groovy's compiler bounds one method's code, so that long tables stand in closures of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tracehint.adapters.engines.slurm_options import for_host
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.stores.base import Gap
from tracehint.hintgen.hints.plan import Plan, TaskPart

_NAME = re.compile(r"(.*?)(?: \((.*)\))?", re.DOTALL)
_LITERAL = re.compile(r"[^\\'\x00-\x1f\x7f-\x9f\u2028\u2029]*")
_ROWS = 400  # entries of one closure


def directives(plan: Plan, nodes: Mapping[int, Host], gaps: list[Gap]) -> dict[str, list[str]]:
    """Process -> its lines in `withName`."""
    found: dict[str, dict[str, int]] = {}
    for task in plan.tasks:
        process, tag = _split(task)
        if not _LITERAL.fullmatch(tag):
            reason = "a tag that cannot stand in a configuration"
            gaps.append(Gap(hint="part", level="none", reason=reason))
            continue
        found.setdefault(process, {})[tag] = task.part
    return {process: _lines(tags, nodes) for process, tags in found.items()}


def _split(task: TaskPart) -> tuple[str, str]:
    match = _NAME.fullmatch(task.name)
    assert match is not None  # any text matches
    return match[1], match[2] or ""


def _lines(tags: Mapping[str, int], nodes: Mapping[int, Host]) -> list[str]:
    lines = [f"ext.tracehint_part = {_choice(tags)}"]
    if nodes:
        words = {tag: f"'{' '.join(for_host(nodes[part]))}'" for tag, part in tags.items()}
        lines.append("clusterOptions = " + _choice(words, " ?: ''"))
    return lines


def _choice(values: Mapping[str, Any], otherwise: str = "") -> str:
    """A Groovy expression: the value of the task's tag, null or what `otherwise` adds."""
    if values.keys() == {""}:
        return str(values[""])
    rows = sorted(values.items())
    batches = [rows[at : at + _ROWS] for at in range(0, len(rows), _ROWS)]
    tables = ", ".join(f"{{ [{_entries(batch)}] }}" for batch in batches)
    return f"{{ [{tables}].findResult {{ it()[task.tag?.toString()] }}{otherwise} }}"


def _entries(rows: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"'{tag}': {value}" for tag, value in rows)
