"""Files that were made or emptied and got no bytes: flags, empty results."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Bools
from tracehint.analyzer.flow.model import (
    HOW_BIT,
    TRUNCATE,
    UNKNOWN,
    WRITE,
    Access,
    Found,
    Objects,
    Versions,
    Writes,
)


def add_empty(found: Found, access: Access, objects: Objects, engine: Bools) -> None:
    """Give each file without any written byte its maker as producer of none, in place.

    That is the task that created it, else the first one that emptied it; engines make nothing.
    """
    count = len(objects)
    maker = objects.maker.copy()
    cut = access.take(access.op == TRUNCATE)
    first = np.full(count, UNKNOWN, np.int64)
    order = np.argsort(-cut.first, kind="stable")
    first[cut.obj[order]] = cut.task[order]
    maker = np.where(maker == UNKNOWN, first, maker)
    filled = np.zeros(count, bool)
    filled[access.obj[access.op == WRITE]] = True
    at = np.flatnonzero((maker >= 0) & ~filled & ~objects.software)
    at = at[~engine[maker[at]]]
    zero = np.zeros(len(at), np.int64)
    nothing = Writes(
        at,
        zero,
        maker[at],
        zero,
        zero,
        zero,
        zero + HOW_BIT["open"],
        zero + UNKNOWN,
        zero + UNKNOWN,
        zero == 0,
        zero != 0,
        zero == 0,
    )
    found.writes = Writes.joined([found.writes, nothing])
    known = np.zeros(count, bool)
    known[found.versions.obj] = True
    new = at[~known[at]]
    size = np.maximum(objects.size[new], 0)
    found.versions = Versions.joined([found.versions, Versions(new, new * 0, size)])
