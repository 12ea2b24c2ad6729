"""Makeflow: the same workflow, with each rule's files tagged by the rule's own shell.

The result is the user's file with a fixed prefix before the command of each rule with hints, and a
folder next to it with the tag program and its table. Inputs and directories are tagged before the
command, outputs after it. With --precreate outputs are created beforehand, empty: Makeflow keeps a
file that exists before the rule runs (same inode), so it has its hint before the first byte.
Unmodified workflows also work: `makeflow --wrapper './FOLDER/tag %%' WORKFLOW`. A plan for this
workflow becomes a table for `tracehint place` in the folder (parts.py).
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.makeflow import parts as makeflow_parts
from tracehint.adapters.engines.makeflow.parts import order_by_parts
from tracehint.adapters.engines.makeflow.text import Task
from tracehint.adapters.engines.makeflow.workflow import Workflow, read_workflow
from tracehint.adapters.engines.planned import find_parts, nodes_of
from tracehint.adapters.engines.tag_table import TagTarget, check_folder_name, encode, tag_files
from tracehint.adapters.paths import Paths, inside
from tracehint.adapters.plan import TagPlan, build_plan
from tracehint.adapters.stores.base import merge_gaps
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.template import Subject, Template, TooCostlyError, parse, texts_at
from tracehint.hintgen.match.ruleindex import TemplateIndex
from tracehint.limits import limit
from tracehint.schemas.wording import plural

_LEAVING = re.compile(
    r"(?<![\w./-])(?:cd|pushd|popd|chdir|exec|trap|eval|source|kill|\.)(?=[\s;&|)]|$)"
)
# Commands that create something other than a file, or fail if their target exists.
_MAKING = re.compile(r"(?<![\w./-])(?:mkdir|ln|link|mkfifo|mknod|unzip|noclobber)(?=\s)[^;&|\n]*")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the annotated workflow, the tag folder, and the command to run next."""
    if request.workflow is None:
        raise UsageError(
            "no workflow given",
            "Add the Makeflow file: tracehint emit H.json --workflow-engine makeflow W.mf -o F",
        )
    output = request.output or Path(request.workflow.name + ".hinted")
    check_folder_name(output.name)
    workflow = read_workflow(request.workflow)
    folder = Path(f"{output}.tracehint")
    parts = find_parts(hints.plan, makeflow_parts.names(workflow)) if hints.plan else None
    planned = parts is not None and makeflow_parts.is_planned(hints, parts, workflow)
    moved: list[str] = []
    if parts is not None and parts.bound:
        workflow, parts, moved = order_by_parts(workflow, parts)
    tasks, remarks = targets_by_task(
        hints, workflow, request.nodes, precreate=request.precreate, planned=planned
    )
    table, gaps, count = encode(tasks, request.store, allow_trusted=request.allow_trusted)
    tagged = [bool(targets) for targets in tasks]
    options = [""] * len(tasks)
    if parts is not None and hints.plan is not None:
        options = makeflow_parts.batch_options(parts, nodes_of(hints.plan, request.hosts))
    text = annotate(workflow, tagged, folder.name, options)
    files: dict[Path | None, bytes] = {output: text}
    files.update(tag_files(folder, table))
    if parts is not None:
        files[folder / "parts"] = makeflow_parts.table(workflow, parts)
        ways = makeflow_parts.describe_runs(parts, folder.name, output.name, request.hosts)
        remarks = [*ways, *moved, *remarks]
    flag = " --json" if workflow.data is not None else ""
    settings = f"{plural(count, 'setting')} for {sum(tagged):,} of {plural(len(tasks), 'rule')}"
    run = f"makeflow{flag} {output.name}   (with {folder.name} beside it)"
    return Emitted(
        files=files,
        executable={folder / "tag", folder / "helper"},
        remarks=[f"{settings}. Run: {run}", *remarks],
        gaps=merge_gaps(gaps),
    )


