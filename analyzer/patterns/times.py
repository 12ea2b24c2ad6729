"""How many readers of one file version ran, and how many of its writers, at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.patterns.rows import Floats, Groups

if TYPE_CHECKING:
    from tracehint.analyzer.patterns.prepare import Wrote
    from tracehint.analyzer.patterns.rows import Readers, TaskRows


def ranks(start: Floats, end: Floats, *, starts_first: bool) -> tuple[Ints, Ints]:
    """Whole numbers that sort like the moments; of equal moments one kind comes first."""
    first, second = (start, end) if starts_first else (end, start)
    order = np.argsort(np.concatenate([first, second]), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    one, two = rank[: len(first)], rank[len(first) :]
    return (one, two) if starts_first else (two, one)


def at_once(file: Ints, start: Ints, end: Ints, count: int) -> Ints:
    """Per file the most spans at one moment; `start` and `end` are different `ranks`."""
    moments = int(max(start.max(initial=0), end.max(initial=0))) + 1
    # one number that sorts like (file, moment), and says in its last bit whether a span begins
    events = np.concatenate([file, file]) * moments + np.concatenate([start, end])
    events *= 2
    events[: len(file)] += 1
    events.sort()
    deep = np.cumsum((events & 1) * 2 - 1)  # adds up to 0 in each file
    return np.asarray(Groups(events // (2 * moments), count).high(deep, 0), np.int64)


def readers(rows: Readers, work: TaskRows, n: Ints) -> Ints:
    """Per file the most tasks that read it and could run at one time, ends included; at least 1.

    A task could run from when its inputs were complete (`TaskRows.ready`) to its end: where it only
    waited for a processor of the recorded machine, or read for microseconds, it reads at the same
    time as the others when every task has a node of its own.
    """
    by_file = Groups(rows.file, len(n))
    latest = by_file.high(work.ready[rows.who], -np.inf)
    together = np.maximum(n, 1)
    mixed = (n >= 2) & (latest > by_file.low(work.end[rows.who], np.inf))
    if mixed.any():
        some = mixed[rows.file]
        file, who = rows.file[some], rows.who[some]
        start, end = ranks(work.ready[who], work.end[who], starts_first=True)
        together = np.where(mixed, at_once(file, start, end, len(n)), together)
    return together


def writers(written: Wrote, work: TaskRows, owners: Ints) -> tuple[Ints, Bools]:
    """Per file with several owners: the most tasks that wrote it and ran at one time, their ends
    excluded, and whether each began where the one before stopped.

    As with readers it is the tasks that count. Bytes carried over from an earlier version have no
    times: written before all others.
    """
    count = len(owners)
    rows = written.owners.take((owners >= 2)[written.owners.file])
    timed = rows.take(~np.isnan(rows.first))
    first, last = work.start[timed.who], work.end[timed.who]
    first, last = np.where(np.isnan(first), -np.inf, first), np.where(np.isnan(last), np.inf, last)
    by_file = Groups(timed.file, count)
    all_at_once = by_file.high(first, -np.inf) < by_file.low(last, np.inf)
    together = np.maximum(by_file.size * all_at_once, 1)
    mixed = ~all_at_once[timed.file]
    if mixed.any():
        start, end = ranks(first[mixed], last[mixed], starts_first=False)
        together = np.maximum(together, at_once(timed.file[mixed], start, end, count))
    return together, _in_turn(written, together < 2)


def _in_turn(written: Wrote, wanted: Bools) -> Bools:
    """Whether the owners, in the order of their first write, wrote one behind the other."""
    keep = wanted[written.spans[0]]
    if not keep.any():
        return np.zeros(len(wanted), bool)
    file, who, start, end = (column[keep] for column in written.spans)
    order = order_by(file, who)
    file, who, start, end = file[order], who[order], start[order], end[order]
    group = starts_of(file, who)
    file, who = file[group], who[group]
    low, high = np.minimum.reduceat(start, group), np.maximum.reduceat(end, group)
    rows = written.owners
    span = int(max(who.max(), rows.who.max())) + 1
    when = rows.first[np.searchsorted(rows.file * span + rows.who, file * span + who)]
    order = np.lexsort((low, np.where(np.isnan(when), -np.inf, when), file))
    file, low, high = file[order], low[order], high[order]
    behind = np.ones(len(file), bool)
    behind[1:] = (file[1:] != file[:-1]) | (low[1:] == high[:-1])
    by_file = Groups(file, len(wanted))
    return np.asarray((by_file.size > 0) & (by_file.sum(behind) == by_file.size), bool)
