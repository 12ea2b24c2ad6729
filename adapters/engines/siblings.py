"""Files that a workflow does not declare although its tasks write them.

Two kinds can be foretold. A rule for one fixed path (`field.bin`) belongs to every task of its
producing types. A rule with placeholders (`p_{n}_area.fits`) follows a declared output of the same
task (`p_{n}.fits`) when the learned examples carry the same numbers as that output's files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tracehint.adapters.engines.workflow import Workflow
from tracehint.adapters.paths import inside
from tracehint.errors import InputError
from tracehint.hintgen.hints.fitting import Subject, TooCostlyError, texts_at
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import Template, parse
from tracehint.hintgen.match.templateindex import TemplateIndex
from tracehint.limits import limit

Captures = tuple[bytes, ...]


def undeclared(hints: HintFile, workflow: Workflow) -> tuple[list[list[tuple[bytes, str]]], int]:
    """Per task (path, kind) of undeclared outputs, kinds as in tag_table; and examples left out."""
    found: list[list[tuple[bytes, str]]] = [[] for _ in workflow.tasks]
    catches = _Catches(hints, workflow)
    declared = set(workflow.files)
    spoken_of = catches.fitting(declared)
    left_out = 0
    for rule in hints.rules:
        template = parse(rule.template)
        examples = [p for p in _examples(rule) if p not in declared]
        if not any(rule.producers) or template in spoken_of:
            continue
        if template.literal:
            path = to_bytes(rule.template)
            hits = [i for i, t in enumerate(workflow.tasks) if t.type in rule.producers]
            kind = "C" if len(hits) == 1 else "K"
            for i in hits if inside(path) else []:
                found[i].append((path, kind))
        else:
            hits = _follow(catches, rule, template, examples, found)
        left_out += len(examples) if not hits else 0
    return found, left_out


class _Catches:
    """What the templates of all rules catch among the declared outputs, each name looked at once.

    A name too costly to match is caught by no rule, as it gets no hint either.
    """

    def __init__(self, hints: HintFile, workflow: Workflow) -> None:
        self._types = [task.type for task in workflow.tasks]
        self._index = TemplateIndex(parse(rule.template) for rule in hints.rules)
        self._tasks: dict[Template, list[tuple[int, Captures]]] = defaultdict(list)
        for i, task in enumerate(workflow.tasks):
            for path in task.targets:
                for template, caught in self._fits(path):
                    self._tasks[template].append((i, caught))
        self._rules: dict[tuple[tuple[str, ...], Captures], dict[str, Rule]] = defaultdict(dict)
        for rule in hints.rules:
            template = parse(rule.template)
            for _, caught in self._tasks.get(template, ()):
                self._rules[_holes(template), caught][rule.id] = rule

    def _fits(self, path: bytes) -> list[tuple[Template, Captures]]:
        try:
            found = self._index.fitting(Subject(path, limit("match-work")))
            return [(template, texts_at(where, path)) for template, where in found]
        except TooCostlyError:
            return []

    def fitting(self, paths: Iterable[bytes]) -> set[Template]:
        """Templates that fit one of the paths."""
        return {template for path in paths for template, _ in self._fits(path)}

    def siblings(self, holes: tuple[str, ...], caught: Captures) -> Iterable[Rule]:
        """Rules with these placeholders that catch these texts in a declared output."""
        return self._rules.get((holes, caught), {}).values()

    def by_task(self, template: Template, types: tuple[str, ...]) -> list[tuple[int, Captures]]:
        """(task, texts) of the declared outputs that the template catches, of tasks of `types`."""
        found = self._tasks.get(template, ())
        return [(i, caught) for i, caught in found if self._types[i] in types]


def _follow(
    catches: _Catches,
    rule: Rule,
    template: Template,
    examples: list[bytes],
    found: list[list[tuple[bytes, str]]],
) -> list[int]:
    """Append the file that goes with each declared output of a sibling rule; the tasks so found."""
    holes = _holes(template)
    wanted = {caught for p in examples if (caught := template.match(p)) is not None}
    for other in catches.siblings(holes, next(iter(wanted), ())):
        if other is rule or not set(other.producers) & set(rule.producers):
            continue
        by_task = catches.by_task(parse(other.template), rule.producers)
        if wanted and wanted <= {caught for _, caught in by_task}:
            for task, caught in by_task:
                path = _fill(template, caught)
                if inside(path) and template.match(path) == caught:
                    found[task].append((path, "C"))
            return [task for task, _ in by_task]
    return []


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
