"""Tasks that an engine's graph or log declares: alone, or joined to what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.model import TASKS
from tracehint.analyzer.tasks.describe import printable, shorten, type_of_text
from tracehint.analyzer.tasks.matching import Matcher
from tracehint.analyzer.tasks.model import DECLARED_TASK, PROC_TASK, TaskCut

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


def declared_only(bundle: Bundle) -> TaskCut:
    """The declared tasks of a bundle without processes."""
    import pyarrow as pa

    rows = _first_parts(bundle.tables["declared_tasks"].to_pylist())
    known = [r["start_ns"] for r in rows if r["start_ns"] is not None]
    origin = bundle.manifest.started_ns or (min(known) if known else 0)
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    tasks = [_row(row, number, origin, sites) for number, row in enumerate(rows)]
    names = pa.table(
        {"declared": [r["task"] for r in rows], "task": list(range(len(rows)))},
        schema=DECLARED_TASK,
    )
    return TaskCut(pa.Table.from_pylist(tasks, schema=TASKS), PROC_TASK.empty_table(), names)


def _first_parts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per declared task: parts of it have the same identifier."""
    return list({row["task"]: row for row in reversed(rows)}.values())[::-1]


def _row(row: dict[str, Any], number: int, origin: int, sites: dict[str, str]) -> dict[str, Any]:
    command = printable(row["command"] or b"")
    return {
        "task": number,
        "name": printable(row["name"]) or shorten(command) or row["task"],
        "type": printable(row["type"]) or type_of_text(command) or "unknown",
        "command": command,
        "host": row["host"],
        "site": sites.get(row["host"], ""),
        "start_s": 0.0 if row["start_ns"] is None else (row["start_ns"] - origin) / 1e9,
        "end_s": None if row["end_ns"] is None else (row["end_ns"] - origin) / 1e9,
        "exit_status": row["exit_status"],
        "attempt": row["attempt"] or 1,
        "processes": 0,
        "engine": False,
        "source": "declared",
    }


def join_declared(bundle: Bundle, cut: TaskCut) -> TaskCut:
    """Give observed tasks the names and types that their engine declares.

    See matching.py for how they are found. Observed tasks that are parts of one declared task
    (the recipe lines of one make target) become one. Declared tasks that ran unseen are added.
    """
    import pyarrow as pa

    declared = bundle.tables["declared_tasks"].to_pylist()
    if not declared:
        return cut
    observed = cut.tasks.to_pylist()
    matches = _unite(declared, Matcher(bundle, cut, declared, observed).run())
    of = np.arange(len(observed))
    for tasks in matches.values():
        of[tasks] = min(tasks)
    for number, tasks in matches.items():
        _merge(observed, tasks, declared[number])
    kept = np.unique(of)
    origin = bundle.manifest.started_ns
    found = {declared[i]["task"] for i in matches}
    unseen = []
    for i, row in enumerate(declared):
        if row["task"] not in found and _ran(row):
            found.add(row["task"])
            unseen.append(i)
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    rows = [observed[i] for i in kept.tolist()]
    rows += [_row(declared[i], 0, origin, sites) for i in unseen]
    for number, row in enumerate(rows):
        row["task"] = number
    renumber = np.searchsorted(kept, of)
    proc_task = cut.proc_task.set_column(
        1, "task", pa.array(renumber[cut.proc_task.column("task").to_numpy()])
    )
    task_of = {i: int(renumber[tasks[0]]) for i, tasks in matches.items()}
    task_of |= {i: len(kept) + k for k, i in enumerate(unseen)}
    pairs = sorted(task_of.items())
    names = pa.table(
        {"declared": [declared[i]["task"] for i, _ in pairs], "task": [t for _, t in pairs]},
        schema=DECLARED_TASK,
    )
    return TaskCut(pa.Table.from_pylist(rows, schema=TASKS), proc_task.cast(PROC_TASK), names)


def _unite(declared: list[dict[str, Any]], matches: dict[int, list[int]]) -> dict[int, list[int]]:
    """Rows with one identifier are parts of one task: their observed tasks are joined."""
    first: dict[str, int] = {}
    result: dict[int, list[int]] = {}
    for number in sorted(matches):
        known = first.setdefault(declared[number]["task"], number)
        result.setdefault(known, []).extend(matches[number])
    return {number: sorted(tasks) for number, tasks in result.items()}


def _ran(declared: dict[str, Any]) -> bool:
    """Whether the engine says that the task ran: a graph alone also lists what was up to date."""
    return declared["start_ns"] is not None or declared["exit_status"] is not None


def _merge(observed: list[dict[str, Any]], tasks: list[int], declared: dict[str, Any]) -> None:
    """Write the declared name and type into the first of the tasks, with the extent of all."""
    first = observed[tasks[0]]
    parts = [observed[t] for t in tasks]
    first["name"] = printable(declared["name"]) or first["name"]
    first["type"] = printable(declared["type"]) or first["type"]
    if len(parts) > 1:
        first["command"] = "; ".join(p["command"] for p in parts)
        ends = [p["end_s"] for p in parts]
        first["end_s"] = None if None in ends else max(ends)
        first["exit_status"] = parts[-1]["exit_status"]
        first["processes"] = sum(p["processes"] for p in parts)
    first["attempt"] = max(first["attempt"], declared["attempt"] or 1)
    first["source"] = "both"
