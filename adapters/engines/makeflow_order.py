"""The rules of a planned Makeflow file in an order that gives every part work at any time.

Makeflow starts ready rules by their place in the file, some at a time. Where those of one part
stand together, the nodes of the others would idle, and take them. So the parts take turns; within
a part the order stays. A rule's number (in the log, and `%%`) is its new place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tracehint.adapters.engines.makeflow_text import parse_rules, rule_spans
from tracehint.adapters.engines.planned import Parts
from tracehint.adapters.engines.workflow import Task, Workflow


def in_turns(parts: Sequence[int | None]) -> list[int]:
    """Numbers of the rules in their new order: the first of each part, the second of each, ..."""
    count: dict[int | None, int] = {}
    keys = []
    for number, part in enumerate(parts):
        count[part] = turn = count.get(part, 0) + 1
        keys.append((turn, -1 if part is None else part, number))
    return [number for _, _, number in sorted(keys)]


def reordered(workflow: Workflow, parts: Parts) -> tuple[Workflow, Parts, list[str]]:
    """The workflow and its parts in turns, and what people have to know."""
    order = in_turns(parts.of_task)
    moved = replace(parts, of_task=tuple(parts.of_task[number] for number in order))
    if order == sorted(order):
        return workflow, parts, []
    if workflow.data is not None:
        rules = [workflow.data["rules"][number] for number in order]
        tasks = tuple(workflow.tasks[number] for number in order)
        return Workflow(tasks=tasks, data={**workflow.data, "rules": rules}), moved, [_TOLD]
    text = _text(workflow.text, order)
    if text is None:
        return workflow, parts, [_KEPT]
    tasks = tuple(
        Task(targets=r.targets, sources=r.sources, command=r.command, at=r.at)
        for r in parse_rules(text)
    )
    return Workflow(tasks=tasks, text=text), moved, [_TOLD]


_TOLD = "The rules stand in another order, so that all parts have work at any time"
_KEPT = (
    "The rules keep their order, since variables are set between them: where those of one part "
    "stand together, the nodes of the others may take them"
)


def _text(text: str, order: Sequence[int]) -> str | None:
    """The file with its rules in this order; None: what stands between them has its place."""
    spans = rule_spans(text)
    if spans is None:
        return None
    begin, end = spans[0][0], spans[-1][1]
    if not text[begin:end].endswith("\n"):  # the last rule may end with the file
        return _text(text[:end] + "\n" + text[end:], order)
    return text[:begin] + "".join(text[slice(*spans[number])] for number in order) + text[end:]
