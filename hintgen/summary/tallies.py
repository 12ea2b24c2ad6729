"""Totals and task types of a run, counted from the tables of an analysis.

Uses Arrow and numpy only: a database engine takes longer to start than a small run to count.
Engine tasks are excluded. Sizes are in bytes, times in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, column, positions

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis


def totals(analysis: Analysis) -> dict[str, int]:
    """Return tasks, types, files (versions count once), written, read, handed and failed of a run.

    Only bytes of data files count; `handed`: bytes that tasks read from outputs of other tasks.
    """
    tasks = analysis.tasks
    work = pc.invert(tasks.column("engine"))
    data = analysis.files.filter(pc.not_equal(analysis.files.column("role"), "software"))
    failed = pc.not_equal(tasks.column("exit_status").filter(work), 0)
    own = column(tasks, "engine", null=0) == 0
    return {
        "tasks": int(own.sum()),
        "types": pc.count_distinct(tasks.column("type").filter(work)).as_py(),
        "files": pc.count_distinct(data.column("lineage")).as_py(),
        "written": int(_moved_bytes(analysis, analysis.producers)[own].sum()),
        "read": int(_moved_bytes(analysis, analysis.consumers)[own].sum()),
        "handed": int(column(analysis.edges, "bytes", null=0).sum()),
        "failed": pc.sum(failed).as_py() or 0,
    }


def moves_data(analysis: Analysis) -> bool:
    """Whether any task read or wrote a byte of a data file, including runs of a single task."""
    if analysis.edges.num_rows:
        return True
    own = column(analysis.tasks, "engine", null=0) == 0
    sides = (analysis.producers, analysis.consumers)
    return any(bool(_moved_bytes(analysis, side)[own].any()) for side in sides)


def stages(analysis: Analysis) -> list[dict[str, Any]]:
    """Return type, tasks, read, written, seconds, cpu, io_wait (None: unknown) and first of each
    task type, by first start; cores, memory_bytes and peak_bytes if the engine reports them."""
    tasks = analysis.tasks
    table = pa.table(
        {
            "type": tasks.column("type"),
            "read": _moved_bytes(analysis, analysis.consumers),
            "written": _moved_bytes(analysis, analysis.producers),
            "seconds": pc.subtract(tasks.column("end_s"), tasks.column("start_s")),
            "cpu": tasks.column("cpu_s"),
            "io_wait": tasks.column("io_wait_s"),
            "first": tasks.column("start_s"),
        }
    ).filter(pc.invert(tasks.column("engine")))
    sums = [(name, "sum") for name in ("read", "written", "seconds", "cpu", "io_wait")]
    found = table.group_by("type").aggregate([([], "count_all"), *sums, ("first", "min")])
    requested = analysis.run.get("requested", {})
    rows = [
        {
            "type": r["type"] or "",
            "tasks": r["count_all"],
            "read": r["read_sum"],
            "written": r["written_sum"],
            "seconds": r["seconds_sum"] or 0.0,
            "cpu": r["cpu_sum"],
            "io_wait": r["io_wait_sum"],
            "first": r["first_min"],
            **requested.get(r["type"], {}),
        }
        for r in found.to_pylist()
    ]
    return sorted(rows, key=lambda r: (r["first"] is None, r["first"] or 0.0, r["type"]))


def _moved_bytes(analysis: Analysis, side: pa.Table) -> Ints:
    """Return the bytes of data files that each task moved, including repeated accesses."""
    tasks, files = analysis.tasks, analysis.files
    software = column(files.filter(pc.equal(files.column("role"), "software")), "file")
    moved = np.where(np.isin(column(side, "file"), software), 0, column(side, "bytes", null=0))
    at = positions(column(tasks, "task"), column(side, "task"))
    return sum_groups(at, moved, tasks.num_rows)


def sum_groups(group: Ints, values: Ints, count: int) -> Ints:
    """Return the integer sum of the values of each group 0 .. count-1."""
    sums: Ints = np.zeros(count, np.int64)
    np.add.at(sums, group, values)
    return sums
