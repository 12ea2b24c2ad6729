"""Makeflow file lists corrected by a recorded run: declared files compared with files in use.

An input is removed only if no task of the rule's type opened or ran a file with such a name, the
command does not name it, and it is not empty (an empty file may express an order). Undeclared
inputs that were read are added, and undeclared outputs that other tasks read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.emitters import EmitRequest
from tracehint.adapters.engines.makeflow.jx import entry_name
from tracehint.adapters.engines.makeflow.text import Task
from tracehint.adapters.engines.makeflow.workflow import Workflow, read_workflow
from tracehint.adapters.paths import inside
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

_PLAIN = re.compile(rb"[A-Za-z0-9_.+=,@%/~-]+")  # names that need no quotes in a rule's first line


@dataclass(frozen=True)
class Lists:
    """The files of one rule; `seen`: its task is in the recorded run."""

    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]
    dropped: tuple[bytes, ...]
    added: tuple[bytes, ...]
    seen: bool


def lists_of(workflow: Workflow, observed: Observed) -> list[Lists]:
    """Return the lists of each rule, in order."""
    readers = observed.readers()
    return [_lists(task, observed, frozenset(readers)) for task in workflow.tasks]


def _lists(task: Task, observed: Observed, read: frozenset[bytes]) -> Lists:
    number = observed.task_of(task.targets)
    if number is None:
        return Lists(task.sources, task.targets, (), (), seen=False)
    kind = observed.types[number]
    dropped = tuple(p for p in task.sources if not _is_needed(task, p, kind, observed))
    folders = tuple(p.rstrip(b"/") + b"/" for p in task.sources)
    more = observed.read.get(number, frozenset()) - {*task.sources, *task.targets}
    added = tuple(sorted(p for p in more if inside(p) and not p.startswith(folders)))
    made = observed.made.get(number, frozenset()) & read - {*task.targets, *task.sources}
    outputs = (*task.targets, *sorted(p for p in made if inside(p)))
    kept = tuple(p for p in task.sources if p not in dropped)
    return Lists((*kept, *added), outputs, dropped, added, seen=True)


def _is_needed(task: Task, path: bytes, kind: str, observed: Observed) -> bool:
    """Whether an input must stay on the list."""
    if not inside(path) or observed.sizes.get(path, 1) == 0:
        return True
    name = path.rpartition(b"/")[2].decode("latin-1")
    if name in task.command or observed.is_used(kind, path):
        return True
    folder = path.rstrip(b"/") + b"/"
    return any(p.startswith(folder) for files in observed.read.values() for p in files)


def with_lists(workflow: Workflow, lists: Sequence[Lists]) -> tuple[bytes, int]:
    """Return (the workflow with these lists, rules left unchanged despite different lists)."""
    if workflow.data is not None:
        rules = [
            _json_rule(*row)
            for row in zip(workflow.data["rules"], workflow.tasks, lists, strict=True)
        ]
        return (json.dumps({**workflow.data, "rules": rules}, indent=1) + "\n").encode(), 0
    out: list[str] = []
    done = left = 0
    for task, mine in zip(workflow.tasks, lists, strict=True):
        if not (mine.dropped or mine.outputs != task.targets or mine.added):
            continue
        names = (*mine.outputs, *mine.inputs)
        start, end = task.header
        renamed = "->" in workflow.text[start:end]
        if renamed or not all(_PLAIN.fullmatch(name) for name in names):
            left += 1
            continue
        sides = (b" ".join(side).decode("ascii") for side in (mine.outputs, mine.inputs))
        out += [workflow.text[done:start], ": ".join(sides)]
        done = end
    return "".join([*out, workflow.text[done:]]).encode("latin-1"), left


def describe_lists(lists: Sequence[Lists], sizes: Mapping[bytes, int], left: int) -> list[str]:
    """Return messages for the user about the new lists, one per line."""
    dropped = [path for mine in lists for path in mine.dropped]
    unknown = sum(path not in sizes for path in dropped)
    bytes_ = sum(sizes.get(path, 0) for path in dropped)
    known = f"{size(bytes_)} per run" + (f", {unknown} of unknown size" if unknown else "")
    lines = [
        f"{plural(len(dropped), 'declared input')} that no task reads removed ({known}), "
        f"{plural(sum(len(mine.added) for mine in lists), 'undeclared input')} that "
        "tasks read added"
    ]
    if left:
        lines.append(f"{plural(left, 'rule')} with renamed or unusual file names left unchanged")
    unseen = sum(not mine.seen for mine in lists)
    if unseen:
        lines.append(f"{plural(unseen, 'rule')} not in the recorded run left unchanged")
    return lines


def _json_rule(raw: dict[str, Any], task: Task, mine: Lists) -> dict[str, Any]:
    gone, made = set(mine.dropped), set(task.targets)
    outputs = [name for name in mine.outputs if name not in made]
    return {
        **raw,
        "inputs": [e for e in raw.get("inputs") or [] if entry_name(e) not in gone]
        + [_text(name) for name in mine.added],
        "outputs": [*(raw.get("outputs") or []), *map(_text, outputs)],
    }


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


# Files that each task of a recorded run used, for engines that stage declared files.


_READ = """
    SELECT c.task, f.path FROM consumers c JOIN files f USING (file)
    WHERE f.data AND f.role IN ('input', 'intermediate', 'output')
      AND NOT EXISTS (FROM producers p WHERE p.file = c.file AND p.task = c.task)"""
_MADE = "SELECT p.task, f.path FROM producers p JOIN files f USING (file)"
_NAMED = """
    SELECT t.type, f.path_text AS name
    FROM consumers c JOIN files f USING (file) JOIN work t USING (task)
    UNION SELECT type, path_text FROM b_io
    UNION SELECT t.type, e.path_text FROM b_exe e JOIN work t USING (task)"""
_SIZES = "SELECT path, max(size_bytes) AS size FROM files GROUP BY path"


@dataclass(frozen=True)
class Observed:
    """Files in use per task. Paths are below the data root; tasks are numbers of the analysis."""

    types: Mapping[int, str]
    makers: Mapping[bytes, int]  # file -> task that wrote it
    read: Mapping[int, frozenset[bytes]]  # task -> data that it read and did not write
    made: Mapping[int, frozenset[bytes]]
    shapes: Mapping[str, frozenset[str]]  # type -> shapes of names its tasks opened or ran
    sizes: Mapping[bytes, int]

    def readers(self) -> Mapping[bytes, int]:
        """Count the tasks that read each file."""
        counts: dict[bytes, int] = {}
        for files in self.read.values():
            for path in files:
                counts[path] = counts.get(path, 0) + 1
        return counts

    def task_of(self, outputs: Iterable[bytes]) -> int | None:
        """Return the recorded task that wrote one of these files."""
        return next((self.makers[path] for path in outputs if path in self.makers), None)

    def is_used(self, kind: str, path: bytes) -> bool:
        """Whether any task of that type opened or ran a file with a name of this shape.

        One file of a set that belongs together (`ref.nsq`, `ref.ntf`) is sufficient.
        """
        name = shape(to_text(path))
        known = self.shapes.get(kind, frozenset())
        return name in known or _stem(name) in known


def shape(name: str) -> str:
    """Replace every number by `#`: names of one type's tasks differ in their numbers.

    >>> shape("out/part_17.bin")
    'out/part_#.bin'
    """
    return re.sub(r"[0-9]+", "#", name)


def _stem(name: str) -> str:
    return re.sub(r"\.[^./]*$", "", name) + ".*"


def observe(run: Path) -> Observed:
    """Read and analyze a bundle; raises InputError, BundleError."""
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.hintgen.lint.context import Context

    found = load_run(run, Options())
    if found.bundle is None:
        raise InputError(
            f"{run}: an analysis does not list the files that a task opened",
            "Give the trace bundle.",
        )
    context = Context(found.analysis, found.bundle)
    names: dict[str, set[str]] = {}
    for row in context.rows(_NAMED):
        if row["name"]:
            name = shape(row["name"])
            names.setdefault(row["type"], set()).update((name, _stem(name)))
    makers = {row["path"]: row["task"] for row in context.rows(_MADE)}
    return Observed(
        types={row["task"]: row["type"] for row in context.rows("SELECT task, type FROM work")},
        makers=makers,
        read=_by_task(context.rows(_READ)),
        made=_by_task(context.rows(_MADE)),
        shapes={kind: frozenset(found) for kind, found in names.items()},
        sizes={row["path"]: row["size"] or 0 for row in context.rows(_SIZES)},
    )


def _by_task(rows: Iterable[Mapping[str, Any]]) -> dict[int, frozenset[bytes]]:
    found: dict[int, set[bytes]] = {}
    for row in rows:
        found.setdefault(row["task"], set()).add(row["path"])
    return {task: frozenset(paths) for task, paths in found.items()}


# A Makeflow workflow with the file lists of a recorded run, for engines that move files.


@dataclass(frozen=True)
class Listed:
    """The original workflow, the files that it used, and its text with new lists."""

    workflow: Workflow
    observed: Observed
    lists: Sequence[Lists]
    text: bytes
    left: int
    output: Path


def declare_listed_files(request: EmitRequest, suffix: str) -> Listed:
    """Return the workflow with new lists; `suffix`: of the default output. Raises UsageError."""
    if request.workflow is None or request.run is None:
        raise UsageError(
            "the lists come from the workflow and a recorded run of it",
            f"tracehint emit H.json --workflow-engine {request.engine} W.makeflow --like RUN -o F",
        )
    workflow, observed = read_workflow(request.workflow), observe(request.run)
    lists = lists_of(workflow, observed)
    text, left = with_lists(workflow, lists)
    output = request.output or Path(request.workflow.name + suffix)
    return Listed(workflow, observed, lists, text, left, output)
