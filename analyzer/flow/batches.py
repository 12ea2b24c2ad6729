"""The accesses in portions of whole lineages, so that memory follows the portion, not the run.

Everything about a file is decided by what happened to its path alone; only circles of tasks go
through several files (`build`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.flow.access import Raw, clip
from tracehint.analyzer.flow.copies import Copies, find
from tracehint.analyzer.flow.model import READ, Access, Objects
from tracehint.analyzer.flow.ranges import Bools, Ints, starts_of

ROWS = 1 << 19  # accesses of one portion, unless one path has more


@dataclass
class Batch:
    """Objects `low` up to `high` with their accesses; both numbered from 0 at `low`."""

    low: int
    high: int
    objects: Objects
    access: Access
    copies: Copies


def keep_together(raw: Raw, more: Access, objects: Objects, engine: Bools) -> tuple[Copies, Ints]:
    """Complete copies by engines, and the order of the objects that puts the paths last that
    they concern (see `Objects.reordered`)."""
    mine = raw.rows[engine[raw.task[raw.rows]]]
    access = Access.joined([raw.access(mine), more.take(engine[more.task])])
    copies = Copies.empty()
    if len(access):
        read = np.zeros(len(objects) + 1, bool)
        read[access.obj[access.op == READ]] = True
        rows = raw.rows[read[raw.obj[raw.rows]]]
        everything = Access.joined([raw.access(rows), more.take(read[more.obj])])
        copies = find(access, everything, objects)
    special = np.zeros(int(objects.lineage.max(initial=-1)) + 1, bool)
    special[objects.lineage[copies.source]] = True
    special[objects.lineage[copies.target]] = True
    late = special[objects.lineage]
    return copies, np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])


def split(
    raw: Raw, more: Access, objects: Objects, copies: Copies, rows: int = ROWS
) -> Iterator[Batch]:
    """Portions of about `rows` accesses, in the order of the objects.

    Objects that copies concern are in one portion, the last one.
    """
    bounds = _bounds(raw, more, objects, copies, rows)
    of_object = np.repeat(np.arange(len(bounds) - 1, dtype=np.uint16), np.diff(bounds))
    number = of_object[raw.obj[raw.rows]]
    order = np.argsort(number, kind="stable")
    cuts = np.searchsorted(number[order], np.arange(len(bounds)))
    more_number = of_object[more.obj]
    for i, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        part = objects.part(low, high)
        at = raw.rows[order[cuts[i] : cuts[i + 1]]]
        access = Access.joined([raw.access(at), more.take(more_number == i)])
        access.obj = access.obj - low
        inside = copies.take((copies.source >= low) & (copies.source < high))
        inside = Copies(inside.source - low, inside.target - low, inside.proc)
        yield Batch(low, high, part, clip(access, part), inside)


def _bounds(raw: Raw, more: Access, objects: Objects, copies: Copies, rows: int) -> Ints:
    """First objects of the portions, and the number of objects; at most 65535 portions."""
    count = len(objects)
    weight = np.ones(count, np.int64)  # objects cost something too
    weight += np.bincount(raw.obj[raw.rows], minlength=count)
    weight += np.bincount(more.obj, minlength=count)
    first = starts_of(objects.lineage)
    before = np.cumsum(weight) - weight
    rows = max(rows, int(weight.sum()) >> 15)
    portion = before[first] // rows
    bounds = first[starts_of(portion)]
    if len(copies):
        low = min(int(copies.source.min()), int(copies.target.min()))
        low = int(first[np.searchsorted(first, low, side="right") - 1])
        bounds = np.append(bounds[bounds < low], low)
    return np.append(bounds, count)
