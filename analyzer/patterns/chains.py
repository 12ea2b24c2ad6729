"""Chains of pipeline files: a task with one task before it and one after it links two files."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracehint.analyzer.arrays import Ints, order_by, starts_of
from tracehint.analyzer.patterns.rows import UNKNOWN, Single


def number(piped: Single) -> tuple[Ints, Ints]:
    """Position (1 is the first) and length of the chain of each pipeline file.

    `piped` are the pipeline files with the task before and the task behind each. Files side by
    side between the same two tasks are one step.
    """
    order = order_by(piped.producer, piped.consumer)
    first = starts_of(piped.producer[order], piped.consumer[order])
    if not len(first):
        return order, order
    pair = np.empty(len(order), np.int64)
    pair[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(order))))
    p, c = piped.producer[order][first], piped.consumer[order][first]
    tasks = int(max(p.max(), c.max())) + 1
    ins, outs = np.bincount(c, minlength=tasks), np.bincount(p, minlength=tasks)
    out = np.full(tasks, UNKNOWN, np.int64)
    out[p] = np.arange(len(p))
    after = np.where((ins[c] == 1) & (outs[c] == 1), out[c], UNKNOWN)
    position, length = place(after)
    return position[pair], length[pair]


def place(after: Any) -> tuple[Any, Any]:
    """Position from 1 and length of the chain of each element.

    `after[k]` is the element that follows k, or -1; no element follows two others. Cycles
    cannot occur (they are concurrently shared); if one did, its positions are just numbers.
    """
    count = len(after)
    before = np.full(count, -1, np.int64)
    linked = np.flatnonzero(after >= 0)
    before[after[linked]] = linked

    def distance(step: Any) -> Any:
        # Pointer doubling: hops to the end of the chain in log2(length) rounds.
        hops, jump = (step >= 0).astype(np.int64), step.copy()
        for _ in range(64):
            active = np.flatnonzero(jump >= 0)
            if not len(active):
                break
            target = jump[active]
            hops[active] += hops[target]
            jump[active] = jump[target]
        return hops

    ahead, behind = distance(after), distance(before)
    return behind + 1, behind + ahead + 1
