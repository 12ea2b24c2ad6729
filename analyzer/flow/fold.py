"""Files that tasks feed each other through both ways: found, and folded into one entry.

A cycle of tasks p -> c -> ... -> p needs an edge into a task that had already written before
its producer first wrote. Only tasks between the first writes of the ends of such edges can be on
a cycle: that is a small part of a run or nothing, and only it is searched for components.
"""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints, distinct
from tracehint.analyzer.flow.model import UNKNOWN


def components(producer: Ints, consumer: Ints, first_write: Ints) -> Ints:
    """Per task the number of its cycle, UNKNOWN for tasks on none.

    `first_write` per task orders those that write; tasks that never write are on no cycle.
    """
    found = np.full(len(first_write), UNKNOWN, np.int64)
    pairs = _suspicious(producer, consumer, first_write)
    if not len(pairs[0]):
        return found
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(zip(pairs[0].tolist(), pairs[1].tolist(), strict=True))
    cycles = sorted(sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1)
    for number, cycle in enumerate(cycles):
        found[cycle] = number
    return found


def _suspicious(producer: Ints, consumer: Ints, first_write: Ints) -> tuple[Ints, Ints]:
    """The edges that may be part of a cycle."""
    count = len(first_write)
    both = np.zeros(count, bool)
    both[consumer] = True
    writes = np.zeros(count, bool)
    writes[producer] = True
    both &= writes
    inner = both[producer] & both[consumer] & (producer != consumer)
    producer, consumer = producer[inner], consumer[inner]
    begin, end = first_write[consumer], first_write[producer]
    back = np.flatnonzero(end >= begin)
    if not len(back):
        return producer[:0], consumer[:0]
    # the segments of time that edges against the order span, joined where they touch
    back = back[np.argsort(begin[back], kind="stable")]
    low, high = begin[back], np.maximum.accumulate(end[back])
    new = np.ones(len(back), bool)
    new[1:] = low[1:] > high[:-1]
    first = np.flatnonzero(new)
    left, right = low[first], high[np.append(first[1:], len(back)) - 1]

    def segment(tasks: Ints) -> Ints:
        when = first_write[tasks]
        at = np.maximum(np.searchsorted(left, when, side="right") - 1, 0)
        return np.where((left[at] <= when) & (when <= right[at]), at, UNKNOWN)

    from_, to = segment(producer), segment(consumer)
    hit = (from_ == to) & (from_ != UNKNOWN)
    return producer[hit], consumer[hit]


def both_ways(entry: Ints, producer: Ints, consumer: Ints) -> Ints:
    """The entries in which one task both gave bytes to another and got bytes from one."""
    count = int(max(producer.max(), consumer.max())) + 1 if len(entry) else 1
    gave, got = distinct(entry * count + producer), distinct(entry * count + consumer)
    return distinct(np.intersect1d(gave, got, assume_unique=True) // count)
