"""Tasks declared by an engine's graph or log: alone, or joined to observed tasks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import codes, column, positions
from tracehint.analyzer.model import DECLARED_TASK, PROC_TASK, TASKS, Segmentation
from tracehint.analyzer.tasks.describe import printable, shorten, type_of_text
from tracehint.analyzer.tasks.tree import Ints

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


_SLACK_S = 2.0  # maximum difference between the clocks of an engine's log and the recorder
_JITTER_S = 0.005  # the same on one host, where only rounding matters
_SPACE = re.compile(rb"\s+")
_PREFIX = re.compile(rb"^(?:set -[a-z]+(?: pipefail)?\s*;\s*)+")


class TaskMatcher:
    """Fills `matches`: row of `declared` -> its observed tasks. Each task is matched once."""

    def __init__(
        self,
        bundle: Bundle,
        segmented: Segmentation,
        declared: list[dict[str, Any]],
        observed: list[dict[str, Any]],
    ) -> None:
        self.bundle, self.declared, self.observed = bundle, declared, observed
        self.proc = column(segmented.proc_task, "proc", -1)
        self.task = column(segmented.proc_task, "task", -1)
        self.free = {t["task"] for t in observed if not t["engine"]}
        self.matches: dict[int, list[int]] = {}
        self.origin = bundle.manifest.started_ns

    def run(self) -> dict[int, list[int]]:
        """Run all steps, the most certain evidence first."""
        steps: tuple[Callable[[], None], ...] = (
            self.by_pid,
            lambda: self.by_text(only_certain=True),
            self.by_outputs,
            lambda: self.by_text(only_certain=False),
            self.by_folder,
            self.by_time,
        )
        for step in steps:
            step()
        return self.matches

    def _list_open(self) -> list[int]:
        return [n for n in range(len(self.declared)) if n not in self.matches]

    def _assign(self, number: int, tasks: Iterable[int]) -> None:
        chosen = [t for t in tasks if t in self.free]
        if chosen:
            self.matches[number] = sorted({*self.matches.get(number, []), *chosen})
            self.free.difference_update(chosen)

    def _task_of(self, rows: Any) -> Ints:
        """Return the task of each row's process, -1 if it is not known."""
        at = positions(self.proc, column(rows, "proc", -1))
        return np.where(at >= 0, self.task[at], -1) if len(self.task) else at

    def by_pid(self) -> None:
        """Match by the process id and start time in the engine's log."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = {d["pid"] for d in self.declared if d["pid"]}
        processes = self.bundle.tables["processes"]
        mask = pc.is_in(processes.column("pid"), value_set=pa.array(sorted(wanted), pa.int32()))
        rows = processes.filter(mask)
        seen: dict[int, dict[int, list[float]]] = {}
        for task, pid, start, end in zip(
            self._task_of(rows).tolist(),
            rows.column("pid").to_pylist(),
            rows.column("start_ns").to_pylist(),
            rows.column("end_ns").to_pylist(),
            strict=True,
        ):
            span = seen.setdefault(pid, {}).setdefault(task, [float("inf"), 0.0])
            span[0] = min(span[0], (start - self.origin) / 1e9)
            span[1] = max(span[1], float("inf") if end is None else (end - self.origin) / 1e9)
        for number, row in enumerate(self.declared):
            at = None if row["start_ns"] is None else (row["start_ns"] - self.origin) / 1e9
            for task, (start, end) in seen.get(row["pid"], {}).items():
                near = at is None or start - _SLACK_S <= at <= end + _SLACK_S
                if near and task in self.free:
                    self._assign(number, [task])
                    break

    def by_text(self, *, only_certain: bool) -> None:
        """Match equal command texts, in order of time. A declared command of several lines (recipe)
        gets a task per line. Certain: equally many declared and observed tasks have the text."""
        waiting: dict[bytes, list[int]] = {}
        for task in sorted(self.free, key=lambda t: (self.observed[t]["start_s"], t)):
            waiting.setdefault(_normalize(self.observed[task]["command"]), []).append(task)
        far = float("inf")
        todo = sorted(self._list_open(), key=lambda n: (self.declared[n]["start_ns"] or far, n))
        lines = {n: _matching_lines(self.declared[n]["command"] or b"", waiting) for n in todo}
        wanted = Counter(line for n in todo for line in lines[n])
        for number in todo:
            found = []
            for line in lines[number]:
                tasks = waiting.get(line)
                if tasks and (not only_certain or wanted[line] == len(tasks)):
                    found.append(tasks.pop(0))
                    wanted[line] -= 1
            self._assign(number, found)

    def by_outputs(self) -> None:
        """Match tasks that wrote declared outputs of exactly one declared task."""
        io = self.bundle.tables["declared_io"]
        open_rows = {self.declared[n]["task"]: n for n in self._open_for_outputs()}
        owner: dict[bytes, int] = {}
        for task, path, direction in zip(
            io.column("task").to_pylist(),
            io.column("path").to_pylist(),
            io.column("direction").to_pylist(),
            strict=True,
        ):
            if direction == "out" and task in open_rows:
                owner[path] = open_rows[task]
        claims: dict[int, set[int]] = {}
        for path, task in self._writers(owner):
            if task in self.free:
                claims.setdefault(task, set()).add(owner[path])
        found: dict[int, list[int]] = {}
        for task, numbers in claims.items():
            if len(numbers) == 1:
                found.setdefault(next(iter(numbers)), []).append(task)
        for number, tasks in found.items():
            last = max(tasks, key=lambda t: (self.observed[t]["start_s"], t))
            self._assign(number, tasks if self._has_lines(number) else [last])

    def _has_lines(self, number: int) -> bool:
        return bool(self.declared[number]["engine"] == "make")

    def _open_for_outputs(self) -> list[int]:
        return [n for n in range(len(self.declared)) if n not in self.matches or self._has_lines(n)]

    def _writers(self, owner: dict[bytes, int]) -> list[tuple[bytes, int]]:
        """Return (path, task) of what wrote one of the paths or gave a file that name."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from tracehint.schemas.compact import plain

        paths = pa.array(list(owner), pa.binary())
        opens, names = self.bundle.tables["opens"], self.bundle.tables["names"]
        wrote = pc.or_(pc.greater(opens.column("write_ops"), 0), opens.column("created"))
        wrote = pc.and_(wrote, pc.is_in(plain(opens.column("path")), value_set=paths))
        renamed = pc.is_in(names.column("op"), value_set=pa.array(["rename", "link"]))
        renamed = pc.and_(renamed, pc.is_in(names.column("new_path"), value_set=paths))
        result: list[tuple[bytes, int]] = []
        for table, mask, name in ((opens, wrote, "path"), (names, renamed, "new_path")):
            rows = table.filter(mask)
            tasks = self._task_of(rows).tolist()
            result += zip(rows.column(name).to_pylist(), tasks, strict=True)
        return result

    def by_time(self) -> None:
        """Match by time, for engines that state neither pid nor command: the only task that ran
        within the stated times, if it ran within those of no other."""
        rest = [
            n
            for n in self._list_open()
            if not self.declared[n]["pid"]
            and not self.declared[n]["command"]
            and self.declared[n]["end_ns"] is not None
            and self.declared[n]["start_ns"] is not None
        ]
        if not rest:
            return
        tasks = [t for t in sorted(self.free) if self.observed[t]["end_s"] is not None]
        begin = np.array([self.observed[t]["start_s"] for t in tasks]) + _JITTER_S
        end = np.array([self.observed[t]["end_s"] for t in tasks]) - _JITTER_S
        hosts: dict[int, list[int]] = {}
        for number in rest:
            row = self.declared[number]
            start, stop = ((row[k] - self.origin) / 1e9 for k in ("start_ns", "end_ns"))
            for i in np.flatnonzero((begin >= start) & (end <= stop)).tolist():
                hosts.setdefault(tasks[i], []).append(number)
        found = Counter(numbers[0] for numbers in hosts.values() if len(numbers) == 1)
        for task, numbers in hosts.items():
            if len(numbers) == 1 and found[numbers[0]] == 1:
                self._assign(numbers[0], [task])

    def by_folder(self) -> None:
        """Match by a working directory that only one declared and one observed task have."""
        rest = [n for n in self._list_open() if self.declared[n]["workdir"]]
        if not rest:
            return
        processes = self.bundle.tables["processes"]
        tasks: dict[bytes, set[int]] = {}
        for task, cwd in zip(
            self._task_of(processes).tolist(), processes.column("cwd").to_pylist(), strict=True
        ):
            if task in self.free and cwd:
                tasks.setdefault(cwd, set()).add(task)
        folders = Counter(self.declared[n]["workdir"] for n in rest)
        for number in rest:
            folder = self.declared[number]["workdir"]
            if folders[folder] == 1 and len(tasks.get(folder, ())) == 1:
                self._assign(number, tasks[folder])


