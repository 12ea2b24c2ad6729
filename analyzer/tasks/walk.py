"""Walk down the process tree from its roots, to identify engines and their jobs.

It visits engine processes only, level by level; everything below a job belongs to the job.
`owner` marks the first epochs of units; other epochs inherit it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.engine_processes import (
    BUILDER,
    ENGINES,
    PLUMBING_CODE,
    POOLS,
    PROGRAM_CODE,
    RUNNER,
    SHELL_CODE,
    WORKFLOW,
    Command,
    carries,
    drives_nothing,
    may_cut,
)
from tracehint.analyzer.tasks.tree import (
    DRIVER,
    HELPER,
    JOB,
    Batches,
    Bools,
    Ints,
    Tree,
    Units,
    jump,
)

_MAX_LEVELS = 100_000
# [outer, inner]: may be cut further
MAY_CUT = np.array([[may_cut(outer, inner) for inner in ENGINES] for outer in ENGINES])


@dataclass
class Frontier:
    """Driver epochs of one level: the engine they act as (ctx), and the one that limits cuts."""

    epoch: Ints
    ctx: Ints
    limit: Ints
    unit: Ints
    takes_next: Bools  # a program that it execs in its own place is a job too


def contained_engines(tree: Tree, classes: Classes) -> Ints:
    """Return per epoch bits of the engines in it or below it, through shells and wrappers.

    Workflow engines and make are also found through nested scripts; xargs and parallel only
    through `sh -c`, subshells and wrappers, where they belong to the outer script itself.
    """
    inline = classes.kind_is("fork", "inline", "wrapper")
    shells = inline | classes.kind_is("script")
    return _bits_below(tree, classes, inline, (RUNNER,)) | _bits_below(
        tree, classes, shells, (BUILDER, WORKFLOW)
    )


def engines_beyond(tree: Tree, classes: Classes) -> Ints:
    """Return per epoch bits of the workflow engines below it, through any program that may drive: a
    launcher in Python, a container. (A program that runs make or xargs does so for itself.)"""
    drives = ~evaluate_commands(classes, lambda c: drives_nothing(c.program) and not carries(c))
    return _bits_below(tree, classes, drives, (WORKFLOW,))


def _bits_below(tree: Tree, classes: Classes, through: Bools, ranks: tuple[int, ...]) -> Ints:
    """Return per epoch bits of the engines of these ranks in it or below, via `through` only."""
    up, code = tree.up, classes.engine_of
    found = np.zeros(len(up), np.int64)
    wanted = [i for i, e in enumerate(ENGINES) if e.rank in ranks]
    at = np.flatnonzero(np.isin(code, wanted))
    bits = np.left_shift(np.int64(1), code[at])
    for _ in range(64):
        if not len(at):
            break
        np.bitwise_or.at(found, at, bits)
        above = up[at]
        go_on = (above >= 0) & through[above]
        at, bits = above[go_on], bits[go_on]
        np.bitwise_or.at(found, at, bits)
        if len(at):
            at, bits = np.unique(np.stack((at, bits)), axis=1)
    return found


def execs_only(tree: Tree, classes: Classes, used: Bools) -> Bools:
    """Return epochs of unknown programs that only execed another one in their place: launchers,
    and scripts that begin with `#!/usr/bin/env python3`, as strace records them."""
    childless = tree.kid_start[1:] == tree.kid_start[:-1]
    unknown = (classes.engine_of < 0) & classes.kind_is("program", "launcher")
    return np.asarray(unknown & (tree.next >= 0) & childless & ~used, bool)


def evaluate_commands(classes: Classes, answer: Callable[[Command], bool]) -> Bools:
    """Return `answer` for the command of each epoch, evaluated once per distinct command."""
    return np.array([answer(c) for c in classes.commands], bool)[classes.of]


class Walk:
    """One walk over a tree. `used`: epochs that used data; `promoted`: those whose shell or program
    is to be cut as a driver; `whole`: those that are never cut."""

    def __init__(
        self, tree: Tree, classes: Classes, used: Bools, promoted: Bools, whole: Bools
    ) -> None:
        self.tree, self.classes, self.promoted, self.whole = tree, classes, promoted, whole
        self.owner = np.full(len(tree.proc), -1, np.int64)
        self.out = Batches()
        through = classes.kind_is("fork", "wrapper") | execs_only(tree, classes, used)
        self.decisive = jump(tree.next, ~through | (tree.next < 0))
        self.contains = contained_engines(tree, classes)
        self.beyond = engines_beyond(tree, classes)
        self.runs = classes.kind_is("program", "launcher")
        self.bits = np.array(
            [sum(1 << i for i in np.flatnonzero(row)) for row in MAY_CUT], np.int64
        )

    def run(self) -> Units:
        """Walk from every root and return the units to which `owner` refers."""
        frontier = self._roots()
        for _ in range(_MAX_LEVELS):
            if not len(frontier.epoch):
                break
            frontier = self._level(frontier)
        return self.out.units()

    def _roots(self) -> Frontier:
        tree, classes = self.tree, self.classes
        head = np.flatnonzero((tree.prev < 0) & (tree.parent < 0))
        at = self.decisive[head]
        code = classes.engine_of[at]
        code = np.where(classes.kind_is("fork")[at], -1, code)
        driver = (code >= 0) & ~(tree.orphan[head] & (code == SHELL_CODE))
        falls_back = (code < 0) & classes.kind_is("program")[at] & ~tree.orphan[head]
        falls_back &= ~self._not_driver(at) & (tree.kid_start[at + 1] > tree.kid_start[at])
        chosen = self.promoted[head] | (self.beyond[at] != 0)
        falls_back |= (code < 0) & self.runs[at] & chosen
        code = np.where(falls_back, PROGRAM_CODE, code)
        driver = (driver | falls_back) & ~self.whole[at]
        role = np.where(driver, DRIVER, JOB)
        none = np.full(len(head), -1, np.int64)
        units = self.out.add(
            head, role, np.where(driver, code, SHELL_CODE), none, np.zeros(len(head), bool), at
        )
        self.owner[head] = units
        return self._drivers(
            head[driver], at[driver], code[driver], code[driver], units[driver], code[driver]
        )

    def _not_driver(self, at: Ints) -> Bools:
        return evaluate_commands(self.classes, lambda c: drives_nothing(c.program))[at]

    def _drivers(
        self, head: Ints, at: Ints, ctx: Ints, limit: Ints, unit: Ints, outer: Ints
    ) -> Frontier:
        """Return frontier entries of driver units: the engine's epoch, and earlier epochs of its
        process (a subshell that runs commands and then execs make), which act as `outer`."""
        epochs, ctxs, limits, unit_ids = [at], [ctx], [limit], [unit]
        step, rest = head, np.arange(len(head))
        for _ in range(64):
            before = step != at[rest]
            step, rest = step[before], rest[before]
            if not len(step):
                break
            epochs.append(step)
            ctxs.append(outer[rest])
            limits.append(limit[rest])
            unit_ids.append(unit[rest])
            step = self.tree.next[step]
            alive = step >= 0
            step, rest = step[alive], rest[alive]
        epoch = np.concatenate(epochs)
        return Frontier(
            epoch,
            np.concatenate(ctxs),
            np.concatenate(limits),
            np.concatenate(unit_ids),
            np.arange(len(epoch)) < len(at),
        )

    def _level(self, now: Frontier) -> Frontier:
        tree, classes = self.tree, self.classes
        kids, by = tree.kids(now.epoch)
        following = tree.next[now.epoch]
        more = np.flatnonzero((following >= 0) & now.takes_next)
        head = np.concatenate((kids, following[more]))
        by = np.concatenate((by, more))
        fresh = self.owner[head] < 0
        head, by = head[fresh], by[fresh]
        at = self.decisive[head]
        ctx, limit = now.ctx[by], now.limit[by]
        code, copy = classes.engine_of[at], classes.kind_is("fork")[at]
        engine = (code > PLUMBING_CODE) & MAY_CUT[limit, np.maximum(code, 0)]
        can_hold = classes.kind_is("fork", "wrapper", "inline", "script")[at]
        held = (self.contains[head] | self.contains[at]) & self.bits[limit]
        beyond = (self.beyond[head] | self.beyond[at]) & self.bits[limit] != 0
        copies_are_jobs = np.array([e.copies_are_jobs for e in ENGINES])[ctx]
        own_copy = copy & ~copies_are_jobs
        chosen = (beyond | self.promoted[head]) & ~own_copy
        cut = ~engine & ~self.whole[at]
        shell = can_hold & cut & ((held != 0) | chosen)
        program = self.runs[at] & cut & chosen
        worker = own_copy & ~shell
        engine &= ~self.whole[at]
        driver = engine | shell | program | worker
        job = ~driver & (copy | self._is_job(ctx, classes.of[at]))
        role = np.select([driver, job], [DRIVER, JOB], HELPER)
        kinds = [engine, shell & (held & POOLS != 0), shell, program]
        own = np.select(kinds, [code, PLUMBING_CODE, SHELL_CODE, PROGRAM_CODE], ctx)
        # a subshell, even if it execs its last command
        begins = classes.kind_is("fork")[head] & (tree.kid_start[head + 1] > tree.kid_start[head])
        subshell = job & copies_are_jobs & (copy | begins)
        unit = self.out.add(head, role, own, now.unit[by], subshell, at)
        self.owner[head] = unit
        inner_limit = np.where(engine, code, limit)
        d = driver
        same = worker | np.isin(own, (PLUMBING_CODE, PROGRAM_CODE))
        outer = np.where(same, own, SHELL_CODE)
        return self._drivers(head[d], at[d], own[d], inner_limit[d], unit[d], outer[d])

    def _is_job(self, ctx: Ints, command: Ints) -> Bools:
        """Return whether each command is a job of its engine, evaluated once per distinct pair."""
        pairs = ctx * len(self.classes.commands) + command
        distinct, back = np.unique(pairs, return_inverse=True)
        answers = np.empty(len(distinct), bool)
        for i, pair in enumerate(distinct.tolist()):
            engine, which = divmod(pair, len(self.classes.commands))
            answers[i] = ENGINES[engine].is_job(self.classes.commands[which])
        return np.asarray(answers[back.reshape(-1)], bool)


_PAIRED = np.array([e.pipes for e in ENGINES])
_IS_RUNNER = np.array([e.rank == RUNNER for e in ENGINES])


def _runners_that_print(units: Units, makes: Bools) -> tuple[Bools, Ints]:
    """Return per unit whether it is an xargs or parallel of a script whose jobs created no files,
    and the runner of this kind that each unit belongs to, else the unit itself.

    The output of its jobs may pass through a pipe: `xargs -n1 grep x | sort > out` is one command
    like any pipeline. `makes`: units that opened files for writing; the jobs of parallel do not
    open the files in which it stores their output.
    """
    inside, driver = units.driver >= 0, units.role == DRIVER
    runner = inside & driver & _IS_RUNNER[units.engine]
    copy = runner & (units.engine == units.engine[units.driver])  # forked, no program yet
    above = jump(np.where(copy, units.driver, -1))[units.driver]
    prints = runner & ~copy
    prints[above[inside & ((driver & ~copy) | (makes & (units.role == JOB)))]] = False
    return prints, np.where(inside & prints[above], above, np.arange(len(units)))


def join_pipes(
    units: Units, unit_of: Ints, writes: tuple[Ints, Ints], reads: tuple[Ints, Ints], makes: Bools
) -> Ints:
    """Return the first unit of each unit's pipeline (itself if it is in none).

    A pipe joins its only writing and its only reading job of the same script. A pipe that several
    jobs write (the log of `exec > >(tee log)`), or the script itself, joins nothing. An xargs or
    parallel that only prints counts as one job with everything that it started, and becomes one if
    its output goes to a pipe. `makes`: units that opened files for writing.
    """
    own = np.arange(len(units))
    prints, whole = _runners_that_print(units, makes)
    writer, reader = _sole_user(whole[unit_of], writes), _sole_user(whole[unit_of], reads)
    common = np.intersect1d(writer[0], reader[0], return_indices=True)
    a, b = writer[1][common[1]], reader[1][common[2]]
    job = (units.role == JOB) | prints
    may = (a != b) & job[a] & job[b]
    may &= (units.driver[a] == units.driver[b]) & (units.driver[a] >= 0)
    may &= _PAIRED[units.engine[np.where(prints, units.driver, own)]][a]
    may &= ~(prints[a] & prints[b])  # the input of xargs is arguments
    goes_on = np.isin(own, a[may]) & prints
    may &= ~prints[b] | goes_on[b]  # `ls | xargs -n1 job` without a following pipe: jobs
    units.role[goes_on] = JOB
    group = label_components(len(units), a[may], b[may])
    return np.where(goes_on[whole], group[whole], group)


def _sole_user(unit_of: Ints, pairs: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Return (pipes, units) of the pipes that exactly one unit uses in this direction."""
    unit = unit_of[pairs[0]]
    known = unit >= 0
    both = np.unique(np.stack((pairs[1][known], unit[known])), axis=1)
    pipes, first, count = np.unique(both[0], return_index=True, return_counts=True)
    return pipes[count == 1], both[1][first[count == 1]]