def targets_by_task(
    hints: HintFile,
    workflow: Workflow,
    nodes: int | None,
    *,
    precreate: bool = False,
    planned: bool = False,
) -> tuple[list[list[TagTarget]], list[str]]:
    """Return the tag targets of each task, and messages for the user, one per line.

    planned: files of the workflow that the hint file's plan does not name get no hints.
    """
    hidden, left_out = find_undeclared_outputs(hints, workflow)
    extra = sorted({path for paths in hidden for path, _ in paths})
    known = workflow.describe_files(frozenset(hints.peeks))
    paths = Paths(files=extra, declared=workflow.files, known=known, planned=planned)
    plan = build_plan(hints, paths, nodes=nodes)
    values = {t.path: dict(t.hints) for t in plan.targets if t.kind == "file"}
    made = {path for task in workflow.tasks for path in task.targets}
    out = []
    moving = 0
    for task, more in zip(workflow.tasks, hidden, strict=True):
        makes = precreate and not (leaves(task.command) or refuses(task.command, task.targets))
        names = [(p, "C") for p in dict.fromkeys(task.targets)] + list(more)
        names += [(p, "F") for p in dict.fromkeys(task.sources) if p not in made]
        names = [(p, kind) for p, kind in names if p in values]
        moving += precreate and not makes and any(kind != "F" for _, kind in names)
        found = _directories(plan, task, [p for p, _ in more])
        found += [
            TagTarget(path=p, kind=k if makes or k == "F" else "A", hints=values[p])
            for p, k in names
        ]
        out.append(found if task.at is not None else [])
    afterwards = not precreate and any(target.kind == "A" for found in out for target in found)
    return out, plan.remarks() + _remarks(moving, left_out, afterwards=afterwards)


def _remarks(moving: int, left_out: int, *, afterwards: bool) -> list[str]:
    """Return messages for the user. `moving`: rules whose outputs cannot be created beforehand."""
    remarks = []
    if moving:
        remarks.append(
            f"{plural(moving, 'rule')} change directory, leave their shell, create a directory or "
            "a link: their outputs are tagged afterwards, not created beforehand"
        )
    elif afterwards:
        remarks.append(
            "Outputs are tagged after their rule ends: hints that act while data are written then "
            "come only from the directory's default (--precreate creates outputs beforehand)"
        )
    if left_out:
        remarks.append(f"left out: {plural(left_out, 'remembered file')} not in this workflow")
    return remarks


def leaves(command: str) -> bool:
    """Whether a command may change directory, or end without its shell's EXIT trap.

    Matches words anywhere in the command: a false positive is only tagged afterwards.
    """
    return _LEAVING.search(command) is not None


def refuses(command: str, targets: Iterable[bytes]) -> bool:
    """Whether a command may fail if a target exists as a file, as mkdir and ln do."""
    words = {word.strip("'\"/") for made in _MAKING.findall(command) for word in made.split()}
    return any(os.fsdecode(target).rstrip("/") in words for target in targets)


def _directories(plan: TagPlan, task: Task, more: Sequence[bytes]) -> list[TagTarget]:
    """Return the defaults of the directories that the task writes to."""
    defaults: Mapping[bytes, Mapping[str, str]] = {
        t.path: t.hints for t in plan.targets if t.kind == "directory"
    }
    folders = dict.fromkeys(p.rpartition(b"/")[0] for p in (*task.targets, *more))
    return [
        TagTarget(path=folder, kind="D", hints=dict(defaults[folder]))
        for folder in folders
        if folder in defaults
    ]


def annotate(
    workflow: Workflow, tagged: Sequence[bool], folder: str, options: Sequence[str] = ()
) -> bytes:
    """Return the workflow with the prefix before each tagged rule's command, otherwise unchanged.

    options: the batch system options of each rule, if any.
    """
    options = options or [""] * len(tagged)
    if workflow.data is not None:
        rules = [
            {**raw, "command": prefix(i, folder) + raw["command"]} if tagged[i] else raw
            for i, raw in enumerate(workflow.data["rules"])
        ]
        rules = list(map(makeflow_parts.with_options, rules, options))
        return (json.dumps({**workflow.data, "rules": rules}, indent=1) + "\n").encode()
    out: list[str] = []
    done = before = 0
    for number, task in enumerate(workflow.tasks):
        if task.at is None:
            continue
        if options[number]:
            line = workflow.text.rfind("\n", 0, task.at) + 1
            option = makeflow_parts.option_line(options[number], workflow.text, before, line)
            out += [workflow.text[done:line], option]
            done = line
        if tagged[number]:
            out += [workflow.text[done : task.at], prefix(number, folder)]
            done = task.at
        before = task.at
    return "".join([*out, workflow.text[done:]]).encode("latin-1")


def prefix(number: int, folder: str) -> str:
    """Return the text that a rule's shell sources; without `$`, which Makeflow would expand."""
    return (
        f"TRACEHINT_RULE={number} TRACEHINT_DIR=./{folder}; "
        f"[ -r ./{folder}/tag ] && . ./{folder}/tag; "
    )


