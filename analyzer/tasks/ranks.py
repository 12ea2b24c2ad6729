"""Which processes are ranks of an MPI program, and of which one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import finder
from tracehint.analyzer.columns import column
from tracehint.analyzer.tasks.batch import MPI_RANKS
from tracehint.analyzer.tasks.classify import DAEMONS, Classes
from tracehint.analyzer.tasks.marks import environment
from tracehint.analyzer.tasks.tree import Ints, Tree, jump

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.tasks.model import Segmentation

_MOST = 1 << 24  # ranks of one program
_DIGITS = 8
# What tells the steps of batch jobs apart, where no launcher was seen.
_STEPS = ("SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID")


@dataclass(frozen=True)
class Ranks:
    """One entry per rank: the program that it is a rank of, its number and host (codes), the task
    that it is taken from, and its first epoch; `of` has the rank of each epoch, -1 for none."""

    group: Ints
    number: Ints
    host: Ints
    task: Ints
    top: Ints
    of: Ints


def has_ranks(processes: pa.Table) -> bool:
    """Whether any process says that it is a rank."""
    return any((environment(processes, name)[0] >= 0).any() for name in MPI_RANKS)


def find_ranks(
    processes: pa.Table, tree: Tree, classes: Classes, segmented: Segmentation
) -> Ranks | None:
    """The ranks of a run; None: there are none."""
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
    """Per epoch the number of the MPI rank that it is or belongs to; -1: none.

    A launcher that is itself started as a rank (of a batch step) begins anew.
    """
    number = np.full(len(tree.proc), -1, np.int64)
    for variable in reversed(MPI_RANKS):
        value, texts = environment(processes, variable)
        known = [int(t) if t.isdigit() and len(t) <= _DIGITS else -1 for t in texts]
        table = np.array([*known, -1], np.int64)
        number = np.where(table[value] >= 0, np.minimum(table[value], _MOST), number)
    launcher = classes.kind_is("launcher")
    number[launcher] = -1
    number = number[jump(tree.up, launcher | (number >= 0))]
    # the fork that became the rank
    fork = np.flatnonzero(classes.kind_is("fork") & (tree.next >= 0) & (number < 0))
    number[fork] = number[tree.next[fork]]
    return number


def _launchers(tree: Tree, classes: Classes, at: Ints) -> Ints:
    """Per epoch the process that launched it as a rank, -1: none was seen."""
    daemon = np.array([c.program in DAEMONS for c in classes.commands], bool)[classes.of]
    launcher = classes.kind_is("launcher") & ~daemon
    above = jump(tree.up, launcher)[at]
    return np.where(launcher[above], tree.head[above], -1)


def _groups(processes: pa.Table, tree: Tree, ranks: Ranks) -> Ints:
    """Per rank the number of its program: all that one launcher started; of others those of one
    step of a batch job, else of one task (a log of all ranks), with the same command.

    Those without a launcher belong to a program with the same command that a launcher started on
    another host, as long as no rank is there twice.
    """
    words = processes.column("argv").combine_chunks().take(_rows(speaking(tree, ranks.top)))
    commands = [b"\0".join(w or ()) for w in words.to_pylist()]
    steps = _steps(processes, tree, ranks.top)
    several = _more_than_one(ranks.task, ranks.number)
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


def speaking(tree: Tree, top: Ints) -> Ints:
    """The epochs with the arguments of these: of a fork the program that it became."""
    fork = (tree.prev[top] < 0) & (tree.parent[top] >= 0) & (tree.next[top] >= 0)
    return np.where(fork, tree.next[top], top)


def _join_strays(
    members: dict[tuple[object, ...], list[int]],
    commands: list[bytes],
    ranks: Ranks,
    number: dict[tuple[object, ...], int],
) -> None:
    """Give programs without a launcher the number of the one that they belong to."""
    launched: dict[bytes, list[tuple[int, set[int]]]] = {}
    for key, rows in members.items():
        if key[0] == "launcher":
            there = {int(ranks.number[i]) for i in rows}
            launched.setdefault(commands[rows[0]], []).append((number[key], there))
    for key, rows in members.items():
        mine = {int(ranks.number[i]) for i in rows}
        for other, there in launched.get(commands[rows[0]], ()) if key[0] == "step" else ():
            if not mine & there:
                number[key] = other
                there |= mine
                break


def _steps(processes: pa.Table, tree: Tree, at: Ints) -> list[bytes]:
    """Per epoch what its batch system calls the step or job that it belongs to."""
    parts = []
    for variable in _STEPS:
        value, texts = environment(processes, variable)
        own = value[jump(tree.up, value >= 0)][at]
        parts.append([texts[v] if v >= 0 else b"" for v in own.tolist()])
    return [b".".join(p) if any(p) else b"" for p in zip(*parts, strict=True)]


def _more_than_one(task: Ints, number: Ints) -> list[bool]:
    """Per rank: whether its task has others."""
    pairs = np.unique(np.stack((task, number)), axis=1)
    tasks, count = np.unique(pairs[0], return_counts=True)
    several: list[bool] = np.isin(task, tasks[count > 1]).tolist()
    return several


def _rows(values: Ints) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int64())
