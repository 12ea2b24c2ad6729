"""Tasks that may go to other parts: those with their bytes elsewhere, and those of the critical
path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.predict.model import SPENT, Floats
from tracehint.hintgen.plan.anchors import Ties
from tracehint.hintgen.plan.model import FREE, Draft

MOST = 2_000  # tasks with most bytes elsewhere that are looked at
MAX_UNIT = 64  # tasks that go together
HANGS = 0.5  # of a task's bytes: tied to others by so many, it goes with them
ON_PATH = 24  # tasks of the critical path that waited most
NODE, CAUSE, READY, START, END = range(5)  # of what a task did (Outcome.tasks)
WAITED = 5 + SPENT.index("network")


@dataclass(frozen=True)
class Shift:
    """Tasks that go to other parts together, each to its own, and the bytes that this saves."""

    tasks: tuple[int, ...]
    parts: tuple[int, ...]
    bytes: float


def together(tasks: tuple[int, ...], part: int, saved: float = 0.0) -> Shift:
    """All of them to one part."""
    return Shift(tasks, (part,) * len(tasks), saved)


def critical_path(rows: Floats) -> list[int]:
    """The task that ends last, what it waited for, and so on to the first one."""
    path = [int(np.argmax(rows[:, END]))]
    while (cause := int(rows[path[-1], CAUSE])) >= 0:
        path.append(cause)
    return path


def of_bytes(draft: Draft, ties: Ties) -> list[Shift]:
    """Tasks with most of their bytes in another part, alone and with what hangs on them."""
    assert draft.part is not None
    part = draft.part.astype(np.int64)
    bound = np.flatnonzero(part != FREE)
    away = ties.pull[bound].sum(axis=1) - ties.pull[bound, part[bound]]
    order = bound[np.argsort(-away, kind="stable")][:MOST]
    found = []
    for task in order[np.sort(-away, kind="stable")[:MOST] < 0].tolist():
        found += _shifts(task, part, ties, least=0.0)
    return sorted(distinct(found), key=lambda shift: -shift.bytes)


def of_path(rows: Floats, part: Ints, ties: Ties) -> Iterator[Shift]:
    """Tasks of the critical path that waited for their node or their data, to the parts that they
    have most bytes with, and to the one that is busy least. `rows`: what each task did."""
    path = critical_path(rows)
    waited = rows[path, WAITED:].sum(axis=1)
    parts = ties.pull.shape[1]
    busy = np.bincount(rows[:, NODE].astype(np.int64), rows[:, END] - rows[:, START], parts)
    idlest = int(np.argmin(busy[:parts]))
    for at in np.argsort(-waited, kind="stable")[:ON_PATH].tolist():
        task = path[at]
        if waited[at] > 0 and part[task] != FREE:
            yield from _shifts(task, part, ties, least=-np.inf)
            if idlest != part[task]:
                yield together((task,), idlest)


def distinct(shifts: Iterable[Shift]) -> list[Shift]:
    return list({(shift.tasks, shift.parts): shift for shift in shifts}.values())


def _shifts(task: int, part: Ints, ties: Ties, least: float) -> list[Shift]:
    """A task alone, and with what hangs on it, to the part that it has most bytes with."""
    found = []
    unit = _unit(task, part, ties)
    for tasks in dict.fromkeys([(task,), unit]):
        pull = ties.pull[list(tasks)].sum(axis=0)
        own = pull[part[task]] - (_inside(tasks, ties) if len(tasks) > 1 else 0.0)
        pull[part[task]] = -1.0
        best = int(np.argmax(pull))
        if pull[best] - own > least and best != part[task]:
            found.append(together(tasks, best, float(pull[best] - own)))
    return found


def _inside(tasks: tuple[int, ...], ties: Ties) -> float:
    """Bytes between these tasks, counted from both ends."""
    inside = np.zeros(len(ties.pull), bool)
    inside[list(tasks)] = True
    return float(
        sum(
            ties.bytes[rows][inside[ties.other[rows]]].sum()
            for rows in (slice(ties.begin[t], ties.begin[t + 1]) for t in tasks)
        )
    )


def _unit(task: int, part: Ints, ties: Ties) -> tuple[int, ...]:
    """A task and those of its part that are tied to it, or to others of them, by most bytes."""
    members, fresh = {task}, [task]
    tied: dict[int, float] = {}
    while fresh and len(members) < MAX_UNIT:
        near: list[int] = []
        for member in fresh:
            rows = slice(ties.begin[member], ties.begin[member + 1])
            for other, moved in zip(
                ties.other[rows].tolist(), ties.bytes[rows].tolist(), strict=True
            ):
                if other not in members and part[other] == part[task]:
                    tied[other] = tied.get(other, 0.0) + moved
                    near.append(other)
        fresh = [
            other
            for other in dict.fromkeys(near)
            if tied[other] >= HANGS * float(ties.pull[other].sum())
        ][: MAX_UNIT - len(members)]
        members.update(fresh)
    return tuple(sorted(members))