def label_components(n: int, a: Ints, b: Ints) -> Ints:
    """Return the smallest member of each of n items' connected component; edges a[i]-b[i]."""
    label = np.arange(n)
    if not len(a):
        return label
    for _ in range(n):
        low = np.minimum(label[a], label[b])
        new = label.copy()
        np.minimum.at(new, a, low)
        np.minimum.at(new, b, low)
        new = new[new]
        if np.array_equal(new, label):
            break
        label = new
    return label


def find_captured(
    units: Units, unit_of: Ints, writes: tuple[Ints, Ints], reads: tuple[Ints, Ints], wrote: Bools
) -> Bools:
    """Return units whose output the engine above reads through a pipe, and that wrote no file:
    helpers such as make's `$(shell ...)`. Only for engines with `captures`."""
    result = np.zeros(len(units), bool)
    captures = np.array([e.captures for e in ENGINES])
    reader = np.unique(np.stack((reads[1], unit_of[reads[0]])), axis=1)
    unit = unit_of[writes[0]]
    above = units.driver[unit]
    keys = set(map(tuple, reader.T.tolist()))
    candidate = (unit >= 0) & captures[units.engine[unit]] & ~wrote[unit] & (above >= 0)
    for pipe, u, driver in zip(
        writes[1][candidate].tolist(),
        unit[candidate].tolist(),
        above[candidate].tolist(),
        strict=True,
    ):
        result[u] |= (pipe, driver) in keys
    return np.asarray(result & (units.role == JOB), bool)
