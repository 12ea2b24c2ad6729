"""From the process tree to tasks: walk, join, name. `segment_tasks` is the entry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.memory import give_back
from tracehint.analyzer.model import Options
from tracehint.analyzer.tasks.activity import Activity, activity_of
from tracehint.analyzer.tasks.assemble import assemble
from tracehint.analyzer.tasks.batch import batch_jobs
from tracehint.analyzer.tasks.chosen import ChosenCuts, choose
from tracehint.analyzer.tasks.classify import Classes, classify
from tracehint.analyzer.tasks.declared import declared_only, join_declared
from tracehint.analyzer.tasks.descend import Search, Traits, by_itself, facts_of, go_down, judge
from tracehint.analyzer.tasks.engines.registry import PROGRAM_CODE, SHELL_CODE
from tracehint.analyzer.tasks.grouping import Grouping
from tracehint.analyzer.tasks.makers import makers_of
from tracehint.analyzer.tasks.marks import given_names
from tracehint.analyzer.tasks.model import Segmentation
from tracehint.analyzer.tasks.pipes import captured, join_pipes
from tracehint.analyzer.tasks.rank_tasks import split_ranks
from tracehint.analyzer.tasks.ranks import has_ranks
from tracehint.analyzer.tasks.tree import Bools, Ints, Tree, build_tree
from tracehint.analyzer.tasks.undecided import undecided
from tracehint.analyzer.tasks.units import DRIVER, HELPER, JOB, Units, unit_of_epochs
from tracehint.analyzer.tasks.walk import Walk, contained_engines

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_MAX_DESCENTS = 64


def segment_tasks(bundle: Bundle, options: Options | None = None) -> Segmentation:
    """The tasks of a run. Every process epoch gets exactly one; engine processes get their own.

    A bundle without processes yields the tasks that its engine declares. Raises InputError when
    `options.split` or `.whole` name what the run does not have.
    """
    processes = bundle.tables["processes"]
    options = options or Options()
    if not processes.num_rows:
        return declared_only(bundle)
    tree = build_tree(processes)
    classes = classify(processes)
    activity = activity_of(bundle, tree.proc)
    give_back()
    chosen = choose(processes, tree, classes, options)
    units, unit_of, group = _walk(tree, classes, activity, chosen)
    give_back()
    grouping = Grouping(group[unit_of], _engine_groups(units, group), units, unit_of)
    names = given_names(processes, bundle.tables["marks"], tree)
    contains = contained_engines(tree, classes)
    jobs = batch_jobs(processes, tree, contains != 0)
    segmented = assemble(bundle, tree, classes, grouping, names, jobs)
    segmented = join_declared(bundle, segmented)
    segmented = replace(segmented, makers=makers_of(bundle, tree, segmented))
    segmented = split_ranks(bundle, tree, classes, activity, segmented, options.ranks)
    if options.ranks:
        return segmented
    said = undecided(
        tree, classes, units, unit_of, group, activity, chosen.whole, has_ranks(processes)
    )
    return replace(segmented, notes=said)


def _walk(
    tree: Tree, classes: Classes, activity: Activity, chosen: ChosenCuts
) -> tuple[Units, Ints, Ints]:
    """Units, unit per epoch, and per unit the unit that stands for its task."""
    search = Search(chosen.split.copy(), np.zeros(len(tree.proc), bool))
    searching = True
    for _ in range(_MAX_DESCENTS):
        walk = Walk(tree, classes, activity.used, search.promoted, chosen.whole)
        units = walk.run()
        unit_of = _complete(tree, units, unit_of_epochs(tree, walk.owner), walk.owner)
        group = _settle(classes, units, unit_of, activity)
        facts = facts_of(classes, units, unit_of, activity, chosen.whole)
        if searching and go_down(search, units, group, facts):
            continue
        searching = False
        made = np.bincount(unit_of, activity.made, len(units)).astype(np.int64)
        if not judge(search, units, group, facts, made):
            break
    opened = _per_unit(units, unit_of, activity.opened)
    used = _per_unit(units, unit_of, activity.used)
    alone = by_itself(units, group, facts, made) & ~chosen.split[units.head]
    _collapse(tree, units, group, facts, opened, used | (not activity.known), alone)
    return units, unit_of, group


def _settle(classes: Classes, units: Units, unit_of: Ints, activity: Activity) -> Ints:
    """Make helpers of the units that only help; per unit the first of its pipeline."""
    wrote = _per_unit(units, unit_of, activity.wrote)
    used = _per_unit(units, unit_of, activity.used)
    execs = _per_unit(units, unit_of, ~classes.kind_is("fork"))
    units.role[captured(units, unit_of, activity.pipe_writes, activity.pipe_reads, wrote)] = HELPER
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
    return group


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


def _collapse(
    tree: Tree, units: Units, group: Ints, facts: Traits, opened: Bools, used: Bools, alone: Bools
) -> None:
    """A root that drives nothing is one task, with all that it started.

    A shell or wrapper without jobs; an unknown program whose children touch no data, or that did
    the work `alone`. An unknown program that drives others and writes data itself is a task
    beside them.
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
    data_job[top[is_job & used]] = True
    root = (units.driver < 0) & (units.role == DRIVER)
    shell = root & (units.engine == SHELL_CODE)
    program = root & (units.engine == PROGRAM_CODE)
    whole = (
        (shell & ~has_job)
        | (program & ~data_job)
        | alone
        | (shell & _only_itself(tree, units, top))
    )
    members = whole[top]
    group[members] = top[members]
    units.role[whole] = JOB
    # forked copies of an unknown program are parts of it
    workers = facts.worker & ~members
    group[workers] = facts.leader[workers]
    wrote_itself = (units.role == DRIVER) & (units.engine == PROGRAM_CODE) & opened
    wrote_itself[facts.leader[workers & opened]] = True
    units.role[wrote_itself & ~members & ~facts.worker] = JOB


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
