"""Ranks of MPI programs: which processes are ranks, and of which program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import column, finder
from tracehint.analyzer.model import DECLARED_TASK, PROC_TASK, TASKS, Segmentation
from tracehint.analyzer.tasks.activity import Activity
from tracehint.analyzer.tasks.batch import MPI_RANKS
from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.describe import NAME_LENGTH, describe
from tracehint.analyzer.tasks.marks import environment
from tracehint.analyzer.tasks.task_table import exit_status
from tracehint.analyzer.tasks.tree import NEVER, Bools, Ints, Tree, jump
from tracehint.schemas.commandline.programs import DAEMONS

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


_MAX_RANK = 1 << 24  # largest number of a rank
_DIGITS = 8
# Variables that identify the step of a batch job, if no launcher was recorded.
_STEPS = ("SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID")


@dataclass(frozen=True)
class Ranks:
    """One entry per rank: its program, its number and host (codes), the task that it is taken from,
    and its first epoch; `of` is the rank of each epoch, -1 for none."""

    group: Ints
    number: Ints
    host: Ints
    task: Ints
    top: Ints
    of: Ints


def has_ranks(processes: pa.Table) -> bool:
    """Whether the environment of any process contains a rank."""
    return any((environment(processes, name)[0] >= 0).any() for name in MPI_RANKS)


def find_ranks(
    processes: pa.Table, tree: Tree, classes: Classes, segmented: Segmentation
) -> Ranks | None:
    """Return the ranks of a run, or None if there are none."""
    number = _numbers(processes, tree, classes)
    at = np.flatnonzero(number >= 0)
    if not len(at):
        return None
    find = finder(column(segmented.proc_task, "proc", -1))
    task = column(segmented.proc_task, "task", -1)[find(tree.proc[at])]
    codes = processes.column("host").combine_chunks().dictionary_encode().indices
    host = codes.to_numpy(zero_copy_only=False)[at]
    program = _launchers(tree, classes, at)
    keys = np.stack((program, number[at], host, task))
    distinct, back = np.unique(keys, axis=1, return_inverse=True)
    back = back.reshape(-1)
    order = np.lexsort((tree.proc[at], tree.start[at], back))
    top = at[order[np.searchsorted(back[order], np.arange(distinct.shape[1]))]]
    of = np.full(len(tree.proc), -1, np.int64)
    of[at] = back
    found = Ranks(distinct[0], distinct[1], distinct[2], distinct[3], top, of)
    found.group[:] = _groups(processes, tree, found)
    return found


def _numbers(processes: pa.Table, tree: Tree, classes: Classes) -> Ints:
    """Return the number of the MPI rank that each epoch is or belongs to; -1 for none.

    A launcher that is itself started as a rank (of a batch step) resets the number below it.
    """
    number = np.full(len(tree.proc), -1, np.int64)
    for variable in reversed(MPI_RANKS):
        value, texts = environment(processes, variable)
        known = [int(t) if t.isdigit() and len(t) <= _DIGITS else -1 for t in texts]
        table = np.array([*known, -1], np.int64)
        number = np.where(table[value] >= 0, np.minimum(table[value], _MAX_RANK), number)
    launcher = classes.kind_is("launcher")
    number[launcher] = -1
    number = number[jump(tree.up, launcher | (number >= 0))]
    # the fork that became the rank
    fork = np.flatnonzero(classes.kind_is("fork") & (tree.next >= 0) & (number < 0))
    number[fork] = number[tree.next[fork]]
    return number


def _launchers(tree: Tree, classes: Classes, at: Ints) -> Ints:
    """Return the process that launched each epoch as a rank, -1 if none was recorded."""
    daemon = np.array([c.program in DAEMONS for c in classes.commands], bool)[classes.of]
    launcher = classes.kind_is("launcher") & ~daemon
    above = jump(tree.up, launcher)[at]
    return np.where(launcher[above], tree.head[above], -1)


def _groups(processes: pa.Table, tree: Tree, ranks: Ranks) -> Ints:
    """Return the program of each rank: one per launcher; without launcher, one per batch step and
    command, else one per task (a log of all ranks).

    Ranks without a launcher belong to a program with the same command that a launcher started on
    another host, unless a rank number would occur twice.
    """
    words = processes.column("argv").combine_chunks().take(_rows(follow_forks(tree, ranks.top)))
    commands = [b"\0".join(w or ()) for w in words.to_pylist()]
    steps = _steps(processes, tree, ranks.top)
    several = _have_siblings(ranks.task, ranks.number)
    keys: list[tuple[object, ...]] = []
    for i, launcher in enumerate(ranks.group.tolist()):
        if launcher >= 0:
            keys.append(("launcher", launcher))
        elif steps[i] or not several[i]:
            keys.append(("step", steps[i], commands[i]))
        else:
            keys.append(("task", int(ranks.task[i])))
    members: dict[tuple[object, ...], list[int]] = {}
    for i, key in enumerate(keys):
        members.setdefault(key, []).append(i)
    number = {key: n for n, key in enumerate(members)}
    _join_strays(members, commands, ranks, number)
    return np.array([number[key] for key in keys], np.int64)


def follow_forks(tree: Tree, top: Ints) -> Ints:
    """Return the epochs with the arguments of these: for a fork, the program that it became."""
    fork = (tree.prev[top] < 0) & (tree.parent[top] >= 0) & (tree.next[top] >= 0)
    return np.where(fork, tree.next[top], top)


def _join_strays(
    members: dict[tuple[object, ...], list[int]],
    commands: list[bytes],
    ranks: Ranks,
    number: dict[tuple[object, ...], int],
) -> None:
    """Assign each program without a launcher to the launched program that it belongs to."""
    launched: dict[bytes, list[tuple[int, set[int]]]] = {}
    for key, rows in members.items():
        if key[0] == "launcher":
            numbers = {int(ranks.number[i]) for i in rows}
            launched.setdefault(commands[rows[0]], []).append((number[key], numbers))
    for key, rows in members.items():
        mine = {int(ranks.number[i]) for i in rows}
        for other, numbers in launched.get(commands[rows[0]], ()) if key[0] == "step" else ():
            if not mine & numbers:
                number[key] = other
                numbers |= mine
                break


def _steps(processes: pa.Table, tree: Tree, at: Ints) -> list[bytes]:
    """Return the step or job of each epoch, as named by its batch system."""
    parts = []
    for variable in _STEPS:
        value, texts = environment(processes, variable)
        own = value[jump(tree.up, value >= 0)][at]
        parts.append([texts[v] if v >= 0 else b"" for v in own.tolist()])
    return [b".".join(p) if any(p) else b"" for p in zip(*parts, strict=True)]


def _have_siblings(task: Ints, number: Ints) -> list[bool]:
    """Return per rank whether its task has others."""
    pairs = np.unique(np.stack((task, number)), axis=1)
    tasks, count = np.unique(pairs[0], return_counts=True)
    several: list[bool] = np.isin(task, tasks[count > 1]).tolist()
    return several


def _rows(values: Ints) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int64())


_SUFFIX = 16  # characters of a name that are reserved for ` [rank 3]`


def split_ranks(
    bundle: Bundle,
    tree: Tree,
    classes: Classes,
    activity: Activity,
    segmented: Segmentation,
    wanted: bool | None,
) -> Segmentation:
    """Make each rank of an MPI program a task; the rest of the original task is the launcher.

    `wanted`: all programs or none; None: those whose ranks ran on several hosts.
    """
    processes = bundle.tables["processes"]
    if wanted is False or (wanted is None and len(processes.column("host").unique()) < 2):
        return segmented
    ranks = find_ranks(processes, tree, classes, segmented)
    if ranks is None:
        return segmented
    chosen = _have_several(ranks.group, ranks.number)
    if wanted is None:
        chosen &= _have_several(ranks.group, ranks.host)
    engine = segmented.tasks.column("engine").to_numpy(zero_copy_only=False)
    chosen &= ~engine[np.maximum(ranks.task, 0)]
    return (
        _with_ranks(bundle, tree, activity, segmented, ranks, chosen) if chosen.any() else segmented
    )


def _have_several(group: Ints, what: Ints) -> Bools:
    """Return per rank whether its group has several values of `what`."""
    pairs = np.unique(np.stack((group, what)), axis=1)
    groups, count = np.unique(pairs[0], return_counts=True)
    return np.asarray(np.isin(group, groups[count > 1]), bool)


def _with_ranks(
    bundle: Bundle, tree: Tree, activity: Activity, whole: Segmentation, ranks: Ranks, chosen: Bools
) -> Segmentation:
    """Return the tasks with a row for each chosen rank, after the task from which it is taken."""
    import pyarrow as pa

    tasks, rows = whole.tasks.num_rows, whole.tasks.to_pylist()
    rank_of = np.where(np.append(chosen, False)[ranks.of], ranks.of, -1)
    find = finder(column(whole.proc_task, "proc", -1))
    task_of = column(whole.proc_task, "task", -1)[find(tree.proc)]
    gone = _reduce_tasks(rows, tree, activity, task_of, rank_of < 0, np.unique(ranks.task[chosen]))
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
    # a task without a rest is represented by the first of its ranks
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


def _reduce_tasks(
    rows: list[dict[str, Any]],
    tree: Tree,
    activity: Activity,
    task_of: Ints,
    stays: Bools,
    touched: Ints,
) -> Bools:
    """Write the rest without ranks into these tasks; return which tasks have no rest."""
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
    """Return one row of TASKS for each chosen rank, without its task number."""
    processes, n = bundle.tables["processes"], len(chosen)
    inside = np.flatnonzero(rank_of >= 0)
    start, end, count = _spans(tree, rank_of[inside], inside, n)
    status, known = exit_status(processes, jump(tree.next)[ranks.top])
    group = np.unique(ranks.group, return_inverse=True)[1].reshape(-1)
    origin = bundle.manifest.started_ns or int(tree.start.min())
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    at = np.flatnonzero(chosen)
    hosts = processes.column("host").take(_rows(ranks.top[at])).to_pylist()
    words = processes.column("argv").take(_rows(follow_forks(tree, ranks.top)[at])).to_pylist()
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
    """Return start, end and number of processes of each rank, from its epochs `inside`."""
    start, end = np.full(n, NEVER), np.zeros(n, np.int64)
    np.minimum.at(start, rank, tree.start[inside])
    np.maximum.at(end, rank, tree.end[inside])
    pairs = np.unique(np.stack((rank, tree.head[inside])), axis=1)
    return start, end, np.bincount(pairs[0], minlength=n)


def _name(program: str, rank: int) -> str:
    room = NAME_LENGTH - _SUFFIX
    short = program if len(program) <= room else program[: room - 1] + "…"
    return f"{short} [rank {rank}]"
