"""Segmentation of the process tree into tasks: walk, join, name; entry `segment_tasks`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.memory import give_back
from tracehint.analyzer.model import Options, Segmentation
from tracehint.analyzer.tasks.activity import Activity, activity_of
from tracehint.analyzer.tasks.batch import batch_jobs
from tracehint.analyzer.tasks.classify import Classes, classify
from tracehint.analyzer.tasks.declared import declared_only, join_declared
from tracehint.analyzer.tasks.describe import describe, plain_descriptions, printable
from tracehint.analyzer.tasks.drivers import Search, Traits, by_itself, facts_of, go_down, judge
from tracehint.analyzer.tasks.engine_processes import (
    ENGINES,
    PROGRAM_CODE,
    RUNNER,
    SHELL_CODE,
    WORKFLOW,
    Command,
    drives_nothing,
)
from tracehint.analyzer.tasks.marks import given_names
from tracehint.analyzer.tasks.producing_programs import makers_of
from tracehint.analyzer.tasks.ranks import has_ranks, split_ranks
from tracehint.analyzer.tasks.task_table import assemble
from tracehint.analyzer.tasks.tree import (
    DRIVER,
    HELPER,
    JOB,
    Bools,
    Grouping,
    Ints,
    Tree,
    Units,
    build_tree,
    jump,
    unit_of_epochs,
)
from tracehint.analyzer.tasks.walk import Walk, contained_engines, find_captured, join_pipes
from tracehint.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


# Overrides of the segmentation by the user (--split, --whole), and advice about them.


@dataclass(frozen=True)
class ChosenCuts:
    """Per epoch: on the path to a program to be cut (split); a program to stay one task (whole)."""

    split: Bools
    whole: Bools


def choose_cuts(processes: pa.Table, tree: Tree, classes: Classes, options: Options) -> ChosenCuts:
    """Return the epochs that `options.split` and `options.whole` select.

    A name is the program or script that a process runs, or the type of a task. Raises InputError
    for a name that does not occur in the run, or that is in both options.
    """
    none = np.zeros(len(tree.proc), bool)
    if not options.split and not options.whole:
        return ChosenCuts(none, none)
    both = sorted({*options.split} & {*options.whole})
    if both:
        raise InputError(
            f"{both[0]}: cannot be both split and whole", "Remove one of the two options."
        )
    types = _types(processes)
    split = none.copy()
    for name in options.split:
        split |= _add_ancestors(tree, _epochs_of_program(name, "split", types, classes))
    whole = none.copy()
    for name in options.whole:
        whole |= _epochs_of_program(name, "whole", types, classes)
    return ChosenCuts(split, whole)


def _epochs_of_program(name: str, option: str, types: pa.Array, classes: Classes) -> Bools:
    """Return the epochs of this program or type. Raises InputError if there are none."""
    import pyarrow.compute as pc

    of_type = pc.equal(types, name).to_numpy(zero_copy_only=False)
    program = np.array([c.program == name for c in classes.commands], bool)[classes.of]
    found = np.asarray((of_type | program) & ~classes.kind_is("fork"), bool)
    if not found.any():
        raise InputError(
            f"--{option} {name}: the run has no program or task type of that name",
            "Give a program or script without its directory, as `tracehint analyze` prints types.",
        )
    return found


def _types(processes: pa.Table) -> pa.Array:
    """Return the type that a task starting with each epoch would have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    argv = processes.column("argv").combine_chunks()
    columns, easy = plain_descriptions(argv)
    rest = pa.array(~easy)
    texts = [describe(words or ()).type for words in argv.filter(rest).to_pylist()]
    return pc.replace_with_mask(columns["type"], rest, pa.array(texts, pa.string()))


def _add_ancestors(tree: Tree, found: Bools) -> Bools:
    """Return these epochs, all above them, and the earlier ones of the same processes."""
    result = found.copy()
    at: Ints = np.flatnonzero(found)
    for _ in range(len(found)):
        above = tree.up[at]
        at = np.unique(above[above >= 0])
        at = at[~result[at]]
        if not len(at):
            break
        result[at] = True
    # a process is represented by its first epoch
    result[tree.head[np.flatnonzero(result)]] = True
    return result


ADVICE_SHARE = 0.9  # of the run's bytes: minimum of a task for advice
_MIN_PROGRAMS = 2  # minimum number of programs with data that it started


def advise_segmentation(
    tree: Tree,
    classes: Classes,
    units: Units,
    unit_of: Ints,
    group: Ints,
    activity: Activity,
    whole: Bools,
    has_ranks: bool,
) -> tuple[str, ...]:
    """Return at most one note: about the task that did nearly all I/O and started programs."""
    n, total = len(units), int(activity.moved.sum())
    if not activity.known or not total:
        return ()
    per_task = np.bincount(group[unit_of], activity.moved, n)
    main = int(per_task.argmax())
    engine = ENGINES[int(units.engine[main])]
    asked = engine.rank in (RUNNER, WORKFLOW)  # the engine defines its tasks
    if units.role[main] != JOB or asked or per_task[main] < ADVICE_SHARE * total:
        return ()
    found = _find_starter(tree, classes, group[unit_of] == main, activity, whole)
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


