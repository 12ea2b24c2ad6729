"""When tasks can have run of which only the runtime and the order are known."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]
UNKNOWN = -1
_LAST = 2**63 - 1


def place(parent: Ints, child: Ints, start: Ints, length: Ints, origin: int) -> tuple[Ints, Ints]:
    """(start, end) of each task in ns, UNKNOWN where neither is given nor follows.

    parent, child: pairs of task numbers. start, length: ns, UNKNOWN where they are not known.
    A task whose start is not known begins when the last of its parents has ended, the first ones
    at `origin`: no real start can be earlier, if the runtimes are right. Tasks of a cycle are not
    placed. Time is linear in tasks and pairs.
    """
    count = len(start)
    order = np.argsort(parent, kind="stable")
    below = _numbers(child[order])
    first = _numbers(np.searchsorted(parent[order], np.arange(count + 1)))
    waiting = _numbers(np.bincount(child, minlength=count))
    ready, ends = _numbers(np.full(count, origin)), _numbers(np.full(count, UNKNOWN))
    starts, lengths = _numbers(start), _numbers(length)
    todo = array("q", [task for task in range(count) if not waiting[task]])
    while todo:
        task = todo.pop()
        begin = starts[task]
        if begin == UNKNOWN and lengths[task] != UNKNOWN:
            begin = starts[task] = ready[task]
        end = ready[task] if begin == UNKNOWN else min(begin + max(0, lengths[task]), _LAST)
        if lengths[task] != UNKNOWN:
            ends[task] = end
        for at in range(first[task], first[task + 1]):
            other = below[at]
            if ready[other] < end:
                ready[other] = end
            waiting[other] -= 1
            if not waiting[other]:
                todo.append(other)
    return np.frombuffer(starts, np.int64), np.frombuffer(ends, np.int64)


def _numbers(values: Ints) -> array[int]:
    """Indexed one by one, an array is faster than numpy's and smaller than a list."""
    found = array("q")
    found.frombytes(values.astype(np.int64).tobytes())
    return found
