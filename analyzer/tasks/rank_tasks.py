"""Ranks of MPI programs as tasks of one group: `--ranks`, or where they run on several hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import finder
from tracehint.analyzer.columns import column
from tracehint.analyzer.model import TASKS
from tracehint.analyzer.tasks.activity import Activity
from tracehint.analyzer.tasks.assemble import exit_status
from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.describe import NAME_LENGTH, describe
from tracehint.analyzer.tasks.model import DECLARED_TASK, PROC_TASK, Segmentation
from tracehint.analyzer.tasks.ranks import Ranks, find_ranks, speaking
from tracehint.analyzer.tasks.tree import NEVER, Bools, Ints, Tree, jump

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

_SUFFIX = 16  # characters of a name that are left for ` [rank 3]`


def split_ranks(
    bundle: Bundle,
    tree: Tree,
    classes: Classes,
    activity: Activity,
    segmented: Segmentation,
    wanted: bool | None,
) -> Segmentation:
    """Make each rank of an MPI program a task; what is left is its launcher's.

    wanted: None for the programs whose ranks ran on several hosts, else all or none.
    """
    processes = bundle.tables["processes"]
    if wanted is False or (wanted is None and len(processes.column("host").unique()) < 2):
        return segmented
    ranks = find_ranks(processes, tree, classes, segmented)
    if ranks is None:
        return segmented
    chosen = _several(ranks.group, ranks.number)
    if wanted is None:
        chosen &= _several(ranks.group, ranks.host)
    engine = segmented.tasks.column("engine").to_numpy(zero_copy_only=False)
    chosen &= ~engine[np.maximum(ranks.task, 0)]
    return (
        _with_ranks(bundle, tree, activity, segmented, ranks, chosen) if chosen.any() else segmented
    )


def _several(group: Ints, what: Ints) -> Bools:
    """Per rank: whether its group has more than one of these."""
    pairs = np.unique(np.stack((group, what)), axis=1)
    groups, count = np.unique(pairs[0], return_counts=True)
    return np.asarray(np.isin(group, groups[count > 1]), bool)


def _with_ranks(
    bundle: Bundle, tree: Tree, activity: Activity, whole: Segmentation, ranks: Ranks, chosen: Bools
) -> Segmentation:
    """The tasks with a row for each chosen rank, right behind the task that it is taken from."""
    import pyarrow as pa

    tasks, rows = whole.tasks.num_rows, whole.tasks.to_pylist()
    rank_of = np.where(np.append(chosen, False)[ranks.of], ranks.of, -1)
    find = finder(column(whole.proc_task, "proc", -1))
    task_of = column(whole.proc_task, "task", -1)[find(tree.proc)]
    gone = _leave(rows, tree, activity, task_of, rank_of < 0, np.unique(ranks.task[chosen]))
    new = _rank_rows(bundle, tree, ranks, chosen, rank_of, rows)
    order = np.lexsort(
        (
            np.concatenate((np.full(tasks, -1), ranks.number[chosen])),
            np.concatenate((np.arange(tasks), ranks.task[chosen])),
        )
    )
    order = order[~np.append(gone, np.zeros(len(new), bool))[order]]
    place = np.full(tasks + len(new), -1, np.int64)
    place[order] = np.arange(len(order))
    every = [*rows, *new]
    table = [every[i] | {"task": n} for n, i in enumerate(order.tolist())]
    slot = np.full(len(chosen), -1, np.int64)
    slot[chosen] = tasks + np.arange(len(new))
    final = place[np.where(rank_of >= 0, slot[rank_of], task_of)]
    # a task that has become its ranks: the first of them stands for it
    first = np.full(tasks, -1, np.int64)
    first[ranks.task[chosen][::-1]] = slot[chosen][::-1]
    stands = place[np.where(gone, first, np.arange(tasks))]
    own = pa.array(stands[column(whole.declared_task, "task", 0)], pa.int64())
    return replace(
        whole,
        tasks=pa.Table.from_pylist(table, schema=TASKS),
        proc_task=pa.table({"proc": tree.proc, "task": final}, schema=PROC_TASK),
        declared_task=whole.declared_task.set_column(1, "task", own).cast(DECLARED_TASK),
    )


def _leave(
    rows: list[dict[str, Any]],
    tree: Tree,
    activity: Activity,
    task_of: Ints,
    stays: Bools,
    touched: Ints,
) -> Bools:
    """Write into these tasks what is left of them without their ranks; per task: nothing is."""
    busy = np.zeros(len(rows), bool)
    busy[task_of[stays & activity.used]] = True
    processes = np.unique(np.stack((task_of[stays], tree.head[stays])), axis=1)[0]
    left = np.bincount(processes, minlength=len(rows))
    for task in touched.tolist():
        rows[task] |= {"engine": not busy[task], "processes": int(left[task])}
    return np.asarray(np.isin(np.arange(len(rows)), touched) & (left == 0), bool)


def _rank_rows(
    bundle: Bundle,
    tree: Tree,
    ranks: Ranks,
    chosen: Bools,
    rank_of: Ints,
    rows: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row of TASKS for each chosen rank, without its number."""
    processes, n = bundle.tables["processes"], len(chosen)
    inside = np.flatnonzero(rank_of >= 0)
    start, end, count = _spans(tree, rank_of[inside], inside, n)
    status, known = exit_status(processes, jump(tree.next)[ranks.top])
    group = np.unique(ranks.group, return_inverse=True)[1].reshape(-1)
    origin = bundle.manifest.started_ns or int(tree.start.min())
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    at = np.flatnonzero(chosen)
    hosts = processes.column("host").take(_rows(ranks.top[at])).to_pylist()
    words = processes.column("argv").take(_rows(speaking(tree, ranks.top)[at])).to_pylist()
    found = []
    for rank, host, argv in zip(at.tolist(), hosts, words, strict=True):
        outer = rows[int(ranks.task[rank])]
        found.append(
            outer
            | {
                "name": _name(outer["name"], int(ranks.number[rank])),
                "command": describe(argv).command if argv else outer["command"],
                "host": host,
                "site": sites.get(host, ""),
                "start_s": (int(start[rank]) - origin) / 1e9,
                "end_s": None if end[rank] == NEVER else (int(end[rank]) - origin) / 1e9,
                "exit_status": int(status[rank]) if known[rank] else None,
                "processes": int(count[rank]),
                "engine": False,
                "group": int(group[rank]),
                "rank": int(ranks.number[rank]),
            }
        )
    return found


def _spans(tree: Tree, rank: Ints, inside: Ints, n: int) -> tuple[Ints, Ints, Ints]:
    """Start, end and number of processes of each rank, from its epochs `inside`."""
    start, end = np.full(n, NEVER), np.zeros(n, np.int64)
    np.minimum.at(start, rank, tree.start[inside])
    np.maximum.at(end, rank, tree.end[inside])
    pairs = np.unique(np.stack((rank, tree.head[inside])), axis=1)
    return start, end, np.bincount(pairs[0], minlength=n)


def _name(program: str, rank: int) -> str:
    room = NAME_LENGTH - _SUFFIX
    short = program if len(program) <= room else program[: room - 1] + "…"
    return f"{short} [rank {rank}]"


def _rows(values: Ints) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int64())
