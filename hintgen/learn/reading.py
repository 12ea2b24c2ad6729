"""How the readers of a file read it: again and again, in small pieces, at known times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, ints, lookup, order_by, starts_of
from tracehint.analyzer.columns import column, floats
from tracehint.hintgen.users import Side

MANY_PIECES = 16  # of a file, more than a reader in order has
SMALL = 65536  # bytes of a piece


def reread(read: Side, wanted: Ints) -> pa.Array:
    """Median of (bytes moved / distinct bytes) of each file's readers; null: not known."""
    moved, unique = (column(read.table, name)[read.row] for name in ("bytes", "unique_bytes"))
    some = (unique > 0) & (moved >= 0)
    files, value = medians(read.file[some], moved[some] / unique[some])
    at = lookup(files, np.arange(len(files)), wanted)
    return pa.array(value).take(pa.array(at, mask=at < 0))


def untimed(read: Side, wanted: Ints) -> Bools:
    """Whether no reader of each file has a time; false where it has no readers."""
    timed = ~np.isnan(floats(read.table, "first_s")[read.row])
    return np.isin(wanted, read.file) & ~np.isin(wanted, read.file[timed])


def random(read: Side, wanted: Ints) -> Bools:
    """Whether each file is read in many small pieces."""
    lengths = pc.fill_null(pc.list_value_length(read.table["ranges"]), 0)
    pieces = ints(lengths.to_numpy())[read.row]
    chosen = np.isin(read.file, read.file[pieces > MANY_PIECES])
    if not chosen.any():
        return np.zeros(len(wanted), bool)
    files, most = _largest(read.file[chosen], pieces[chosen])
    unique = column(read.table, "unique_bytes")[read.row]
    known = chosen & (unique >= 0)
    of, size = medians(read.file[known], unique[known])
    small = size / most[np.searchsorted(files, of)] < SMALL
    return np.isin(wanted, of[small])


def _largest(group: Ints, value: Ints) -> tuple[Ints, Ints]:
    order = order_by(group)
    first = starts_of(group[order])
    return group[order][first], np.maximum.reduceat(value[order], first)


def medians(group: Ints, value: np.ndarray) -> tuple[Ints, np.ndarray]:
    """(sorted groups, median of each: the mean of the middle two of an even number)."""
    if not len(group):
        return ints([]), np.zeros(0)
    order = order_by(group)
    group, value = group[order], np.asarray(value, np.float64)[order]
    first = starts_of(group)
    low, high = (side.reduceat(value, first) for side in (np.minimum, np.maximum))
    varied = np.repeat(low != high, np.diff(np.append(first, len(group))))
    if varied.any():  # sorted only where they differ: mostly nowhere
        value[varied] = value[varied][np.lexsort((value[varied], group[varied]))]
        end = np.append(first[1:], len(group))
        low, high = value[(first + end - 1) // 2], value[(first + end) // 2]
    return group[first], low * 0.5 + high * 0.5
