"""Files that a workflow does not declare although its tasks write them.

Two kinds can be foretold. A rule for one fixed path (`field.bin`) belongs to every task of its
producing types. A rule with placeholders (`p_{n}_area.fits`) follows a declared output of the same
task (`p_{n}.fits`) when the learned examples carry the same numbers as that output's files.
"""

from __future__ import annotations

from tracehint.adapters.engines.workflow import Workflow
from tracehint.adapters.plan import inside
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import Template, parse

Captures = tuple[bytes, ...]


def undeclared(hints: HintFile, workflow: Workflow) -> tuple[list[list[tuple[bytes, str]]], int]:
    """Per task (path, kind) of undeclared outputs, kinds as in tag_table; and examples left out."""
    found: list[list[tuple[bytes, str]]] = [[] for _ in workflow.tasks]
    declared = set(workflow.files)
    left_out = 0
    for rule in hints.rules:
        template = parse(rule.template)
        examples = [p for p in _examples(rule) if p not in declared]
        if not any(rule.producers) or any(template.match(path) is not None for path in declared):
            continue
        if template.literal:
            path = to_bytes(rule.template)
            hits = [i for i, t in enumerate(workflow.tasks) if t.type in rule.producers]
            kind = "C" if len(hits) == 1 else "K"
            for i in hits if inside(path) else []:
                found[i].append((path, kind))
        else:
            hits = _follow(hints, rule, template, examples, workflow, found)
        left_out += len(examples) if not hits else 0
    return found, left_out


def _follow(
    hints: HintFile,
    rule: Rule,
    template: Template,
    examples: list[bytes],
    workflow: Workflow,
    found: list[list[tuple[bytes, str]]],
) -> list[int]:
    """Append the file that goes with each declared output of a sibling rule; the tasks so found."""
    holes = _holes(template)
    wanted = {caught for p in examples if (caught := template.match(p)) is not None}
    for other in hints.rules:
        sibling = parse(other.template)
        if (
            other is rule
            or _holes(sibling) != holes
            or not set(other.producers) & set(rule.producers)
        ):
            continue
        by_task = _captures(sibling, workflow, rule.producers)
        if wanted and wanted <= {caught for _, caught in by_task}:
            for task, caught in by_task:
                path = _fill(template, caught)
                if inside(path) and template.match(path) == caught:
                    found[task].append((path, "C"))
            return [task for task, _ in by_task]
    return []


def _captures(
    sibling: Template, workflow: Workflow, types: tuple[str, ...]
) -> list[tuple[int, Captures]]:
    return [
        (i, caught)
        for i, task in enumerate(workflow.tasks)
        if task.type in types
        for path in task.targets
        if (caught := sibling.match(path)) is not None
    ]


def _holes(template: Template) -> tuple[str, ...]:
    return tuple(part for part in template.parts if isinstance(part, str))


def _fill(template: Template, caught: Captures) -> bytes:
    values = iter(caught)
    return b"".join(p if isinstance(p, bytes) else next(values) for p in template.parts)


def _examples(rule: Rule) -> list[bytes]:
    out = []
    for text in (*rule.per_file, *rule.examples):
        try:
            out.append(to_bytes(text))
        except InputError:
            continue
    return out
