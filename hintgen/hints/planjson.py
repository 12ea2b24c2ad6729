"""A plan as the JSON of a hint file, and back, checked: the file may come from anybody."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.hints.fields import bad, entries, get
from tracehint.hintgen.hints.pathtext import to_bytes
from tracehint.hintgen.hints.plan import STEAL, FilePart, Plan, TaskPart
from tracehint.hintgen.hints.vocabulary import HINT_NAMES, valid
from tracehint.limits import check, limit

MAX_PARTS = 1_000_000
MAX_SECONDS = 1e15
MAX_BYTES = 1e21
MAX_PATH = 16_384  # characters, escapes included


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The object `plan` of a hint file."""
    return {
        "cluster": plan.cluster,
        "strategy": plan.strategy,
        "seconds": {"default": plan.default_seconds, "planned": plan.planned_seconds},
        "network_bytes": {"default": plan.default_bytes, "planned": plan.planned_bytes},
        "parts": plan.parts,
        "steal": plan.steal,
        "tasks": [{"name": task.name, "part": task.part} for task in plan.tasks],
        "files": [{"path": f.path, "part": f.part, "hints": dict(f.hints)} for f in plan.files],
    }


def plan_from_json(data: dict[str, Any], origin: str = "hint file") -> Plan:
    """A checked Plan. Raises InputError: names the first thing that is wrong."""
    parts = get(data, "parts", int)
    if not 0 <= parts <= MAX_PARTS:
        raise bad(f"a plan of {parts} parts")
    for key in ("tasks", "files"):
        rows = get(data, key, list)
        check("plan-rows", f"{origin}: {key} of the plan", len(rows))
    seconds = get(data, "seconds", dict)
    most = limit("plan-rows")
    moved = get(data, "network_bytes", dict) if "network_bytes" in data else {}
    tasks = tuple(_task(raw, parts) for raw in entries(data, "tasks", dict, most))
    files = tuple(_file(raw, parts) for raw in entries(data, "files", dict, most))
    _refuse_twice([task.name for task in tasks], "task")
    _refuse_twice([_path(file.path) for file in files], "file")
    return Plan(
        cluster=get(data, "cluster", str),
        strategy=get(data, "strategy", str),
        default_seconds=_seconds(seconds, "default"),
        planned_seconds=_seconds(seconds, "planned"),
        parts=parts,
        steal=_steal(data),
        tasks=tasks,
        files=files,
        default_bytes=_bytes(moved, "default"),
        planned_bytes=_bytes(moved, "planned"),
    )


def _steal(data: dict[str, Any]) -> str:
    steal = data.get("steal", "any")
    if steal not in STEAL:
        raise bad("a plan with an unknown way to steal")
    return str(steal)


def _seconds(data: dict[str, Any], key: str) -> float:
    value = get(data, key, (int, float))
    if not 0 <= value <= MAX_SECONDS or not math.isfinite(value):
        raise bad(f"a plan with {key} seconds that cannot be")
    return float(value)


def _bytes(data: dict[str, Any], key: str) -> float | None:
    value = data.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_BYTES:
        raise bad(f"a plan with {key} bytes that cannot be")
    return float(value)


def _task(data: dict[str, Any], parts: int) -> TaskPart:
    name = get(data, "name", str)
    if not name:
        raise bad("a task of the plan without a name")
    return TaskPart(name, _part(data, parts, f"task {name[:80]!r}"))


def _file(data: dict[str, Any], parts: int) -> FilePart:
    path = get(data, "path", str)
    _path(path)
    hints = get(data, "hints", dict)
    if not hints or len(hints) > len(HINT_NAMES):
        raise bad(f"file {path[:80]!r} of the plan has no hint, or too many")
    for name, value in hints.items():
        if not isinstance(value, str) or not valid(name, value):
            raise bad(f"file {path[:80]!r} of the plan has an unknown hint {name[:80]!r}")
    part = data.get("part")
    if part is not None:
        part = _part(data, parts, f"file {path[:80]!r}")
    return FilePart(path, part, dict(hints))


def _part(data: dict[str, Any], parts: int, what: str) -> int:
    part = data.get("part")
    if type(part) is not int or not 0 <= part < parts:
        raise bad(f"the part of {what} is none of the plan's {parts}")
    return part


def _path(text: str) -> bytes:
    """The path below the data root: relative, in one way of writing, as a name can be."""
    try:
        path = to_bytes(text) if len(text) <= MAX_PATH else b""
    except InputError:
        path = b""
    if b"\0" in path or not {b"", b".", b".."}.isdisjoint(path.split(b"/")):
        raise bad(f"{text[:80]!r} is no path below the data root")
    return path


def _refuse_twice(names: Sequence[str | bytes], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise bad(f"the plan has the {what} {twice[:80]!r} twice")
