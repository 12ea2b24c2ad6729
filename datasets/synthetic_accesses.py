"""The accesses of the synthetic runs: one small workflow of 11 tasks, any number of times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

WORKERS = 8
TASKS_PER_UNIT = WORKERS + 3
FILES_PER_UNIT = WORKERS + 4
CONFIGS = 3
REGION = 1 << 20
TABLE = 4 << 20
START_NS = 1_700_000_000_000_000_000
STEP_NS = 1_000_000

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Accesses:
    """Columns of accesses: task and file index, write or read, range, time."""

    task: Ints
    file: Ints
    write: npt.NDArray[np.bool_]
    start: Ints
    length: Ints
    t_ns: Ints


def _unit_template() -> list[tuple[int, int, bool, int, int, int]]:
    """Return (task, file, write, start, length, step) of one unit; files < 0 are configs."""
    gen, merge, post = 0, WORKERS + 1, WORKERS + 2
    big, table, grid, total = 0, 1, 2, 3
    rows = [(gen, big, True, 0, REGION * WORKERS, 0), (gen, table, True, 0, TABLE, 1)]
    for w in range(WORKERS):
        task, part = 1 + w, 4 + w
        rows += [(task, -1 - c, False, 0, 100_000, 2) for c in range(CONFIGS)]
        rows += [
            (task, big, False, w * REGION, REGION, 3),
            (task, table, False, 0, TABLE, 4),
            (task, part, True, 0, 200_000, 5),
            (task, grid, True, w * REGION, REGION, 6),
        ]
    rows += [(merge, 4 + w, False, 0, 200_000, 7) for w in range(WORKERS)]
    rows += [(merge, grid, False, 0, REGION * WORKERS, 8), (merge, total, True, 0, 300_000, 9)]
    rows += [(post, total, False, 0, 300_000, 10)]
    return rows


def accesses(units: int) -> Accesses:
    """Return all accesses of a run of `units` units."""
    template = np.array(_unit_template(), dtype=np.int64)
    count = len(template)
    unit = np.repeat(np.arange(units, dtype=np.int64), count)
    task, file, write, start, length, step = np.tile(template, (units, 1)).T
    shared = file < 0
    files = np.where(shared, units * FILES_PER_UNIT - 1 - file, unit * FILES_PER_UNIT + file)
    # task 1 is the driver; unit tasks follow
    return Accesses(
        2 + unit * TASKS_PER_UNIT + task,
        1 + files,
        write.astype(bool),
        start,
        length,
        START_NS + (unit * 12 + step) * STEP_NS,
    )
