"""Tasks and types that the engine's graph declares for the files of a run, as columns, no I/O.

Columns hold one row per file instead of objects, as a run may have millions of files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, group_equal_rows, ints
from tracehint.hintgen.file_users import members_of
from tracehint.hintgen.learn.facts import use_of
from tracehint.hintgen.learn.filegroups import lengths, sets_in, word_sets
from tracehint.hintgen.match.known import Coded, Declared


class TaskLists(Sequence[Sequence[str]]):
    """Lists of the tasks of each file, with names created on access."""

    def __init__(self, column: pa.ChunkedArray, name: Callable[[int], str]) -> None:
        self.counts = ints(lengths(column))
        self.tasks = ints(pc.list_flatten(column).to_numpy())
        self._ends = np.append(0, np.cumsum(self.counts))
        self._name = name

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, at: int) -> Sequence[str]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sequence[str]]: ...
    def __getitem__(self, at: int | slice) -> Sequence[str] | Sequence[Sequence[str]]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        here = self.tasks[self._ends[at] : self._ends[at + 1]]
        return [self._name(task) for task in here.tolist()]

    @property
    def only(self) -> Ints:
        """Number of the only task of each file; -1: none or several."""
        first = np.append(self.tasks, -1)[self._ends[:-1]]
        return ints(np.where(self.counts == 1, first, -1))

    @property
    def file(self) -> Ints:
        """Index of the file of each element of `tasks`."""
        return np.repeat(np.arange(len(self)), self.counts)


def declared_of(facts: pa.Table, name: Callable[[int], str] = str) -> Declared:
    """Return the declared columns of `facts` (learn/facts.py). `name`: task number to name."""
    types, made_by = word_sets(facts["producer_types"])
    producers, consumers = (TaskLists(facts[end], name) for end in ("producers", "consumers"))
    made, read = (members_of(end.file, end.tasks) for end in (producers, consumers))
    return Declared(
        producer_types=Coded([some[0] if some else None for some in types], made_by),
        consumer_types=Coded(*word_sets(facts["consumer_types"])),
        producers=producers,
        consumers=consumers,
        alike=_pair_counts(facts),
        uses=_texts(use_of(made, read, np.arange(facts.num_rows))),
        readers=consumers.counts,
        only_producer=producers.only,
        only_consumer=consumers.only,
    )


def _texts(texts: pa.Array) -> Coded[str]:
    coded = texts.dictionary_encode()
    return Coded(coded.dictionary.to_pylist(), ints(coded.indices.to_numpy()))


def _pair_counts(facts: pa.Table) -> Ints:
    """Return, for each file, the number of files with the same producers and consumers."""
    _, pair = group_equal_rows(sets_in(facts["producers"]), sets_in(facts["consumers"]))
    return np.bincount(pair)[pair]
