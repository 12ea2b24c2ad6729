"""Makeflow: the same workflow, where each rule's files are tagged by its own shell.

The result is the user's file with one fixed prefix before the command of each rule that has hints,
and a folder beside it with the tag program and its table. Inputs and directories are tagged before
the command, outputs when it has ended. With --precreate outputs are made beforehand, empty:
Makeflow keeps a file that is there before the rule runs (same inode), so the hint is on it before
the first byte. Unchanged workflows work as well: `makeflow --wrapper './FOLDER/tag %%' WORKFLOW`.
A plan for this workflow becomes a table for `tracehint place` in the folder (makeflow_parts.py).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tracehint.adapters.engines import makeflow_parts
from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.makeflow_order import reordered
from tracehint.adapters.engines.planned import find_parts, nodes_of
from tracehint.adapters.engines.siblings import undeclared
from tracehint.adapters.engines.tag_table import TagTarget, check_folder_name, encode, tag_files
from tracehint.adapters.engines.workflow import Task, Workflow, read_workflow
from tracehint.adapters.paths import Paths
from tracehint.adapters.plan import TagPlan, build_plan
from tracehint.adapters.stores.base import merge_gaps
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.text.units import plural

_LEAVING = re.compile(
    r"(?<![\w./-])(?:cd|pushd|popd|chdir|exec|trap|eval|source|kill|\.)(?=[\s;&|)]|$)"
)
# Programs that make another thing than a file, or nothing where there is one.
_MAKING = re.compile(r"(?<![\w./-])(?:mkdir|ln|link|mkfifo|mknod|unzip|noclobber)(?=\s)[^;&|\n]*")


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """The annotated workflow, the tag folder, and what to run next."""
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
    planned = parts is not None and makeflow_parts.is_for(hints, parts, workflow)
    moved: list[str] = []
    if parts is not None and parts.bound:
        workflow, parts, moved = reordered(workflow, parts)
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
        ways = makeflow_parts.told(parts, folder.name, output.name, request.hosts)
        remarks = [*ways, *moved, *remarks]
    flag = " --json" if workflow.data is not None else ""
    settings = f"{count:,} settings for {sum(tagged):,} of {len(tasks):,} rules"
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
    """For each task what to tag and when; and what people have to know, a line each.

    planned: files of the workflow that the hint file's plan does not name need nothing.
    """
    hidden, left_out = undeclared(hints, workflow)
    extra = sorted({path for paths in hidden for path, _ in paths})
    known = workflow.known(frozenset(hints.peeks))
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
    """What people have to know. `moving`: rules whose outputs cannot be made beforehand."""
    remarks = []
    if moving:
        remarks.append(
            f"{plural(moving, 'rule')} change directory, leave their shell, make a directory or a "
            "link: their outputs are tagged afterwards, not made beforehand"
        )
    elif afterwards:
        remarks.append(
            "Outputs are tagged when their rule has ended: what acts on data as they are written "
            "then comes from their directory's default only (--precreate makes them beforehand)"
        )
    if left_out:
        remarks.append(f"{left_out:,} remembered files are not in this workflow and were left out")
    return remarks


def leaves(command: str) -> bool:
    """Whether a command may change directory, or end without its shell's EXIT trap.

    Looked at as words, wherever they stand: one rule too many is tagged afterwards.
    """
    return _LEAVING.search(command) is not None


def refuses(command: str, targets: Iterable[bytes]) -> bool:
    """Whether a command may fail where a target is a file already: as a directory, a link, ..."""
    words = {word.strip("'\"/") for said in _MAKING.findall(command) for word in said.split()}
    return any(os.fsdecode(target).rstrip("/") in words for target in targets)


def _directories(plan: TagPlan, task: Task, more: Sequence[bytes]) -> list[TagTarget]:
    """Defaults of the directories that the task writes in."""
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
    """The workflow with the prefix before each tagged rule's command; all else as it was.

    options: what a batch system is told about each rule, if anything.
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
            said = makeflow_parts.option_line(options[number], workflow.text, before, line)
            out += [workflow.text[done:line], said]
            done = line
        if tagged[number]:
            out += [workflow.text[done : task.at], prefix(number, folder)]
            done = task.at
        before = task.at
    return "".join([*out, workflow.text[done:]]).encode("latin-1")


def prefix(number: int, folder: str) -> str:
    """Sourced by the rule's own shell; free of `$`, which Makeflow would take for a variable."""
    return (
        f"TRACEHINT_RULE={number} TRACEHINT_DIR=./{folder}; "
        f"[ -r ./{folder}/tag ] && . ./{folder}/tag; "
    )
