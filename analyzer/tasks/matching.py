"""Which observed tasks stand for which declared task. The surest evidence goes first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import positions
from tracehint.analyzer.columns import column
from tracehint.analyzer.tasks.describe import printable
from tracehint.analyzer.tasks.model import Segmentation
from tracehint.analyzer.tasks.tree import Ints

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_SLACK_S = 2.0  # clocks of an engine's log and of the recorder may differ by this much
_JITTER_S = 0.005  # on one host, where only rounding is in the way
_SPACE = re.compile(rb"\s+")
_PREFIX = re.compile(rb"^(?:set -[a-z]+(?: pipefail)?\s*;\s*)+")


class TaskMatcher:
    """Fills `matches`: row of `declared` -> its observed tasks. No task is given twice."""

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
        """All steps, in order of what they prove."""
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

    def _open(self) -> list[int]:
        return [n for n in range(len(self.declared)) if n not in self.matches]

    def _give(self, number: int, tasks: Iterable[int]) -> None:
        chosen = [t for t in tasks if t in self.free]
        if chosen:
            self.matches[number] = sorted({*self.matches.get(number, []), *chosen})
            self.free.difference_update(chosen)

    def _task_of(self, table: str, rows: Any) -> Ints:
        """The task of each row's process, -1 where it is not known."""
        at = positions(self.proc, column(rows, "proc", -1))
        return np.where(at >= 0, self.task[at], -1) if len(self.task) else at

    def by_pid(self) -> None:
        """A process id of the engine's log, at the time that the log gives."""
        import pyarrow as pa
        import pyarrow.compute as pc

        wanted = {d["pid"] for d in self.declared if d["pid"]}
        processes = self.bundle.tables["processes"]
        mask = pc.is_in(processes.column("pid"), value_set=pa.array(sorted(wanted), pa.int32()))
        rows = processes.filter(mask)
        seen: dict[int, dict[int, list[float]]] = {}
        for task, pid, start, end in zip(
            self._task_of("processes", rows).tolist(),
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
                    self._give(number, [task])
                    break

    def by_text(self, *, only_certain: bool) -> None:
        """Equal command texts, in order of time. A declared command of several lines (a recipe)
        takes a task per line. Certain: as many declared as observed tasks have the text."""
        waiting: dict[bytes, list[int]] = {}
        for task in sorted(self.free, key=lambda t: (self.observed[t]["start_s"], t)):
            waiting.setdefault(_normal(self.observed[task]["command"]), []).append(task)
        far = float("inf")
        todo = sorted(self._open(), key=lambda n: (self.declared[n]["start_ns"] or far, n))
        lines = {n: _lines(self.declared[n]["command"] or b"", waiting) for n in todo}
        wanted = Counter(line for n in todo for line in lines[n])
        for number in todo:
            found = []
            for line in lines[number]:
                tasks = waiting.get(line)
                if tasks and (not only_certain or wanted[line] == len(tasks)):
                    found.append(tasks.pop(0))
                    wanted[line] -= 1
            self._give(number, found)

    def by_outputs(self) -> None:
        """The task that wrote the declared outputs, and those of no other declared task."""
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
            self._give(number, tasks if self._has_lines(number) else [last])

    def _has_lines(self, number: int) -> bool:
        return bool(self.declared[number]["engine"] == "make")

    def _open_for_outputs(self) -> list[int]:
        return [n for n in range(len(self.declared)) if n not in self.matches or self._has_lines(n)]

    def _writers(self, owner: dict[bytes, int]) -> list[tuple[bytes, int]]:
        """(path, task) of everything that wrote or named one of the paths."""
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
            tasks = self._task_of(name, rows).tolist()
            result += zip(rows.column(name).to_pylist(), tasks, strict=True)
        return result

    def by_time(self) -> None:
        """For engines that state neither pid nor command: the only task that ran within the
        stated times, if it ran within those of no other."""
        rest = [
            n
            for n in self._open()
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
                self._give(numbers[0], [task])

    def by_folder(self) -> None:
        """A working directory that only one declared and one observed task have."""
        rest = [n for n in self._open() if self.declared[n]["workdir"]]
        if not rest:
            return
        processes = self.bundle.tables["processes"]
        tasks: dict[bytes, set[int]] = {}
        for task, cwd in zip(
            self._task_of("processes", processes).tolist(),
            processes.column("cwd").to_pylist(),
            strict=True,
        ):
            if task in self.free and cwd:
                tasks.setdefault(cwd, set()).add(task)
        folders = Counter(self.declared[n]["workdir"] for n in rest)
        for number in rest:
            folder = self.declared[number]["workdir"]
            if folders[folder] == 1 and len(tasks.get(folder, ())) == 1:
                self._give(number, tasks[folder])


def _normal(text: str) -> bytes:
    """A command without the differences that shells and logs make."""
    return _PREFIX.sub(b"", _SPACE.sub(b" ", text.encode("utf-8", "replace")).strip())


def _lines(command: bytes, waiting: dict[bytes, list[int]]) -> list[bytes]:
    """The command as one text when such a task was seen, else its lines (a recipe's)."""
    whole = _normal(printable(command))
    if not whole or whole in waiting:
        return [whole] if whole else []
    lines = [_normal(printable(line.lstrip(b"@-+ \t"))) for line in command.split(b"\n")]
    return [line for line in lines if line in waiting]
