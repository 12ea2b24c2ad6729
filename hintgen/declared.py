"""What the engine's graph of a run declares, from the facts of its files: tasks and types, no I/O.

Columns of a file each, with no object for each file: a run has millions of them.
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
    """The tasks of each file, whose names are made when they are asked for."""

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
        """The number of the one task of each file; -1: it has none, or several."""
        first = np.append(self.tasks, -1)[self._ends[:-1]]
        return ints(np.where(self.counts == 1, first, -1))

    @property
    def file(self) -> Ints:
        """The place of the file of each of `tasks`."""
        return np.repeat(np.arange(len(self)), self.counts)


def declared_of(facts: pa.Table, name: Callable[[int], str] = str) -> Declared:
    """The declared side of the files of `facts` (learn/facts.py). `name`: of a task's number."""
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
    """For each file: how many have the same producers and consumers, itself included."""
    _, pair = group_equal_rows(sets_in(facts["producers"]), sets_in(facts["consumers"]))
    return np.bincount(pair)[pair]
