"""What stands in a node's queue while others idle: tasks of a node that was full go where slots
were free meanwhile, alone, as many as a node runs at one time, or in exchange."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.predict.model import SPENT, Floats
from tracehint.hintgen.plan.anchors import Ties
from tracehint.hintgen.plan.model import FREE
from tracehint.hintgen.plan.shifts import END, NODE, READY, START, Shift, critical_path, together

WAITS = 6  # tasks of the critical path that queued longest
TAKEN = 6  # tasks of a full node that are tried
GOALS = 2  # nodes that were least busy meanwhile
ALIKE = 0.5  # of the time from ready to done: tasks that became ready within it change places
LEAST = 0.002  # of the run: a shorter wait is none
_QUEUE = 5 + SPENT.index("queue")


@dataclass(frozen=True)
class Ran:
    """A simulated run: `rows`, what each task did (Outcome.tasks); `cores` of each task, as the
    nodes give them; `slots`, processors of each node."""

    rows: Floats
    cores: Ints
    slots: Ints


def of_queues(ran: Ran, part: Ints, ties: Ties) -> Iterator[Shift]:
    """Tasks of nodes that were full, to nodes that were not; `part`: of each task."""
    rows = ran.rows
    path = np.array(critical_path(rows))
    waits = path[np.argsort(-rows[path, _QUEUE], kind="stable")][:WAITS]
    for task in waits[rows[waits, _QUEUE] > LEAST * rows[:, END].max()].tolist():
        node, begin = int(rows[task, NODE]), _full_since(ran, task)
        there = np.flatnonzero(
            (rows[:, NODE] == node) & (rows[:, END] > begin) & (rows[:, START] <= rows[task, START])
        )
        there = there[part[there] != FREE]
        for until in (START, END):  # where nobody idles while it waits, then while it runs
            idle = _idle(ran, begin, float(rows[task, until]))
            idle[node] = 0
            goals = [k for k in np.argsort(-idle, kind="stable")[:GOALS].tolist() if idle[k] > 0]
            for goal in goals if len(there) else []:
                yield from _to(goal, there, ran, part, ties)
            if goals:
                break


def _full_since(ran: Ran, task: int) -> float:
    """When the node of a task had no room for it any more, to remain so until it started."""
    rows, node = ran.rows, int(ran.rows[task, NODE])
    own = np.flatnonzero(rows[:, NODE] == node)
    times, at = np.unique(np.concatenate([rows[own, START], rows[own, END]]), return_inverse=True)
    used = np.cumsum(np.bincount(at, np.concatenate([ran.cores[own], -ran.cores[own]])))
    room = (used + ran.cores[task] <= ran.slots[node]) & (times < rows[task, START])
    after = times[np.flatnonzero(room)[-1] + 1] if room.any() else 0.0
    return float(min(after, rows[task, READY]))


def _idle(ran: Ran, begin: float, end: float) -> Floats:
    """Seconds of processors of each node that nobody used between."""
    rows = ran.rows
    busy = np.clip(np.minimum(rows[:, END], end) - np.maximum(rows[:, START], begin), 0, None)
    used = np.bincount(rows[:, NODE].astype(np.int64), busy * ran.cores, len(ran.slots))
    return np.asarray(ran.slots * (end - begin) - used)


def _to(goal: int, there: Ints, ran: Ran, part: Ints, ties: Ties) -> Iterator[Shift]:
    """Of these tasks of a node those that lose fewest bytes: alone, as many as run at one time,
    or for one of the other node that became ready about then and is better off here, or shorter."""
    rows = ran.rows
    node = int(rows[there[0], NODE])
    length = rows[:, END] - rows[:, START]
    lost = ties.pull[there, node] - ties.pull[there, goal]
    order = there[np.lexsort((-there, -length[there], lost))]
    slots, others = int(ran.slots[node]), np.flatnonzero(part == goal)
    for task in order[:TAKEN].tolist():
        yield together((task,), goal)
    for count in sorted({min(n, len(order)) for n in (slots, 2 * slots)} - {1}):
        yield together(tuple(order[:count].tolist()), goal)
    for task in order[:TAKEN].tolist():
        apart = np.abs(rows[others, READY] - rows[task, READY])
        near = others[apart < ALIKE * (rows[task, END] - rows[task, READY])]
        if len(near):
            worse = ties.pull[near, goal] - ties.pull[near, node]
            best = near[np.lexsort((length[near], worse))[0]]
            yield Shift((task, int(best)), (goal, node), 0.0)
