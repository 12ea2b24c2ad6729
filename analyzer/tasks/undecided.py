"""Sentences about tasks that could be cut further: one task that is nearly the whole run."""

from __future__ import annotations

import shlex

import numpy as np

from tracehint.analyzer.tasks.activity import Activity
from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.describe import printable
from tracehint.analyzer.tasks.engines.program import drives_nothing
from tracehint.analyzer.tasks.engines.registry import ENGINES
from tracehint.analyzer.tasks.model import RUNNER, WORKFLOW, Command
from tracehint.analyzer.tasks.tree import Bools, Ints, Tree, jump
from tracehint.analyzer.tasks.units import JOB, Units

SHARE = 0.9  # of the run's bytes
_ENOUGH = 2  # programs with data that it started


def undecided(
    tree: Tree,
    classes: Classes,
    units: Units,
    unit_of: Ints,
    group: Ints,
    activity: Activity,
    whole: Bools,
    has_ranks: bool,
) -> tuple[str, ...]:
    """At most one sentence: about the task that did nearly all I/O and started programs."""
    n, total = len(units), int(activity.moved.sum())
    if not activity.known or not total:
        return ()
    per_task = np.bincount(group[unit_of], activity.moved, n)
    main = int(per_task.argmax())
    engine = ENGINES[int(units.engine[main])]
    asked = engine.rank in (RUNNER, WORKFLOW)  # the engine says what its tasks are
    if units.role[main] != JOB or asked or per_task[main] < SHARE * total:
        return ()
    found = _starter(tree, classes, group[unit_of] == main, activity, whole)
    if found is None:
        return ()
    command, started = found
    share = int(100 * per_task[main] / total)
    inside = f"--split {shlex.quote(printable(command.program))}"
    if command.kind == "launcher":
        if not has_ranks:
            return ()
        inside = "--ranks"
    text = f"one task did {share} % of the I/O and started {started} programs: "
    return (f"{text}`{inside}` looks inside",)


def _starter(
    tree: Tree, classes: Classes, inside: Bools, activity: Activity, whole: Bools
) -> tuple[Command, int] | None:
    """Of these epochs' programs the one that started most programs that used data, and how many;
    None: fewer than enough, or it only started its own parts."""
    names = classes.kind_is("program", "script", "launcher")
    started = np.flatnonzero(inside & activity.used & classes.kind_is("program", "launcher"))
    above = tree.parent[np.unique(tree.head[started])]
    starter = jump(tree.up, names)[above[above >= 0]]
    starter = starter[inside[starter] & names[starter] & ~whole[starter]]
    if not len(starter):
        return None
    which, count = np.unique(starter, return_counts=True)
    best = int(count.argmax())
    command = classes.commands[int(classes.of[which[best]])]
    if count[best] < _ENOUGH or drives_nothing(command.program):
        return None
    return command, int(count[best])
