"""The critical path: the chain of tasks, each waiting for the one before, that ends last."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracehint.analyzer.predict.model import SPENT, SimulatedRun, Workload

MAX_SHOWN = 50  # tasks


def critical_path(work: Workload, outcome: SimulatedRun) -> dict[str, Any]:
    """Seconds of each kind along the path, and its tasks from first to last (the longest ones
    where there are more than MAX_SHOWN). `queue` is waiting for a node."""
    rows = outcome.tasks
    assert rows is not None
    path = [int(np.argmax(rows[:, 4]))]
    while (cause := int(rows[path[-1], 1])) >= 0:
        path.append(cause)
    path.reverse()
    on_path = rows[path]
    longest = np.sort(np.argsort(-(on_path[:, 4] - on_path[:, 2]), kind="stable")[:MAX_SHOWN])
    return {
        "seconds": dict(zip(SPENT, map(float, on_path[:, 5:].sum(axis=0)), strict=True)),
        "length": len(path),
        "tasks": [
            {
                "name": work.names[path[i]],
                "type": work.type_names[work.type[path[i]]],
                "ready": float(on_path[i, 2]),
                "start": float(on_path[i, 3]),
                "end": float(on_path[i, 4]),
                "spent": dict(zip(SPENT, map(float, on_path[i, 5:]), strict=True)),
            }
            for i in longest
        ],
    }