# Files that a workflow does not declare although its tasks write them.
#
# Two kinds can be predicted. A rule for one fixed path (`field.bin`) applies to every task of its
# producing types. A rule with placeholders (`p_{n}_area.fits`) follows a declared output of the
# same task (`p_{n}.fits`) if the learned examples contain the same numbers as that output's files.


Captures = tuple[bytes, ...]


def find_undeclared_outputs(
    hints: HintFile, workflow: Workflow
) -> tuple[list[list[tuple[bytes, str]]], int]:
    """Return each task's undeclared outputs (path, tag kind) and the number of unused examples."""
    found: list[list[tuple[bytes, str]]] = [[] for _ in workflow.tasks]
    matches = _TemplateMatches(hints, workflow)
    declared = set(workflow.files)
    declared_templates = matches.find_fitting(declared)
    left_out = 0
    for rule in hints.rules:
        template = parse(rule.template)
        examples = [p for p in _examples(rule) if p not in declared]
        if not any(rule.producers) or template in declared_templates:
            continue
        if template.literal:
            path = to_bytes(rule.template)
            hits = [i for i, t in enumerate(workflow.tasks) if t.type in rule.producers]
            kind = "C" if len(hits) == 1 else "K"
            for i in hits if inside(path) else []:
                found[i].append((path, kind))
        else:
            hits = _add_sibling_outputs(matches, rule, template, examples, found)
        left_out += len(examples) if not hits else 0
    return found, left_out


class _TemplateMatches:
    """Matches between all rules' templates and the declared outputs, each name matched once.

    A name too costly to match has no match, as it gets no hint either.
    """

    def __init__(self, hints: HintFile, workflow: Workflow) -> None:
        self._types = [task.type for task in workflow.tasks]
        self._index = TemplateIndex(parse(rule.template) for rule in hints.rules)
        self._tasks: dict[Template, list[tuple[int, Captures]]] = defaultdict(list)
        for i, task in enumerate(workflow.tasks):
            for path in task.targets:
                for template, caught in self._match_templates(path):
                    self._tasks[template].append((i, caught))
        self._rules: dict[tuple[tuple[str, ...], Captures], dict[str, Rule]] = defaultdict(dict)
        for rule in hints.rules:
            template = parse(rule.template)
            for _, caught in self._tasks.get(template, ()):
                self._rules[_list_placeholders(template), caught][rule.id] = rule

    def _match_templates(self, path: bytes) -> list[tuple[Template, Captures]]:
        try:
            found = self._index.find_fitting(Subject(path, limit("match-work")))
            return [(template, texts_at(where, path)) for template, where in found]
        except TooCostlyError:
            return []

    def find_fitting(self, paths: Iterable[bytes]) -> set[Template]:
        """Return the templates that match one of the paths."""
        return {template for path in paths for template, _ in self._match_templates(path)}

    def siblings(self, holes: tuple[str, ...], caught: Captures) -> Iterable[Rule]:
        """Return rules with these placeholders that captured these texts in declared outputs."""
        return self._rules.get((holes, caught), {}).values()

    def by_task(self, template: Template, types: tuple[str, ...]) -> list[tuple[int, Captures]]:
        """Return (task, texts) of declared outputs that the template matches, for these types."""
        found = self._tasks.get(template, ())
        return [(i, caught) for i, caught in found if self._types[i] in types]


def _add_sibling_outputs(
    matches: _TemplateMatches,
    rule: Rule,
    template: Template,
    examples: list[bytes],
    found: list[list[tuple[bytes, str]]],
) -> list[int]:
    """Append the files that go with a sibling rule's declared outputs; return their tasks."""
    holes = _list_placeholders(template)
    wanted = {caught for p in examples if (caught := template.match(p)) is not None}
    for other in matches.siblings(holes, next(iter(wanted), ())):
        if other is rule or not set(other.producers) & set(rule.producers):
            continue
        by_task = matches.by_task(parse(other.template), rule.producers)
        if wanted and wanted <= {caught for _, caught in by_task}:
            for task, caught in by_task:
                path = _fill(template, caught)
                if inside(path) and template.match(path) == caught:
                    found[task].append((path, "C"))
            return [task for task, _ in by_task]
    return []


def _list_placeholders(template: Template) -> tuple[str, ...]:
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
