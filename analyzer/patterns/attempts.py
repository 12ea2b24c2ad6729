"""The tasks as arrays, and which attempts are one task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import order_by, starts_of
from tracehint.analyzer.columns import codes, column, floats, in_order
from tracehint.analyzer.patterns.rows import UNKNOWN, Floats, Ints, TaskRows

if TYPE_CHECKING:
    import pyarrow as pa


def read_work(tasks: pa.Table) -> TaskRows:
    """The tasks; attempts of one task share type, name and command."""
    tasks = in_order(tasks, "task")
    attempt = column(tasks, "attempt", null=1)
    start, end = floats(tasks, "start_s"), floats(tasks, "end_s")
    retried = bool((attempt > 1).any())
    who = _last_attempts(tasks, attempt, start) if retried else np.arange(len(start))
    return TaskRows(
        column(tasks, "task"),
        np.append(who, UNKNOWN),
        np.append(column(tasks, "engine") == 1, True),
        attempt,
        start,
        np.where(np.isnan(end), np.inf, end),
        retried,
        start,
    )


def _last_attempts(tasks: pa.Table, attempt: Ints, start: Floats) -> Ints:
    """Per task the last attempt of its series; a series begins with each attempt 1."""
    texts = [codes(tasks, name) for name in ("command", "name", "type")]
    order = np.lexsort((start, *texts))
    new = attempt[order] == 1
    new[starts_of(*(t[order] for t in texts))] = True
    series = np.empty(len(order), np.int64)
    series[order] = np.cumsum(new)
    order = order_by(series, attempt)
    first = starts_of(series[order])
    last = np.append(first[1:], len(order)) - 1
    who = np.empty(len(order), np.int64)
    who[order] = np.repeat(order[last], np.diff(np.append(first, len(order))))
    return who
