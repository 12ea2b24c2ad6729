"""Attempts of one task: of several that read the same version only one is its consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.columns import codes, column
from tracehint.analyzer.flow.model import UNKNOWN

if TYPE_CHECKING:
    import pyarrow as pa


def series_of(tasks: pa.Table) -> tuple[Ints, Ints]:
    """Per task (in the order of the table) its series of attempts, and its preference in it.

    A series has the same type, name and command and begins with each first attempt; a task that
    was not retried is in none (UNKNOWN). Preferred is the last attempt that succeeded,
    else the last one.
    """
    n = tasks.num_rows
    attempt = np.maximum(column(tasks, "attempt", null=1), 1)
    if not (attempt > 1).any():
        return np.full(n, UNKNOWN, np.int64), np.zeros(n, np.int64)
    texts = [codes(tasks, name) for name in ("type", "name", "command")]
    start = np.nan_to_num(np.asarray(tasks.column("start_s").to_numpy(), float))
    order = np.lexsort((attempt, start, *texts[::-1]))
    keys = [t[order] for t in texts]
    new = attempt[order] == 1
    new[starts_of(*keys)] = True
    series = np.empty(n, np.int64)
    series[order] = np.cumsum(new)
    series[(np.bincount(series) == 1)[series]] = UNKNOWN
    good = (column(tasks, "exit_status", null=-1) == 0).astype(np.int64)
    return series, good * (int(attempt.max()) + 1) + attempt


def one_per_series(entry: Ints, task: Ints, series: Ints, preference: Ints) -> Bools:
    """Which (entry, task) rows to keep: the preferred attempt of each series per entry.

    Rows may repeat a pair; all rows of the attempt that is kept are kept.
    """
    keep = np.ones(len(entry), bool)
    retried = np.flatnonzero(series[task] != UNKNOWN)
    if not len(retried):
        return keep
    e, s, p = entry[retried], series[task[retried]], preference[task[retried]]
    order = order_by(e, s, p)
    first = starts_of(e[order], s[order])
    best = np.append(first[1:], len(order))[: len(first)] - 1
    sizes = np.diff(np.append(first, len(order)))
    chosen = np.repeat(p[order][best], sizes)
    keep[retried[order]] = p[order] == chosen
    return keep
