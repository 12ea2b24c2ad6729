"""From when on each task could have run: the moment when the last of its inputs was complete.

On a machine of few processors tasks wait for one; on a cluster each gets a node of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.columns import column, floats
from tracehint.analyzer.patterns.partitions import ROWS, FlowTables, dense
from tracehint.analyzer.patterns.rows import Bools, Floats, Ints, TaskRows

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


def moments(flow: FlowTables, work: TaskRows) -> Floats:
    """Per task the moment just after the last of its inputs was complete, never after its start;
    NaN where its start is unknown.

    An input is complete when the task that wrote it has ended: engines start no reader before.
    What an engine wrote is complete with the engine's last write to it.
    """
    complete = np.full(len(work.ids), -np.inf)
    written = _engine_writes(flow.producers, work)
    for at in range(0, flow.edges.num_rows, ROWS):
        edges = flow.edges.slice(at, ROWS)
        ends = (dense(work.ids, column(edges, name)) for name in ("producer", "consumer"))
        producer, consumer = ends
        keep = (producer >= 0) & (consumer >= 0) & ~work.engine[consumer]
        file = column(edges, "file")[keep]
        producer, reader = producer[keep], work.who[consumer[keep]]
        writer = np.where(work.engine[producer], producer, work.who[producer])
        done = np.where(work.engine[producer], written(file, producer), work.end[writer])
        other = writer != reader
        np.maximum.at(complete, reader[other], done[other])
    ready = np.nextafter(complete, np.inf)  # two tasks of which one feeds the other never meet
    return np.where(np.isnan(work.start), np.nan, np.minimum(work.start, ready))


def _engine_writes(producers: pa.Table, work: TaskRows) -> Callable[[Ints, Ints], Floats]:
    """A function from files and engines' tasks to the moment of the last write; unknown: inf."""
    task = dense(work.ids, column(producers, "task"))
    own: Bools = (task >= 0) & work.engine[task]
    key = column(producers, "file")[own] * len(work.ids) + task[own]
    order = np.argsort(key)
    key, last = key[order], floats(producers, "last_s")[own][order]

    def written(file: Ints, task: Ints) -> Floats:
        if not len(key):
            return np.full(len(file), np.inf)
        wanted = file * len(work.ids) + task
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where((key[at] == wanted) & ~np.isnan(last[at]), last[at], np.inf)

    return written
