"""File lists of a Makeflow workflow after a recorded run: what rules declare, and what they used.

An input goes from a list only where no task of the rule's type ever opened or ran a file of such a
name, the command does not name it, and it holds data (an empty file may be there for the order). An
input that was read and not declared comes onto it, as does an output that others read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracehint.adapters.engines.observed import Observed
from tracehint.adapters.engines.workflow import Task, Workflow
from tracehint.adapters.paths import inside
from tracehint.hintgen.text.units import plural, size

_PLAIN = re.compile(rb"[A-Za-z0-9_.+=,@%/~-]+")  # written in a rule's first line as it is


@dataclass(frozen=True)
class Lists:
    """The files of one rule; `seen`: the run has its task."""

    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]
    dropped: tuple[bytes, ...]
    added: tuple[bytes, ...]
    seen: bool


def lists_of(workflow: Workflow, observed: Observed) -> list[Lists]:
    """One entry for each rule, in order."""
    readers = observed.readers()
    return [_lists(task, observed, frozenset(readers)) for task in workflow.tasks]


def _lists(task: Task, observed: Observed, read: frozenset[bytes]) -> Lists:
    number = observed.task_of(task.targets)
    if number is None:
        return Lists(task.sources, task.targets, (), (), seen=False)
    kind = observed.types[number]
    dropped = tuple(p for p in task.sources if not _needed(task, p, kind, observed))
    folders = tuple(p.rstrip(b"/") + b"/" for p in task.sources)
    more = observed.read.get(number, frozenset()) - {*task.sources, *task.targets}
    added = tuple(sorted(p for p in more if inside(p) and not p.startswith(folders)))
    made = observed.made.get(number, frozenset()) & read - {*task.targets, *task.sources}
    outputs = (*task.targets, *sorted(p for p in made if inside(p)))
    kept = tuple(p for p in task.sources if p not in dropped)
    return Lists((*kept, *added), outputs, dropped, added, seen=True)


def _needed(task: Task, path: bytes, kind: str, observed: Observed) -> bool:
    """Whether an input must stay on the list."""
    if not inside(path) or observed.sizes.get(path, 1) == 0:
        return True
    name = path.rpartition(b"/")[2].decode("latin-1")
    if name in task.command or observed.used(kind, path):
        return True
    folder = path.rstrip(b"/") + b"/"
    return any(p.startswith(folder) for files in observed.read.values() for p in files)


def with_lists(workflow: Workflow, lists: Sequence[Lists]) -> tuple[bytes, int]:
    """(the workflow with these lists, rules left as they were though theirs differ)."""
    if workflow.data is not None:
        rules = [
            _json_rule(raw, mine) for raw, mine in zip(workflow.data["rules"], lists, strict=True)
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


def about_lists(lists: Sequence[Lists], sizes: Mapping[bytes, int], left: int) -> list[str]:
    """What people have to know of the new lists, a line each."""
    dropped = [path for mine in lists for path in mine.dropped]
    unknown = sum(path not in sizes for path in dropped)
    bytes_ = sum(sizes.get(path, 0) for path in dropped)
    known = f"{size(bytes_)} a run" + (f", {unknown} of unknown size" if unknown else "")
    lines = [
        f"{plural(len(dropped), 'declared input')} that no task reads left out ({known}), "
        f"{plural(sum(len(mine.added) for mine in lists), 'input')} that were read and not "
        "declared put in"
    ]
    if left:
        lines.append(f"{plural(left, 'rule')} with renamed or odd file names left as they were")
    unseen = sum(not mine.seen for mine in lists)
    if unseen:
        lines.append(f"{plural(unseen, 'rule')} not in the recorded run left as they were")
    return lines


def _json_rule(raw: dict[str, Any], mine: Lists) -> dict[str, Any]:
    gone = set(mine.dropped)
    outputs = [name for name in mine.outputs if name not in _names(raw.get("outputs"))]
    return {
        **raw,
        "inputs": [e for e in raw.get("inputs", []) if _name(e) not in gone]
        + [_text(name) for name in mine.added],
        "outputs": [*raw.get("outputs", []), *map(_text, outputs)],
    }


def _names(entries: Any) -> set[bytes]:
    return {_name(entry) for entry in entries or []}


def _name(entry: Any) -> bytes:
    text = entry.get("dag_name") if isinstance(entry, dict) else entry
    return str(text).encode("utf-8", "surrogateescape")


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
