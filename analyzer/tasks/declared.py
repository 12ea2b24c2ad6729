"""Tasks that an engine's graph or log declares: alone, or joined to what was observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.columns import codes
from tracehint.analyzer.model import TASKS
from tracehint.analyzer.tasks.describe import printable, shorten, type_of_text
from tracehint.analyzer.tasks.matching import TaskMatcher
from tracehint.analyzer.tasks.model import DECLARED_TASK, PROC_TASK, Segmentation

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


def declared_only(bundle: Bundle) -> Segmentation:
    """The declared tasks of a bundle without processes."""
    rows = _first_parts(bundle.tables["declared_tasks"])
    count = rows.num_rows
    starts = pc.drop_null(rows.column("start_ns"))
    origin = bundle.manifest.started_ns or (pc.min(starts).as_py() or 0)
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    command = _shown(rows.column("command"))
    kind = _shown(rows.column("type"))
    name = _filled(_shown(rows.column("name")), lambda at: shorten(command[at].as_py()))
    hosts = rows.column("host").combine_chunks().dictionary_encode()
    site_of = pa.array([sites.get(host, "") for host in hosts.dictionary.to_pylist()], pa.string())
    attempt = rows.column("attempt")
    tasks = {
        "task": np.arange(count),
        "name": pc.if_else(pc.equal(name, ""), rows.column("task").combine_chunks(), name),
        "type": _filled(kind, lambda at: type_of_text(command[at].as_py()) or "unknown"),
        "command": command,
        "host": rows.column("host"),
        "site": pc.fill_null(site_of.take(hosts.indices), ""),
        "start_s": pc.fill_null(_seconds(rows.column("start_ns"), origin), 0.0),
        "end_s": _seconds(rows.column("end_ns"), origin),
        "exit_status": rows.column("exit_status"),
        "attempt": pc.if_else(pc.equal(pc.fill_null(attempt, 0), 0), 1, attempt),
        "processes": np.zeros(count, np.int32),
        "engine": np.zeros(count, bool),
        "source": pa.repeat("declared", count),
        "group": pa.nulls(count, pa.int64()),
        "rank": pa.nulls(count, pa.int32()),
        "cpu_s": pc.divide(rows.column("cpu_ns").cast(pa.float64()), 1e9),
        "io_wait_s": pa.nulls(count, pa.float64()),
    }
    names = pa.table({"declared": rows.column("task"), "task": tasks["task"]}, DECLARED_TASK)
    return Segmentation(pa.table(tasks, TASKS).combine_chunks(), PROC_TASK.empty_table(), names)


def _first_parts(table: pa.Table) -> pa.Table:
    """One row per declared task: parts of it have the same identifier. The first of each, in the
    order of the last ones."""
    code = codes(table, "task")
    if code.max(initial=-1) == len(code) - 1:  # numbered by their first rows: all are different
        return table
    _, first = np.unique(code, return_index=True)
    _, back = np.unique(code[::-1], return_index=True)
    return table.take(pa.array(first[np.argsort(-back, kind="stable")]))


def _shown(column: pa.ChunkedArray) -> pa.Array:
    """`printable` of each value, nulls as empty; only odd ones are touched."""
    values = pc.fill_null(column, "").combine_chunks()
    try:
        shown = values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([printable(value) for value in values.to_pylist()], pa.string())
    odd = pc.invert(pc.match_substring_regex(shown, r"^[\x20-\x7e]*$"))
    if not pc.any(odd).as_py():
        return shown
    fixed = [printable(value) for value in shown.filter(odd).to_pylist()]
    return pc.replace_with_mask(shown, odd, pa.array(fixed, pa.string()))


def _filled(column: pa.Array, make: Callable[[int], str]) -> pa.Array:
    """The column, with what `make` says for a row in place of empty texts."""
    empty = pc.equal(column, "")
    at = np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist()
    made = pa.array([make(row) for row in at], pa.string())
    return pc.replace_with_mask(column, empty, made) if at else column


def _seconds(column: pa.ChunkedArray, origin: int) -> pa.Array:
    """Nanoseconds as seconds from `origin` on; nulls stay."""
    known = pc.drop_null(column)
    values = np.asarray(pc.fill_null(column, origin).to_numpy())
    ends = [end - origin for end in pc.min_max(known).as_py().values() if end is not None]
    if any(abs(end) >= 1 << 63 for end in ends):
        values = values.astype(object)  # whole numbers of any size
    unknown = pc.is_null(column).to_numpy()
    return pa.array(((values - origin) / 1e9).astype(np.float64), mask=unknown)


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


def join_declared(bundle: Bundle, segmented: Segmentation) -> Segmentation:
    """Give observed tasks the names and types that their engine declares.

    See matching.py for how they are found. Observed tasks that are parts of one declared task
    (the recipe lines of one make target) become one. Declared tasks that ran unseen are added.
    """
    declared = bundle.tables["declared_tasks"].to_pylist()
    if not declared:
        return segmented
    observed = segmented.tasks.to_pylist()
    matches = _unite(declared, TaskMatcher(bundle, segmented, declared, observed).run())
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
    of_proc = pa.array(renumber[segmented.proc_task.column("task").to_numpy()])
    proc_task = segmented.proc_task.set_column(1, "task", of_proc)
    task_of = {i: int(renumber[tasks[0]]) for i, tasks in matches.items()}
    task_of |= {i: len(kept) + k for k, i in enumerate(unseen)}
    pairs = sorted(task_of.items())
    names = pa.table(
        {"declared": [declared[i]["task"] for i, _ in pairs], "task": [t for _, t in pairs]},
        schema=DECLARED_TASK,
    )
    return Segmentation(pa.Table.from_pylist(rows, schema=TASKS), proc_task.cast(PROC_TASK), names)


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
