"""Tasks that an engine's graph or log declares: alone, or joined to what was observed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.model import TASKS
from tracehint.analyzer.tasks.describe import printable, shorten, type_of_text
from tracehint.analyzer.tasks.model import DECLARED_TASK, PROC_TASK, TaskCut

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_SLACK_S = 2.0  # clocks of an engine's log and of the recorder may differ by this much
_SPACE = re.compile(rb"\s+")
_PREFIX = re.compile(rb"^(?:set -[a-z]+(?: pipefail)?\s*;\s*)+")


def declared_only(bundle: Bundle) -> TaskCut:
    """The declared tasks of a bundle without processes."""
    import pyarrow as pa

    rows = bundle.tables["declared_tasks"].to_pylist()
    known = [r["start_ns"] for r in rows if r["start_ns"] is not None]
    origin = bundle.manifest.started_ns or (min(known) if known else 0)
    tasks = [_row(row, number, origin, bundle) for number, row in enumerate(rows)]
    names = pa.table(
        {"declared": [r["task"] for r in rows], "task": list(range(len(rows)))},
        schema=DECLARED_TASK,
    )
    return TaskCut(pa.Table.from_pylist(tasks, schema=TASKS), PROC_TASK.empty_table(), names)


def _row(row: dict[str, Any], number: int, origin: int, bundle: Bundle) -> dict[str, Any]:
    command = printable(row["command"] or b"")
    sites = {h.name: h.site for h in bundle.manifest.hosts}
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

    By process id and time, else by command text in order of time, else by a working directory of
    their own. Observed tasks that are parts of one declared task (the recipe lines of one make
    target) become one. Declared tasks that ran unseen are added as such.
    """
    import pyarrow as pa

    declared = bundle.tables["declared_tasks"].to_pylist()
    if not declared:
        return cut
    observed = cut.tasks.to_pylist()
    matches = _match(bundle, cut, declared, observed)
    of = np.arange(len(observed))
    for tasks in matches.values():
        of[tasks] = min(tasks)
    for number, tasks in matches.items():
        _merge(observed, tasks, declared[number])
    kept = np.unique(of)
    origin = bundle.manifest.started_ns
    unseen = [i for i, d in enumerate(declared) if i not in matches and _ran(d)]
    rows = [observed[i] for i in kept.tolist()]
    rows += [_row(declared[i], 0, origin, bundle) for i in unseen]
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


def _ran(declared: dict[str, Any]) -> bool:
    """Whether the engine says that the task ran: a graph alone also lists what was up to date."""
    return declared["start_ns"] is not None or declared["exit_status"] is not None


def _match(
    bundle: Bundle, cut: TaskCut, declared: list[dict[str, Any]], observed: list[dict[str, Any]]
) -> dict[int, list[int]]:
    """Declared task -> its observed tasks, in order of time. No observed task is given twice."""
    matches: dict[int, list[int]] = {}
    free = {t["task"] for t in observed if not t["engine"]}
    pids = _by_pid(bundle, cut, free)
    origin = bundle.manifest.started_ns
    for number, row in enumerate(declared):
        for task, start, end in pids.get(row["pid"], []) if row["pid"] else []:
            at = None if row["start_ns"] is None else (row["start_ns"] - origin) / 1e9
            near = at is None or start - _SLACK_S <= at <= end + _SLACK_S
            if task in free and near:
                matches[number] = [task]
                free.discard(task)
                break
    _match_texts(declared, observed, free, matches)
    _match_folders(bundle, cut, declared, free, matches)
    return matches


def _by_pid(
    bundle: Bundle, cut: TaskCut, free: set[int]
) -> dict[int, list[tuple[int, float, float]]]:
    """Process id -> (task, start, end) of the tasks that this process belongs to."""
    processes = bundle.tables["processes"]
    origin = bundle.manifest.started_ns
    task_of = dict(
        zip(cut.proc_task.column("proc").to_pylist(), cut.proc_task.column("task").to_pylist(),
            strict=True)
    )  # fmt: skip
    wanted = set(bundle.tables["declared_tasks"].column("pid").drop_null().to_pylist())
    result: dict[int, list[tuple[int, float, float]]] = {}
    columns = (processes.column(c).to_pylist() for c in ("proc", "pid", "start_ns", "end_ns"))
    for proc, pid, start, end in zip(*columns, strict=True):
        task = task_of.get(proc, -1)
        if pid in wanted and task in free:
            last = float("inf") if end is None else (end - origin) / 1e9
            entry = result.setdefault(pid, [])
            if entry and entry[-1][0] == task:
                entry[-1] = (task, entry[-1][1], max(last, entry[-1][2]))
            else:
                entry.append((task, (start - origin) / 1e9, last))
    return result


def _normal(text: bytes) -> bytes:
    """A command without the differences that shells and logs make."""
    return _PREFIX.sub(b"", _SPACE.sub(b" ", text).strip())


def _match_texts(
    declared: list[dict[str, Any]], observed: list[dict[str, Any]], free: set[int],
    matches: dict[int, list[int]],
) -> None:  # fmt: skip
    """By command text: the k-th run of a text is the k-th declared task with it.

    A declared command of several lines (a make recipe) takes one observed task per line.
    """
    by_text: dict[bytes, list[int]] = {}
    for task in sorted(free, key=lambda t: (observed[t]["start_s"], t)):
        text = _normal(observed[task]["command"].encode("utf-8", "surrogateescape"))
        by_text.setdefault(text, []).append(task)
    far = float("inf")
    for number in sorted(
        (n for n in range(len(declared)) if n not in matches),
        key=lambda n: (declared[n]["start_ns"] or far, n),
    ):
        whole = printable(declared[number]["command"] or b"").encode("utf-8", "surrogateescape")
        lines = [whole] if by_text.get(_normal(whole)) else whole.split(b"\\x0a")
        found = []
        for line in lines:
            waiting = by_text.get(_normal(line.lstrip(b"@-+ \t")))
            if waiting and line.strip():
                found.append(waiting.pop(0))
        if found:
            matches[number] = sorted(found)
            free.difference_update(found)


def _match_folders(
    bundle: Bundle, cut: TaskCut, declared: list[dict[str, Any]], free: set[int],
    matches: dict[int, list[int]],
) -> None:  # fmt: skip
    """By a working directory that only one declared and one observed task have."""
    rest = [n for n, d in enumerate(declared) if n not in matches and d["workdir"]]
    if not rest:
        return
    processes = bundle.tables["processes"]
    cwd_of = dict(
        zip(processes.column("proc").to_pylist(), processes.column("cwd").to_pylist(), strict=True)
    )
    tasks: dict[bytes, set[int]] = {}
    for proc, task in zip(
        cut.proc_task.column("proc").to_pylist(), cut.proc_task.column("task").to_pylist(),
        strict=True,
    ):  # fmt: skip
        if task in free and cwd_of.get(proc):
            tasks.setdefault(cwd_of[proc], set()).add(task)
    folders: dict[bytes, list[int]] = {}
    for number in rest:
        folders.setdefault(declared[number]["workdir"], []).append(number)
    for folder, numbers in folders.items():
        found = tasks.get(folder, set()) & free
        if len(numbers) == 1 and len(found) == 1:
            matches[numbers[0]] = sorted(found)
            free -= found


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