def _normalize(text: str) -> bytes:
    """Return a command without differences that shells and logs introduce."""
    return _PREFIX.sub(b"", _SPACE.sub(b" ", text.encode("utf-8", "replace")).strip())


def _matching_lines(command: bytes, waiting: dict[bytes, list[int]]) -> list[bytes]:
    """Return the command as one text if a task with it was observed, else its matching lines."""
    whole = _normalize(printable(command))
    if not whole or whole in waiting:
        return [whole] if whole else []
    lines = [_normalize(printable(line.lstrip(b"@-+ \t"))) for line in command.split(b"\n")]
    return [line for line in lines if line in waiting]


def declared_only(bundle: Bundle) -> Segmentation:
    """Return the declared tasks of a bundle without processes."""
    rows = _first_parts(bundle.tables["declared_tasks"])
    count = rows.num_rows
    starts = pc.drop_null(rows.column("start_ns"))
    origin = bundle.manifest.started_ns or (pc.min(starts).as_py() or 0)
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    command = _printable_column(rows.column("command"))
    kind = _printable_column(rows.column("type"))
    name = _fill_empty(
        _printable_column(rows.column("name")), lambda at: shorten(command[at].as_py())
    )
    hosts = rows.column("host").combine_chunks().dictionary_encode()
    site_of = pa.array([sites.get(host, "") for host in hosts.dictionary.to_pylist()], pa.string())
    attempt = rows.column("attempt")
    tasks = {
        "task": np.arange(count),
        "name": pc.if_else(pc.equal(name, ""), rows.column("task").combine_chunks(), name),
        "type": _fill_empty(kind, lambda at: type_of_text(command[at].as_py()) or "unknown"),
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
    """Return the first row of each declared task, in the order of the last ones: rows with the same
    identifier are parts of one task."""
    code = codes(table, "task")
    if code.max(initial=-1) == len(code) - 1:  # all identifiers are distinct
        return table
    _, first = np.unique(code, return_index=True)
    _, back = np.unique(code[::-1], return_index=True)
    return table.take(pa.array(first[np.argsort(-back, kind="stable")]))


def _printable_column(column: pa.ChunkedArray) -> pa.Array:
    """Return `printable` of each value, nulls as empty; only unusual values are converted."""
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


def _fill_empty(column: pa.Array, make: Callable[[int], str]) -> pa.Array:
    """Return the column with empty texts replaced by the result of `make` for their rows."""
    empty = pc.equal(column, "")
    at = np.flatnonzero(empty.to_numpy(zero_copy_only=False)).tolist()
    made = pa.array([make(row) for row in at], pa.string())
    return pc.replace_with_mask(column, empty, made) if at else column


def _seconds(column: pa.ChunkedArray, origin: int) -> pa.Array:
    """Return nanoseconds as seconds from `origin` on; nulls are kept."""
    known = pc.drop_null(column)
    values = np.asarray(pc.fill_null(column, origin).to_numpy())
    ends = [end - origin for end in pc.min_max(known).as_py().values() if end is not None]
    if any(abs(end) >= 1 << 63 for end in ends):
        values = values.astype(object)  # integers of any size
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
    """Assign the names and types that an engine declares to the observed tasks.

    `TaskMatcher` finds them. Observed tasks that are parts of one declared task (the recipe lines
    of one make target) are merged. Declared tasks that ran but were not observed are added.
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
        if row["task"] not in found and _has_run(row):
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
    """Join the observed tasks of rows with one identifier, which are parts of one task."""
    first: dict[str, int] = {}
    result: dict[int, list[int]] = {}
    for number in sorted(matches):
        known = first.setdefault(declared[number]["task"], number)
        result.setdefault(known, []).extend(matches[number])
    return {number: sorted(tasks) for number, tasks in result.items()}


def _has_run(declared: dict[str, Any]) -> bool:
    """Whether the engine reports that the task ran: a graph alone also lists up-to-date targets."""
    return declared["start_ns"] is not None or declared["exit_status"] is not None


def _merge(observed: list[dict[str, Any]], tasks: list[int], declared: dict[str, Any]) -> None:
    """Write the declared name and type, and the extent of all tasks, into the first of them."""
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
