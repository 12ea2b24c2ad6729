"""From the process tree to tasks: walk, join, name. `cut_tasks` is the entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import distinct
from tracehint.analyzer.tasks.activity import Activity, activity_of
from tracehint.analyzer.tasks.assemble import assemble
from tracehint.analyzer.tasks.batch import batch_jobs
from tracehint.analyzer.tasks.classify import Classes, classify
from tracehint.analyzer.tasks.declared import declared_only, join_declared
from tracehint.analyzer.tasks.engines.registry import PROGRAM_CODE, SHELL_CODE
from tracehint.analyzer.tasks.grouping import Grouping
from tracehint.analyzer.tasks.marks import given_names
from tracehint.analyzer.tasks.model import TaskCut
from tracehint.analyzer.tasks.pipes import captured, join_pipes
from tracehint.analyzer.tasks.tree import Bools, Ints, Tree, build_tree
from tracehint.analyzer.tasks.units import DRIVER, HELPER, JOB, Units, unit_of_epochs
from tracehint.analyzer.tasks.walk import Walk, contained_engines

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_MAX_DESCENTS = 8


def cut_tasks(bundle: Bundle) -> TaskCut:
    """The tasks of a run. Every process epoch gets exactly one; engine processes get their own.

    A bundle without processes yields the tasks that its engine declares.
    """
    processes = bundle.tables["processes"]
    if not processes.num_rows:
        return declared_only(bundle)
    tree = build_tree(processes)
    classes = classify(processes)
    activity = activity_of(bundle, tree.proc)
    units, unit_of, group = _walk(tree, classes, activity)
    grouping = Grouping(group[unit_of], _engine_groups(units, group), units, unit_of)
    names = given_names(processes, bundle.tables["marks"], tree)
    contains = contained_engines(tree, classes)
    jobs = batch_jobs(processes, tree, contains != 0)
    cut = assemble(bundle, tree, classes, grouping, names, jobs)
    return join_declared(bundle, cut)


def _walk(tree: Tree, classes: Classes, activity: Activity) -> tuple[Units, Ints, Ints]:
    """Units, unit per epoch, and per unit the unit that stands for its task."""
    promoted = np.zeros(len(tree.proc), bool)
    for _ in range(_MAX_DESCENTS):
        walk = Walk(tree, classes, promoted)
        units = walk.run()
        unit_of = _complete(tree, units, unit_of_epochs(tree, walk.owner), walk.owner)
        wrote = _per_unit(units, unit_of, activity.wrote)
        used = _per_unit(units, unit_of, activity.used)
        execs = _per_unit(units, unit_of, ~classes.kind_is("fork"))
        units.role[captured(units, unit_of, activity.pipe_writes, activity.pipe_reads, wrote)] = (
            HELPER
        )
        # what an unknown program starts without data is a part of it (uname, kill)
        aside = (units.engine == PROGRAM_CODE) & ~used & activity.known
        units.role[aside & (units.role == JOB) & (units.driver >= 0)] = HELPER
        # `sh -c "sbatch ..."`: the job runs elsewhere
        submits = _per_unit(units, unit_of, classes.kind_is("submitter"))
        submits &= ~_per_unit(units, unit_of, classes.kind_is("program", "launcher"))
        units.role[submits & (units.role == JOB) & (units.driver >= 0)] = HELPER
        group = join_pipes(units, unit_of, activity.pipe_writes, activity.pipe_reads)
        # a subshell that runs no program, touches no data and feeds none that does (`... | while
        # read line; do echo; done | sort`) is the script's own work
        idle = units.subshell & ~execs & ~used & (units.driver >= 0) & (units.role == JOB)
        working = np.zeros(len(units), bool)
        working[group[(units.role == JOB) & ~idle]] = True
        units.role[idle & ~working[group]] = HELPER
        if not _descend(classes, units, unit_of, group, wrote | (not activity.known), promoted):
            break
    opened = _per_unit(units, unit_of, activity.opened)
    _collapse(tree, units, group, opened, used, activity.known)
    return units, unit_of, group


def _complete(tree: Tree, units: Units, unit_of: Ints, owner: Ints) -> Ints:
    """Epochs that the walk did not reach (cycles in a damaged bundle): a job per process."""
    lost = np.flatnonzero(unit_of < 0)
    if not len(lost):
        return unit_of
    heads, back = np.unique(tree.head[lost], return_inverse=True)
    number = len(units) + np.arange(len(heads))
    none = np.full(len(heads), -1, np.int64)
    units.head = np.concatenate((units.head, heads))
    units.role = np.concatenate((units.role, np.full(len(heads), JOB)))
    units.engine = np.concatenate((units.engine, np.full(len(heads), SHELL_CODE)))
    units.driver = np.concatenate((units.driver, none))
    units.subshell = np.concatenate((units.subshell, np.zeros(len(heads), bool)))
    units.engine_epoch = np.concatenate((units.engine_epoch, heads))
    owner[heads] = number
    unit_of[lost] = number[back.reshape(-1)]
    return unit_of


def _per_unit(units: Units, unit_of: Ints, flag: Bools) -> Bools:
    result = np.zeros(len(units), bool)
    result[unit_of[flag]] = True
    return result


def _descend(
    classes: Classes, units: Units, unit_of: Ints, group: Ints, works: Bools, promoted: Bools
) -> bool:
    """Where a whole script is one shell (`main | tee log`, `sh -c "sh workflow.sh"`), cut that
    shell instead: mark it in `promoted`. Returns whether there is such a one."""
    programs = np.bincount(
        unit_of[~classes.kind_is("fork", "inline", "script", "wrapper")], minlength=len(units)
    )
    shell = classes.kind_is("fork", "inline", "script", "wrapper")[units.engine_epoch]
    changed = False
    roots = np.flatnonzero((units.driver < 0) & (units.role == DRIVER))
    roots = roots[np.isin(units.engine[roots], (SHELL_CODE, PROGRAM_CODE))]
    while len(roots):
        jobs = np.flatnonzero(np.isin(units.driver, roots) & (units.role == JOB) & works)
        parent, component = units.driver[jobs], group[jobs]
        pairs = distinct(parent * len(units) + component)
        drivers, count = np.unique(pairs // len(units), return_counts=True)
        others = np.unique(units.driver[(units.role == DRIVER) & (units.driver >= 0)])
        sole = np.setdiff1d(drivers[count == 1], others)
        again = jobs[np.isin(parent, sole) & shell[jobs] & (programs[jobs] >= 2)]
        promoted[units.head[again]] = True
        changed |= bool(len(again))
        roots = np.flatnonzero(
            np.isin(units.driver, roots) & (units.role == DRIVER) & promoted[units.head]
        )
    return changed


def _collapse(
    tree: Tree, units: Units, group: Ints, opened: Bools, used: Bools, known: bool
) -> None:
    """A root that drives nothing is one task, with all that it started.

    A shell or wrapper without jobs; an unknown program whose children touch no data. An unknown
    program that drives others and writes data itself is a task beside them.
    """
    top = np.arange(len(units))
    for _ in range(64):
        above = units.driver[top]
        if (above < 0).all():
            break
        top = np.where(above >= 0, above, top)
    is_job = (units.role == JOB) & (units.driver >= 0)
    has_job = np.zeros(len(units), bool)
    has_job[top[is_job]] = True
    data_job = np.zeros(len(units), bool)
    data_job[top[is_job & (used | (not known))]] = True
    root = (units.driver < 0) & (units.role == DRIVER)
    shell = root & (units.engine == SHELL_CODE)
    program = root & (units.engine == PROGRAM_CODE)
    whole = (shell & ~has_job) | (program & ~data_job) | (shell & _only_itself(tree, units, top))
    members = whole[top]
    group[members] = top[members]
    units.role[whole] = JOB
    # forked copies of an unknown program are parts of it
    workers = (units.role == DRIVER) & (units.engine == PROGRAM_CODE) & ~root & ~members
    group[workers] = top[workers]
    wrote_itself = program & opened
    wrote_itself[top[workers & opened]] = True
    units.role[wrote_itself & ~whole] = JOB


def _only_itself(tree: Tree, units: Units, top: Ints) -> Bools:
    """Roots whose only unit is the program that they exec in their own place (`sh -c "sort x"`)."""
    count = np.bincount(top, minlength=len(units))
    result = np.zeros(len(units), bool)
    inner = np.flatnonzero((units.driver >= 0) & (tree.prev[units.head] >= 0))
    inner = inner[(count[top[inner]] == 2) & (units.role[inner] == JOB)]
    result[top[inner]] = True
    return result


def _engine_groups(units: Units, group: Ints) -> Bools:
    """Per unit: whether the task that it belongs to is an engine process."""
    return np.asarray(units.role[group] != JOB, bool)
