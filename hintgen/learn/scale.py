"""Number of readers of a file, estimated from the number of files that its readers write.

Tasks that read a shared table usually write a file of their own, so the file names of the next run
determine how many tasks read the table there, even if undeclared. Each task that reads a file of
the set S counts for one shape O of which it writes exactly one file. Then

    readers of one file of S = sum over the O: reads / files of O here * files of O there
                               / files of S there
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, ints, order_by, rank_values, spread, starts_of
from tracehint.hintgen.learn.candidates import template_of_shape

MAX_TERMS = 32
MAX_READS = 2_000_000  # limit of reads of shared files; larger runs are not counted

Term = tuple[str, float, float]  # template of O, reads per file of O, reads per file of S here


@dataclass(frozen=True)
class Scales:
    """Counts of a run: S -> its files, and S -> O (None: no such shape) -> (reads, files of O)."""

    files: dict[bytes, int]
    reads: dict[bytes, dict[bytes | None, tuple[int, int]]]

    def terms(self, shapes: Collection[bytes]) -> tuple[Term, ...]:
        """Return the terms of the sum for the files of these shapes; empty if unknown."""
        own = sum(self.files.get(shape, 0) for shape in shapes)
        reads: dict[bytes | None, int] = defaultdict(int)
        files: dict[bytes | None, int] = {}
        for shape in shapes:
            for other, (count, total) in self.reads.get(shape, {}).items():
                reads[other] += count
                files[other] = total
        if None in reads or not 0 < len(reads) <= MAX_TERMS:
            return ()
        return tuple(
            (template_of_shape(other).text, count / files[other], count / own)
            for other, count in sorted(reads.items())
            if other is not None
        )


NO_SCALES = Scales({}, {})


def scales_of(facts: pa.Table) -> Scales:
    """Return the scales of a run from its facts with shapes."""
    shapes, shape = _code_shapes(facts["shape"].combine_chunks())
    shared = pc.equal(facts["use"], "shared").to_numpy()
    read = _pairs(shape, facts["consumers"], shared)
    files = np.bincount(shape, minlength=len(shapes))
    reads: dict[bytes, dict[bytes | None, tuple[int, int]]] = defaultdict(dict)
    if 0 < len(read.shape) <= MAX_READS:
        other = _find_sibling_shapes(
            read, _pairs(shape, facts["producers"], np.ones(len(shape), bool))
        )
        order = order_by(read.shape, other)
        first = starts_of(read.shape[order], other[order])
        count = np.add.reduceat(read.times[order], first)
        rows = zip(read.shape[order][first], other[order][first], count.tolist(), strict=True)
        for one, by, times in rows:
            known = by >= 0
            reads[shapes[one]][shapes[by] if known else None] = (
                times,
                int(files[by]) if known else 0,
            )
    return Scales(dict(zip(shapes, files.tolist(), strict=True)), dict(reads))


@dataclass(frozen=True)
class _Pairs:
    """Sorted distinct pairs of a shape and a task, and the number of files of each."""

    shape: Ints
    task: Ints
    times: Ints


def _pairs(shape: Ints, tasks: pa.ChunkedArray, chosen: Bools) -> _Pairs:
    """Count the files of each (shape, task). `tasks`: those of each file; `chosen`: mask."""
    lists = tasks.combine_chunks()
    file = ints(pc.list_parent_indices(lists).to_numpy())
    task = ints(pc.list_flatten(lists).to_numpy())[chosen[file]]
    of = shape[file[chosen[file]]]
    order = order_by(of, task)
    first = starts_of(of[order], task[order])
    return _Pairs(of[order][first], task[order][first], np.diff(np.append(first, len(order))))


def _find_sibling_shapes(read: _Pairs, made: _Pairs) -> Ints:
    """Return, for each pair of `read`, the shape of which the task writes one file; of several, the
    one that most such tasks write, then the shortest; -1: none."""
    once = made.times == 1
    order = order_by(made.task[once], made.shape[once])
    task, shape = made.task[once][order], made.shape[once][order]
    low, high = (np.searchsorted(task, read.task, side) for side in ("left", "right"))
    count = high - low
    row = np.repeat(np.arange(len(count)), count)
    could = shape[spread(low, count)]
    pair = rank_values(read.shape[row] * (int(could.max(initial=0)) + 1) + could)[1]
    order = order_by(row, -np.bincount(pair)[pair] if len(pair) else pair, could)
    first = starts_of(row[order])
    found = np.full(len(count), -1, np.int64)
    found[row[order][first]] = could[order][first]
    return found


def _code_shapes(column: pa.Array) -> tuple[list[bytes], Ints]:
    """Return the distinct shapes, shortest first, and the index of each row's shape."""
    encoded = column.dictionary_encode()
    found = encoded.dictionary.to_pylist()
    order = sorted(range(len(found)), key=lambda at: (len(found[at]), found[at]))
    rank = np.empty(len(found), np.int64)
    rank[order] = np.arange(len(found))
    return [found[at] for at in order], rank[encoded.indices.to_numpy()]
