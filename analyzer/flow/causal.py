"""Clocks of several hosts: a byte is written before it is read."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.flow.access import is_mutation
from tracehint.analyzer.flow.model import READ, Access, Objects
from tracehint.analyzer.flow.simple import look


def after_their_writes(access: Access, objects: Objects, notes: list[str]) -> None:
    """Move reads that ended before the first write of a new file behind its writes, in place.

    Only for files made in the run that one task wrote: nothing else can have been there to
    read, so a clock is wrong. Adds a note that says how many, and by how much.
    """
    seen = look(access, len(objects))
    begin = np.full(len(objects), np.iinfo(np.int64).max)
    change = is_mutation(access.op)
    np.minimum.at(begin, access.obj[change], access.first[change])
    new = (objects.existed == 0) & (seen.low == seen.high)
    early = (access.op == READ) & new[access.obj] & (access.last < begin[access.obj])
    early &= access.task != seen.low[access.obj]
    at = np.flatnonzero(early)
    if not len(at):
        return
    worst = float((begin[access.obj[at]] - access.last[at]).max()) / 1e9
    access.first[at] = access.last[at] = seen.changed_last[access.obj[at]]
    notes.append(
        f"{len(at)} reads came before the only writer's first write by the hosts' clocks "
        f"(up to {worst:.3f} s): taken as after it"
    )
