"""Commands of one script that are joined by a pipe are one task."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.tasks.engines.registry import ENGINES
from tracehint.analyzer.tasks.tree import Bools, Ints
from tracehint.analyzer.tasks.units import JOB, Units

_PAIRED = np.array([e.pipes for e in ENGINES])


def join_pipes(
    units: Units, unit_of: Ints, writes: tuple[Ints, Ints], reads: tuple[Ints, Ints]
) -> Ints:
    """Per unit the first unit of its pipeline (itself when it is in none).

    A pipe joins its one writing and its one reading job of the same script. A pipe that several
    jobs write to (the log of `exec > >(tee log)`) joins nothing, nor does one that the script
    itself writes to.
    """
    writer, reader = _sole_user(unit_of, writes), _sole_user(unit_of, reads)
    common = np.intersect1d(writer[0], reader[0], return_indices=True)
    a, b = writer[1][common[1]], reader[1][common[2]]
    may = (a != b) & (units.role[a] == JOB) & (units.role[b] == JOB)
    may &= (units.driver[a] == units.driver[b]) & (units.driver[a] >= 0)
    may &= _PAIRED[units.engine[a]]
    return connected(len(units), a[may], b[may])


def _sole_user(unit_of: Ints, pairs: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """(pipes, units) of the pipes that exactly one unit uses in this direction."""
    unit = unit_of[pairs[0]]
    known = unit >= 0
    both = np.unique(np.stack((pairs[1][known], unit[known])), axis=1)
    pipes, first, count = np.unique(both[0], return_index=True, return_counts=True)
    return pipes[count == 1], both[1][first[count == 1]]


def connected(n: int, a: Ints, b: Ints) -> Ints:
    """The smallest member of each of n items' connected component; edges a[i]-b[i]."""
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


def captured(
    units: Units, unit_of: Ints, writes: tuple[Ints, Ints], reads: tuple[Ints, Ints], wrote: Bools
) -> Bools:
    """Units whose output the engine above reads through a pipe, and that wrote no file: helpers
    such as make's `$(shell ...)`. Only for engines that say so."""
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
