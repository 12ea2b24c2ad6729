"""Pegasus: the abstract workflow (workflow.yml) with bypass, stageOut and clusters by label.

A workflow input with one reader is read in place (`bypass`); one with many readers is staged once.
Producer-consumer pairs in the same part of the plan become a cluster: only chains, so that no
cluster can wait for itself. A file hinted as temporary stays in the run (`stageOut: false`) only
with --temporary. Hints are also written to the files' metadata. Checked with the Python API of 5.1;
the planner was not run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.makeflow.text import Task
from tracehint.adapters.engines.makeflow.workflow import Workflow
from tracehint.adapters.engines.planned import Parts, find_parts, nodes_of
from tracehint.adapters.engines.yaml_files import (
    child,
    get,
    items,
    read_node,
    render,
    set_key,
    text_of,
)
from tracehint.adapters.paths import Paths
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.plan import build_plan
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.wording import plural

_FILE = TextFile(kind="A workflow", limit="names-bytes", check="Check the path.")
Hints = Mapping[bytes, Mapping[str, str]]


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the annotated workflow, and the command that plans it."""
    if request.workflow is None:
        raise UsageError(
            "no workflow given",
            "Add it: tracehint emit H.json --workflow-engine pegasus workflow.yml -o F",
        )
    source = request.workflow
    output = request.output or source.with_suffix(".hinted.yml")
    top = read_node(_FILE.read(source).decode("utf-8", "replace"), source)
    jobs = [job for job in items(get(top, "jobs")) if getattr(job, "id", "") == "mapping"]
    if not jobs:
        raise InputError(f"{source}: no list of jobs", "Give the workflow.yml of Pegasus 5.")
    workflow = Workflow(tasks=tuple(map(_task, jobs)))
    parts = _parts(hints, jobs, workflow)
    known = workflow.describe_files(frozenset(hints.peeks))
    paths = Paths(files=[], declared=workflow.files, known=known, planned=parts.whole)
    plan = build_plan(hints, paths, directories=False, nodes=request.nodes)
    hints_of = {t.path: t.hints for t in plan.targets}
    nodes = nodes_of(hints.plan, request.hosts) if hints.plan else {}
    counts = _annotate_files(jobs, workflow, hints_of, temporary=request.temporary)
    clusters = _annotate_jobs(jobs, _chains(workflow, _parents(top, jobs), parts), parts, nodes)
    return Emitted(
        files={output: render(top)},
        remarks=[
            f"{plural(counts['bypass'], 'input')} read in place, "
            f"{plural(counts['stageOut'], 'file')} kept in the run, "
            f"{plural(clusters, 'cluster')}. Run: pegasus-plan --cluster label {output.name}",
            *parts.remarks(),
            *plan.remarks(),
        ],
    )


def _parts(hints: HintFile, jobs: Sequence[Any], workflow: Workflow) -> Parts:
    """Find each job's part by its id or its outputs."""
    names = [
        [text_of(get(job, "id")), *(os.fsdecode(path) for path in task.targets)]
        for job, task in zip(jobs, workflow.tasks, strict=True)
    ]
    return find_parts(hints.plan, names) if hints.plan else Parts((None,) * len(jobs), 0)


def _task(job: Any) -> Task:
    """Convert a job to the emitters' task; its type is its transformation's name."""
    uses = items(get(job, "uses"))
    kinds = {
        side: tuple(
            os.fsencode(text_of(get(use, "lfn")))
            for use in uses
            if text_of(get(use, "type")) in (side, "inout") and text_of(get(use, "lfn"))
        )
        for side in ("input", "output")
    }
    command = text_of(get(job, "name"))
    return Task(targets=kinds["output"], sources=kinds["input"], command=command, at=0)


def _annotate_files(
    jobs: Sequence[Any], workflow: Workflow, hints_of: Hints, *, temporary: bool
) -> dict[str, int]:
    """Annotate each use of a file; return the number of each annotation."""
    readers: dict[bytes, int] = {}
    for task in workflow.tasks:
        for path in set(task.sources):
            readers[path] = readers.get(path, 0) + 1
    made = {path for task in workflow.tasks for path in task.targets}
    counts = {"bypass": 0, "stageOut": 0}
    for use in (use for job in jobs for use in items(get(job, "uses"))):
        path = os.fsencode(text_of(get(use, "lfn")))
        hints = hints_of.get(path)
        if not hints:
            continue
        side = text_of(get(use, "type"))
        if side == "input" and path not in made and readers[path] == 1:
            set_key(use, "bypass", True)
            counts["bypass"] += 1
        brief = hints.get("Lifetime", "").startswith("temporary")
        if temporary and brief and side == "output" and readers.get(path):
            set_key(use, "stageOut", False)
            set_key(use, "registerReplica", False)
            counts["stageOut"] += 1
        for name, value in hints.items():
            set_key(child(use, "metadata"), f"tracehint.{name}", value)
    return counts


def _parents(top: Any, jobs: Sequence[Any]) -> list[set[int]]:
    """Return the declared predecessors of each job."""
    number = {text_of(get(job, "id")): at for at, job in enumerate(jobs)}
    before: list[set[int]] = [set() for _ in jobs]
    for row in items(get(top, "jobDependencies")):
        parent = number.get(text_of(get(row, "id")))
        for name in items(get(row, "children")):
            at = number.get(text_of(name))
            if at is not None and parent is not None and at != parent:
                before[at].add(parent)
    return before


def _chains(workflow: Workflow, before: list[set[int]], parts: Parts) -> list[list[int]]:
    """Return jobs of one part that follow each other one to one: only child of an only parent.

    A chain has one entry and one exit, so clusters of chains wait for each other only if their jobs
    do.
    """
    maker = {path: at for at, task in enumerate(workflow.tasks) for path in task.targets}
    after: list[set[int]] = [set() for _ in before]
    for at, task in enumerate(workflow.tasks):
        before[at] |= {maker[path] for path in task.sources if maker.get(path, at) != at}
        for other in before[at]:
            after[other].add(at)
    follows = {}
    for at, others in enumerate(before):
        if len(others) == 1 and parts.of_task[at] is not None:
            (other,) = others
            if len(after[other]) == 1 and parts.of_task[other] == parts.of_task[at]:
                follows[other] = at
    chains = []
    for start in sorted(follows.keys() - set(follows.values())):
        chain = [start]
        while chain[-1] in follows:
            chain.append(follows[chain[-1]])
        chains.append(chain)
    return chains


def _annotate_jobs(
    jobs: Sequence[Any], chains: Sequence[Sequence[int]], parts: Parts, nodes: Mapping[int, Host]
) -> int:
    """Set cluster labels and, if nodes are known, the machine; return the number of clusters.

    The author's labels are kept, the author's requirements are joined with ours.
    """
    for number, chain in enumerate(chains):
        for at in chain:
            profile = child(child(jobs[at], "profiles"), "pegasus")
            if get(profile, "label") is None:
                set_key(profile, "label", f"tracehint-{number}")
    for job, part in zip(jobs, parts.of_task, strict=True):
        if part is not None and part in nodes:
            profile = child(child(job, "profiles"), "condor")
            machine = f'(TARGET.Machine == "{nodes[part].name}")'
            own = text_of(get(profile, "requirements"))
            set_key(profile, "requirements", f"({own}) && {machine}" if own else machine)
    return len(chains)
