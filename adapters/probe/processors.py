"""Nodes that are one machine share its processors: what the store needs of them.

The processor time of the store's programs is taken, or where they are not known that of the
machine, less what it is while nobody does anything. The work for a byte is a sum of what it takes
in client and server and, if it crosses a link, at its two ends: so it is found by least squares
over the steps that moved bytes.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from tracehint.adapters.probe.known import Known, exact
from tracehint.adapters.probe.seen import ProcessorWork, Seen
from tracehint.analyzer.predict.cluster import Range

HOST = "machine"
QUIET = 0.5  # of the processors that others may use while the store's work is measured
LEAST_S = 0.1  # of a step: the counters go by hundredths


def one_machine(seen: Seen) -> bool:
    """Whether all nodes of the probe, at least two, are one machine."""
    return len(seen.machines) > 1 and len(set(seen.machines)) == 1 and bool(seen.machines[0])


def processors(seen: Seen, missing: list[str]) -> list[Known]:
    """The machine that all nodes share, and what files and bytes take of its processors."""
    known = [name for name in seen.machines if name]
    if not one_machine(seen):
        if len(set(known)) < len(known):
            missing.append("what nodes of one machine share: only some are (say `host`)")
        return []
    idle = statistics.median(w.busy / w.seconds for w in seen.work["rest"])
    said = f"all {seen.nodes} nodes are one machine; {idle:.2g} are busy with nothing to do"
    free = max(seen.cores - idle, seen.cores * (1 - QUIET))
    found = [
        Known("nodes", "host", HOST, "they run on the same kernel: equal boot ids"),
        Known("hosts", "name", HOST, "as in `host`"),
        Known("hosts", "processors", exact(free), said),
    ]
    if idle > QUIET * seen.cores:
        missing.append("the store's work on the processors: others used most of them")
        return found
    return found + _files(seen, idle) + _bytes(seen, idle)


def _files(seen: Seen, idle: float) -> list[Known]:
    costs = [_own(w, idle) / w.amount for w in _long(seen.work["calls"])]
    if not costs:
        return []
    middle = statistics.median(costs)
    return [
        Known("store", "file_cpu_ms", Range(min(costs), middle, max(costs)),
            "processors while all nodes made, and read, small files"),
    ]  # fmt: skip  # a table


def _bytes(seen: Seen, idle: float) -> list[Known]:
    steps = _long(seen.work["bytes"])
    if len(steps) < 2:
        return []
    amounts = np.array([[w.amount, w.over] for w in steps])
    moved, over = np.linalg.lstsq(amounts, np.array([_own(w, idle) for w in steps]), rcond=None)[0]
    if over < 0 or moved < 0:  # the steps cannot tell the two apart
        moved, over = sum(_own(w, idle) for w in steps) / float(amounts[:, 0].sum()), 0.0
    said = f"processors in {len(steps)} steps that moved bytes"
    return [
        Known("store", "client_cpu_ms_mb", exact(moved / 2), f"{said}: half of each byte's"),
        Known("store", "server_cpu_ms_mb", exact(moved / 2), "the other half"),
        Known("store", "link_cpu_ms_mb", exact(over / 2), "what crossed a link took more"),
    ]


def _long(steps: Sequence[ProcessorWork]) -> list[ProcessorWork]:
    return [w for w in steps if w.seconds >= LEAST_S and w.amount > 0]


def _own(work: ProcessorWork, idle: float) -> float:
    return max(0.0, work.busy - idle * work.seconds)
