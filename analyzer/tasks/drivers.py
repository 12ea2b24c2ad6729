"""Search for the driver behind wrappers, where one task contains the whole run.

The rules of the search, and which drivers on trial are kept: docs/reference/tasks.md,
"A whole workflow behind one command".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct
from tracehint.analyzer.tasks.activity import Activity
from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.engine_processes import (
    MAKE_CODE,
    PROGRAM_CODE,
    SHELL_CODE,
    carries,
    drives_nothing,
)
from tracehint.analyzer.tasks.tree import DRIVER, JOB, Units
from tracehint.analyzer.tasks.walk import evaluate_commands

# Share of a run's bytes above which a task is nearly the whole run.
NEARLY_ALL = 0.99
# Share of the bytes above which a program that moved them itself drives nothing.
MAX_OWN_SHARE = 0.9
_DEPTH = 64
_PLAIN = (SHELL_CODE, PROGRAM_CODE, MAKE_CODE)


@dataclass
class Traits:
    """Properties of the units of one walk, one entry per unit.

    works: wrote data, or no data accesses are recorded; moved: bytes of data of the unit alone;
    programs: number of programs in it; users: number of those that used data; worker: a forked
    copy of the program above it; leader: itself, for a worker the unit of which it is a copy.
    """

    works: Bools
    moved: Ints
    programs: Ints
    users: Ints
    shell: Bools
    script: Bools
    runs: Bools
    carries: Bools
    never: Bools
    worker: Bools
    leader: Ints


def facts_of(
    classes: Classes, units: Units, unit_of: Ints, activity: Activity, whole: Bools
) -> Traits:
    """Return the traits of the units."""
    n, at = len(units), units.engine_epoch
    wrote = np.zeros(n, bool)
    wrote[unit_of[activity.wrote]] = True
    program = classes.kind_is("program", "launcher")
    used = program & (activity.used | (not activity.known))
    shells = classes.kind_is("fork", "inline", "script", "wrapper")
    worker = (units.role == DRIVER) & (units.driver >= 0) & classes.kind_is("fork")[at]
    worker &= units.engine == PROGRAM_CODE
    leader = np.arange(n)
    for _ in range(_DEPTH):
        inner = worker[leader]
        if not inner.any():
            break
        leader = np.where(inner, units.driver[leader], leader)
    never = evaluate_commands(classes, lambda c: drives_nothing(c.program) and not carries(c))
    return Traits(
        works=wrote | (not activity.known),
        moved=np.bincount(unit_of, activity.moved, n),
        programs=np.bincount(unit_of[~shells], minlength=n),
        users=np.bincount(unit_of[used], minlength=n),
        shell=shells[at],
        script=classes.kind_is("script")[at],
        runs=program[at],
        carries=evaluate_commands(classes, carries)[at],
        never=never[at] | whole[at],
        worker=worker,
        leader=leader,
    )


@dataclass
class Search:
    """Epochs that are cut as drivers: the confirmed ones, and those on trial."""

    sure: Bools
    on_trial: Bools

    @property
    def promoted(self) -> Bools:
        """All epochs that are cut as drivers."""
        return np.asarray(self.sure | self.on_trial, bool)


def go_down(search: Search, units: Units, group: Ints, facts: Traits) -> bool:
    """Search one step further down where one task is (nearly) the whole run; False if nowhere.

    A shell that runs several programs is cut (`main | tee log`, `sh -c "sh workflow.sh"`). A
    program, and anything below make, is cut on trial.
    """
    at = _roots(units, facts)
    careful = units.engine == MAKE_CODE  # per unit: below make, for visited units
    little = (1 - NEARLY_ALL) * facts.moved.sum()
    candidates = [at[units.role[at] == JOB]]
    for _ in range(_DEPTH):
        if not len(at):
            break
        jobs, inner = _units_below(at, units, facts)
        candidates.append(_sole_jobs(jobs, inner, units, group, facts))
        jobs = jobs[facts.works[jobs]]
        above = _drivers_above(jobs, units, facts)
        busy = above[np.bincount(above, facts.moved[jobs], len(units))[above] >= little]
        above = _drivers_above(inner, units, facts)
        drivers, count = np.unique(above, return_counts=True)
        lone = np.isin(above, np.setdiff1d(drivers[count == 1], busy))
        at = inner[lone | search.promoted[units.head[inner]]]
        at = at[np.isin(units.engine[at], _PLAIN)]
        careful[at] |= careful[_drivers_above(at, units, facts)]
        careful[candidates[-1]] = careful[_drivers_above(candidates[-1], units, facts)]
    return _promote(search, np.concatenate(candidates), units, facts, careful)


def _roots(units: Units, facts: Traits) -> Ints:
    """Return the units at which the search starts: roots that drive, or would if they were cut."""
    root = (units.driver < 0) & np.isin(units.engine, _PLAIN)
    return np.flatnonzero(root & ((units.role == DRIVER) | (facts.carries & ~facts.never)))


def _drivers_above(of: Ints, units: Units, facts: Traits) -> Ints:
    """Return the driver above each unit, or the leader of that driver; a root: the unit itself."""
    above = units.driver[of]
    return np.where(above >= 0, facts.leader[np.maximum(above, 0)], of)


def _units_below(at: Ints, units: Units, facts: Traits) -> tuple[Ints, Ints]:
    """Return the jobs and the drivers directly below these drivers."""
    child = (units.driver >= 0) & ~facts.worker
    child[child] = np.isin(_drivers_above(np.flatnonzero(child), units, facts), at)
    return np.flatnonzero(child & (units.role == JOB)), np.flatnonzero(
        child & (units.role == DRIVER)
    )


def _sole_jobs(jobs: Ints, inner: Ints, units: Units, group: Ints, facts: Traits) -> Ints:
    """Return the jobs of tasks that alone wrote data below their driver, or moved nearly all bytes
    there while fewer other tasks wrote than it has users of data (not for lines of make)."""
    parent = _drivers_above(jobs, units, facts)
    pairs, of = np.unique(parent * len(units) + group[jobs], return_inverse=True)
    driver, n = pairs // max(1, len(units)), len(units)
    works = np.bincount(of, facts.works[jobs], len(pairs)) > 0
    moved = np.bincount(of, facts.moved[jobs], len(pairs))
    users = np.bincount(of, facts.users[jobs], len(pairs))
    others = np.bincount(driver, works, n)[driver] - works
    nearly = moved >= NEARLY_ALL * np.bincount(driver, moved, n)[driver]
    nearly &= (moved > 0) & (others < users) & (units.engine[driver] != MAKE_CODE)
    sole = works & ((others == 0) | nearly) & ~np.isin(driver, _drivers_above(inner, units, facts))
    return np.asarray(jobs[sole[of]], np.int64)


def _promote(search: Search, candidates: Ints, units: Units, facts: Traits, careful: Bools) -> bool:
    """Cut the units that run other programs; return whether any of them was not cut before."""
    candidates = candidates[~facts.never[candidates] & ~search.promoted[units.head[candidates]]]
    shell = candidates[facts.shell[candidates] & (facts.programs[candidates] >= 2)]
    enough = (facts.users[candidates] >= 2) | facts.carries[candidates]
    program = candidates[facts.runs[candidates] & enough]
    search.sure[units.head[shell[~careful[shell]]]] = True
    search.on_trial[units.head[shell[careful[shell]]]] = True
    search.on_trial[units.head[program]] = True
    return bool(len(shell) + len(program))


def judge(search: Search, units: Units, group: Ints, facts: Traits, made: Ints) -> bool:
    """End the trials: keep a driver with at least two tasks with data below it that did not move
    nearly all bytes itself, and the drivers above it. Return whether any was rejected."""
    n = len(units)
    tried = search.on_trial[units.head] & (units.role == DRIVER)
    tasks, inside = _trial_contents(tried, units, group, facts)
    own = np.bincount(facts.leader, made, n)
    ends = tried & (facts.runs | facts.script) & ~facts.carries
    stays = ends & (tasks >= 2) & (own <= MAX_OWN_SHARE * (own + inside))
    wanted = stays.copy()
    for _ in range(_DEPTH):
        up = units.driver[np.flatnonzero(wanted)]
        up = up[up >= 0]
        if wanted[up].all():
            break
        wanted[up] = True
    kept = np.zeros(len(search.sure), bool)
    kept[units.head[tried & wanted]] = True
    fell = bool((search.on_trial & ~kept).any())
    search.sure |= kept
    search.on_trial[:] = False
    return fell


def by_itself(units: Units, group: Ints, facts: Traits, made: Ints) -> Bools:
    """Return the unknown root programs that moved nearly all data themselves; or more than half, if
    only one task with data is below them."""
    root = (units.driver < 0) & (units.role == DRIVER) & (units.engine == PROGRAM_CODE)
    tasks, inside = _trial_contents(root, units, group, facts)
    own = np.bincount(facts.leader, made, len(units))
    share = np.where(tasks == 1, 0.5, MAX_OWN_SHARE)
    return np.asarray(root & (own > share * (own + inside)), bool)


def _trial_contents(tried: Bools, units: Units, group: Ints, facts: Traits) -> tuple[Ints, Ints]:
    """Return per driver on trial the number of tasks with data below it, and their bytes."""
    n = len(units)
    job = np.flatnonzero((units.role == JOB) & (units.driver >= 0))
    counts = (facts.users[job] > 0) | facts.works[job]
    tasks, moved = np.zeros(n, np.int64), np.zeros(n)
    up = _drivers_above(job, units, facts)
    for _ in range(_DEPTH):
        hit = tried[up]
        pairs = distinct(up[hit & counts] * n + group[job[hit & counts]])
        np.add.at(tasks, pairs // max(1, n), 1)
        np.add.at(moved, up[hit], facts.moved[job[hit]])
        on = units.driver[up] >= 0
        job, counts = job[on], counts[on]
        up = _drivers_above(up[on], units, facts)
        if not len(up):
            break
    return tasks, moved.astype(np.int64)