def _find_starter(
    tree: Tree, classes: Classes, inside: Bools, activity: Activity, whole: Bools
) -> tuple[Command, int] | None:
    """Return the program in these epochs that started the most programs with data, and their
    number; None: fewer than the minimum, or it only started its own parts."""
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
    if count[best] < _MIN_PROGRAMS or drives_nothing(command.program):
        return None
    return command, int(count[best])


_MAX_DESCENTS = 64


def segment_tasks(bundle: Bundle, options: Options | None = None) -> Segmentation:
    """Return the tasks of a run; each process epoch has one, engine processes have their own.

    A bundle without processes yields the tasks that its engine declares. Raises InputError if
    `options.split` or `.whole` contain a name that does not occur in the run.
    """
    processes = bundle.tables["processes"]
    options = options or Options()
    if not processes.num_rows:
        return declared_only(bundle)
    tree = build_tree(processes)
    classes = classify(processes)
    activity = activity_of(bundle, tree.proc)
    give_back()
    chosen = choose_cuts(processes, tree, classes, options)
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
    advice = advise_segmentation(
        tree, classes, units, unit_of, group, activity, chosen.whole, has_ranks(processes)
    )
    return replace(segmented, notes=advice)


def _walk(
    tree: Tree, classes: Classes, activity: Activity, chosen: ChosenCuts
) -> tuple[Units, Ints, Ints]:
    """Return the units, the unit of each epoch, and per unit the unit that represents its task."""
    search = Search(chosen.split.copy(), np.zeros(len(tree.proc), bool))
    searching = True
    for _ in range(_MAX_DESCENTS):
        walk = Walk(tree, classes, activity.used, search.promoted, chosen.whole)
        units = walk.run()
        unit_of = _add_lost_epochs(tree, units, unit_of_epochs(tree, walk.owner), walk.owner)
        group = _assign_helpers(classes, units, unit_of, activity)
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


def _assign_helpers(classes: Classes, units: Units, unit_of: Ints, activity: Activity) -> Ints:
    """Turn units that only assist into helpers; return the first unit of each unit's pipeline."""
    wrote = _per_unit(units, unit_of, activity.wrote)
    used = _per_unit(units, unit_of, activity.used)
    execs = _per_unit(units, unit_of, ~classes.kind_is("fork"))
    units.role[find_captured(units, unit_of, activity.pipe_writes, activity.pipe_reads, wrote)] = (
        HELPER
    )
    # children of an unknown program that use no data are part of it (uname, kill)
    aside = (units.engine == PROGRAM_CODE) & ~used & activity.known
    units.role[aside & (units.role == JOB) & (units.driver >= 0)] = HELPER
    # `sh -c "sbatch ..."`: the job runs elsewhere
    submits = _per_unit(units, unit_of, classes.kind_is("submitter"))
    submits &= ~_per_unit(units, unit_of, classes.kind_is("program", "launcher"))
    units.role[submits & (units.role == JOB) & (units.driver >= 0)] = HELPER
    makes = _per_unit(units, unit_of, activity.makes)
    group = join_pipes(units, unit_of, activity.pipe_writes, activity.pipe_reads, makes)
    # a subshell that runs no program, uses no data and feeds no job that does (`... | while
    # read line; do echo; done | sort`) is part of the script
    idle = units.subshell & ~execs & ~used & (units.driver >= 0) & (units.role == JOB)
    working = np.zeros(len(units), bool)
    working[group[(units.role == JOB) & ~idle]] = True
    units.role[idle & ~working[group]] = HELPER
    return group


def _add_lost_epochs(tree: Tree, units: Units, unit_of: Ints, owner: Ints) -> Ints:
    """Add a job per process for epochs that the walk missed (cycles in a damaged bundle)."""
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
    """Make each root that drives nothing one task, with everything that it started, in place.

    That is a shell or wrapper without jobs, or an unknown program whose children use no data or
    that did the work `alone`. An unknown program that drives others and writes data itself becomes
    an additional task.
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
        | (shell & _execs_itself(tree, units, top))
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


def _execs_itself(tree: Tree, units: Units, top: Ints) -> Bools:
    """Return the roots whose only unit is the program that they exec (`sh -c "sort x"`)."""
    count = np.bincount(top, minlength=len(units))
    result = np.zeros(len(units), bool)
    inner = np.flatnonzero((units.driver >= 0) & (tree.prev[units.head] >= 0))
    inner = inner[(count[top[inner]] == 2) & (units.role[inner] == JOB)]
    result[top[inner]] = True
    return result


def _engine_groups(units: Units, group: Ints) -> Bools:
    """Return per unit whether its task is an engine process."""
    return np.asarray(units.role[group] != JOB, bool)
