"""Makeflow: the same workflow, where each rule's files are tagged before its command runs.

The result is the user's file with one fixed prefix before the command of each rule that has hints,
and a folder beside it with the tag program and its table. Makeflow keeps a file that is there
before the rule runs (same inode), so the hint is on it before the first byte. Unchanged workflows
work as well: `makeflow --wrapper './FOLDER/tag %%' WORKFLOW`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.siblings import undeclared
from tracehint.adapters.engines.tag_table import TagTarget, check_folder_name, encode, tag_files
from tracehint.adapters.engines.workflow import Task, Workflow, read_workflow
from tracehint.adapters.plan import Paths, Plan, build_plan
from tracehint.adapters.stores.base import merge_gaps
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile


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
    tasks, left_out = targets_by_task(hints, workflow, request.nodes)
    table, gaps, count = encode(tasks, request.store, allow_trusted=request.allow_trusted)
    tagged = [bool(targets) for targets in tasks]
    text = annotate(workflow, tagged, folder.name)
    files: dict[Path | None, bytes] = {output: text}
    files.update(tag_files(folder, table))
    flag = " --json" if workflow.data is not None else ""
    remarks = [
        f"{count:,} settings for {sum(tagged):,} of {len(tasks):,} rules. Run: "
        f"makeflow{flag} {output.name}   (with {folder.name} beside it)"
    ]
    if left_out:
        remarks.append(f"{left_out:,} remembered files are not in this workflow and were left out")
    return Emitted(
        files=files,
        executable={folder / "tag", folder / "helper"},
        remarks=remarks,
        gaps=merge_gaps(gaps),
    )


def targets_by_task(
    hints: HintFile, workflow: Workflow, nodes: int | None
) -> tuple[list[list[TagTarget]], int]:
    """For each task what to tag before it runs; and how many remembered files have no task."""
    hidden, left_out = undeclared(hints, workflow)
    extra = sorted({path for paths in hidden for path, _ in paths})
    known = workflow.known(frozenset(hints.peeks))
    plan = build_plan(hints, Paths(files=extra, declared=workflow.files, known=known), nodes=nodes)
    values = {t.path: dict(t.hints) for t in plan.targets if t.kind == "file"}
    made = {path for task in workflow.tasks for path in task.targets}
    out = []
    for task, more in zip(workflow.tasks, hidden, strict=True):
        names = [(p, "C") for p in dict.fromkeys(task.targets)] + list(more)
        names += [(p, "F") for p in dict.fromkeys(task.sources) if p not in made]
        found = _directories(plan, task, [p for p, _ in more])
        found += [TagTarget(path=p, kind=k, hints=values[p]) for p, k in names if p in values]
        out.append(found if task.at is not None else [])
    return out, left_out


def _directories(plan: Plan, task: Task, more: Sequence[bytes]) -> list[TagTarget]:
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


def annotate(workflow: Workflow, tagged: Sequence[bool], folder: str) -> bytes:
    """The workflow with the prefix before each tagged rule's command; all else as it was."""
    if workflow.data is not None:
        rules = [
            {**raw, "command": prefix(i, folder) + raw["command"]} if tagged[i] else raw
            for i, raw in enumerate(workflow.data["rules"])
        ]
        return (json.dumps({**workflow.data, "rules": rules}, indent=1) + "\n").encode()
    out: list[str] = []
    done = 0
    for number, task in enumerate(workflow.tasks):
        if tagged[number] and task.at is not None:
            out += [workflow.text[done : task.at], prefix(number, folder)]
            done = task.at
    return "".join([*out, workflow.text[done:]]).encode("latin-1")


def prefix(number: int, folder: str) -> str:
    """Sourced by the rule's own shell; free of `$`, which Makeflow would take for a variable."""
    return (
        f"TRACEHINT_RULE={number} TRACEHINT_DIR=./{folder}; "
        f"[ -r ./{folder}/tag ] && . ./{folder}/tag; "
    )
