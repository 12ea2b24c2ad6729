"""Which type of task reads a file last, whatever the timing.

That is known where all readers are of one type, or where the reader that was last depends,
through the files of the run, on every reader of another type. Readers that know nothing of each
other end in any order: there is no last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, Shorts, ints, order_by, starts_of
from tracehint.analyzer.columns import column, floats
from tracehint.hintgen.reach import Reach
from tracehint.hintgen.users import Side, Users

if TYPE_CHECKING:
    import pyarrow as pa


def last_readers(users: Users, edges: pa.Table) -> tuple[Ints, Ints]:
    """(sorted files, the number in `users.kinds` of the type that reads each last).

    Files without a certain last reader are not among them. Pairs that a graph is too large to
    order count as independent.
    """
    read = users.whole
    order = order_by(read.file)
    file, kind = read.file[order], read.kind[order]
    first = starts_of(file)
    if not len(first):
        return file, ints(kind)
    files, last = file[first], np.minimum.reduceat(kind, first)
    certain = last == np.maximum.reduceat(kind, first)
    several, what = _of_several(read.where(~np.isin(read.file, files[certain])), edges)
    place = np.searchsorted(files, several)
    certain[place], last[place] = True, what
    return files[certain], ints(last[certain])


def _of_several(read: Side, edges: pa.Table) -> tuple[Ints, Shorts]:
    """The same of files with readers of several types."""
    order = _by_time(read)
    file, task, kind = read.file[order], read.task[order], read.kind[order]
    first = starts_of(file)
    count = np.diff(np.append(first, len(file)))
    last = first + count - 1
    files, who, what = file[last], np.repeat(task[last], count), np.repeat(kind[last], count)
    other = kind != what
    free = _unordered(task[other], who[other], edges)
    certain = ~np.isin(files, file[other][free])
    return files[certain], kind[last][certain]


def _by_time(read: Side) -> Ints:
    """Positions that sort readers by file, then by when they ended."""
    ended = floats(read.table, "last_s")[read.row]
    when = np.unique(np.where(np.isnan(ended), -1.0, ended), return_inverse=True)[1]
    return order_by(read.file, when, read.task)


def _unordered(before: Ints, after: Ints, edges: pa.Table) -> Bools:
    """Which pairs of tasks the graph does not order, as far as is known."""
    if not len(before):
        return np.zeros(0, bool)
    producer, consumer = column(edges, "producer"), column(edges, "consumer")
    order = order_by(producer, consumer)
    links = order[starts_of(producer[order], consumer[order])]
    unordered, unknown = Reach(producer[links], consumer[links]).split(before, after)
    return unordered | unknown
