"""Who made whom, and how it ended: forks and waits of an arena put together with its processes.

A child writes its own record at its first call; when it was made, and how it died, its parent
knows. The loop runs over processes, not over accesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracehint.schemas.spool import arena_layout as al
from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.rows import picked, together

Records = NDArray[Any]


def fill_tree(rows: Records, events: Records, end: dict[str, Any]) -> Records:
    """The processes with parents, previous epochs and ends; children that made no call are added.

    rows: PROCESS_DT, times in nanoseconds. end: `root` and `exit_status` of the command.
    """
    rows = picked(rows, np.argsort(rows["start_ns"], kind="stable"))
    moments = [(int(r["start_ns"]), 1, i) for i, r in enumerate(rows)]
    moments += [(int(e["t"]), 0 if e["kind"] == al.FORK else 2, i) for i, e in enumerate(events)]
    state = _State(rows, events)
    for _, what, i in sorted(moments):
        (state.forked, state.began, state.waited)[what](i)
    state.ended(end)
    return state.all()


class _State:
    def __init__(self, rows: Records, events: Records) -> None:
        self.rows, self.events = rows, events
        self.last: dict[int, int] = {}  # pid -> row of its newest epoch
        self.made: dict[int, int] = {}  # pid -> fork that no epoch has answered
        self.extra: list[Records] = []
        self.next = int(rows["epoch"].max(initial=1)) + 1

    def forked(self, i: int) -> None:
        """A pid begins anew."""
        pid = int(self.events["pid"][i])
        self._silent(pid, None)
        self.last.pop(pid, None)
        self.made[pid] = i

    def began(self, i: int) -> None:
        """A child at its first call, or a program."""
        row = self.rows[i]
        pid = int(row["pid"])
        fork = self.made.pop(pid, None)
        if fork is not None:
            row["parent"], row["prev"] = self.events["epoch"][fork], 0
            if row["flags"] & lay.EXECED:
                row["prev"] = self._quiet(fork, row)
            else:
                row["start_ns"] = self.events["t"][fork]
        elif pid in self.last and not row["parent"]:
            before = self.rows[self.last[pid]]
            row["prev"], row["parent"] = before["epoch"], before["parent"]
            if before["kind"] == lay.ALIVE:  # by a program that could not be looked at
                before["kind"], before["end_ns"] = lay.EXEC, row["start_ns"]
        self.last[pid] = i

    def waited(self, i: int) -> None:
        """Its parent was told how it ended."""
        event = self.events[i]
        pid = int(event["pid"])
        if pid in self.made:
            self._silent(pid, event)
        elif pid in self.last:
            self._end(self.last.pop(pid), int(event["status"]), int(event["t"]))

    def ended(self, end: dict[str, Any]) -> None:
        """Of the command itself the recorder was told."""
        root, status = end.get("root"), end.get("wait_status")
        if isinstance(root, int) and isinstance(status, int) and root in self.last:
            self._end(self.last[root], status, int(end.get("ended_boot_ns", 0)))
        for pid in list(self.made):
            self._silent(pid, None)

    def _end(self, i: int, status: int, t: int) -> None:
        row = self.rows[i]
        if row["kind"] == lay.ALIVE or (row["kind"] == lay.EXIT and not row["end_ns"]):
            row["kind"], row["exit_status"], row["end_ns"] = lay.EXIT, status, t

    def _silent(self, pid: int, end: Any) -> None:
        """A child that made no call that is looked at."""
        fork = self.made.pop(pid, None)
        if fork is None:
            return
        row = self._child(fork)
        if end is not None:
            row["kind"], row["exit_status"], row["end_ns"] = lay.EXIT, end["status"], end["t"]

    def _quiet(self, fork: int, program: Any) -> int:
        """A child that did nothing before it became this program; returns its epoch."""
        row = self._child(fork)
        row["kind"], row["end_ns"] = lay.EXEC, program["start_ns"]
        return int(row["epoch"][0])

    def _child(self, fork: int) -> Records:
        """The row of a child without a record of its own, which is added."""
        event = self.events[fork]
        row = np.zeros(1, lay.PROCESS_DT)
        row["kind"], row["epoch"], row["parent"] = lay.ALIVE, self.next, event["epoch"]
        row["pid"] = row["tgid"] = event["pid"]
        row["start_ns"] = event["t"]
        self.extra.append(row)
        self.next += 1
        return row

    def all(self) -> Records:
        """With the added ones, which are what their parents were."""
        if not self.extra:
            return self.rows
        extra = together(*self.extra)
        order = np.argsort(self.rows["epoch"], kind="stable")
        epochs = self.rows["epoch"][order]
        at = np.searchsorted(epochs, extra["parent"], side="right") - 1
        there = (at >= 0) & (epochs[at] == extra["parent"])
        for name in ("uid", "cwd", "exe"):
            extra[name] = np.where(there, self.rows[name][order[at]], extra[name])
        return together(self.rows, extra)
