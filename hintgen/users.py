"""Who made and who read each file, as arrays: relation.py for questions about every file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    Shorts,
    distinct,
    finder,
    ints,
    order_by,
    starts_of,
)
from tracehint.analyzer.columns import column, floats

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis


@dataclass(frozen=True)
class Side:
    """Rows `row` of `table`: producers or consumers. `kind`: the number of the task's type, in 32
    bits."""

    table: pa.Table
    row: Ints | slice  # a slice: all of them
    file: Ints
    task: Ints
    kind: Shorts

    def where(self, chosen: Bools) -> Side:
        """Some of the rows."""
        if chosen.all():
            return self
        row = np.flatnonzero(chosen) if isinstance(self.row, slice) else self.row[chosen]
        return Side(self.table, row, self.file[chosen], self.task[chosen], self.kind[chosen])


@dataclass(frozen=True)
class Users:
    """`kinds`: the sorted types of tasks that are no engine, null last. `whole`: readers that
    count: one that only peeks does not, unless all readers of the file do."""

    kinds: list[str | None]
    made: Side
    read: Side
    whole: Side


def users_of(analysis: Analysis) -> Users:
    """Producers that were not superseded, and consumers; engines aside."""
    kinds, kind = _kinds(analysis.tasks)
    at = finder(column(analysis.tasks, "task"))
    made, read = (
        _side(table, at(column(table, "task")), kind)
        for table in (analysis.producers, analysis.consumers)
    )
    made = made.where((column(made.table, "superseded", 0) == 0)[made.row])
    peeks = (column(read.table, "peek", 0) != 0)[read.row]
    whole = read.where(~peeks | ~np.isin(read.file, read.file[~peeks])) if peeks.any() else read
    return Users(kinds, made, read, whole)


def counts_by_file(side: Side) -> pa.Table:
    """Per file with such rows: how many tasks they are of (`tasks`), of how many that not only
    peek (`whole`), and the end of the last of them (`last_s`, null where none is known)."""
    import pyarrow as pa

    order = order_by(side.file, side.task)
    file, task = side.file[order], side.task[order]
    first, pair = starts_of(file), starts_of(file, task)
    whole = np.ones(len(file), bool)
    if "peek" in side.table.column_names:
        whole = (column(side.table, "peek", 1)[side.row] == 0)[order]
    last = floats(side.table, "last_s")[side.row][order]
    looked = np.logical_or.reduceat(whole, pair) if len(pair) else whole
    group = np.searchsorted(first, pair, side="right") - 1
    ended = np.fmax.reduceat(last, first) if len(first) else last
    return pa.table(
        {
            "file": file[first],
            "tasks": np.bincount(group, minlength=len(first)),
            "whole": np.bincount(group[looked], minlength=len(first)),
            "last_s": pa.array(ended, mask=np.isnan(ended)),
        }
    )


def _kinds(tasks: pa.Table) -> tuple[list[str | None], Shorts]:
    """(the types, the number of that of each task; -1 for an engine)."""
    work = column(tasks, "engine", 0) == 0
    encoded = tasks["type"].combine_chunks().dictionary_encode("encode")
    words = encoded.dictionary.to_pylist()
    code = ints(encoded.indices.to_numpy(zero_copy_only=False))
    order = sorted(distinct(code[work]).tolist(), key=lambda c: (words[c] is None, words[c] or ""))
    number = np.full(len(words), -1, np.int32)
    number[order] = np.arange(len(order))
    return [words[code] for code in order], np.where(work, number[code], -1)


def _side(table: pa.Table, at: Ints, kind: Shorts) -> Side:
    """The rows of tasks that are there and no engines. `at`: where the task of each row is."""
    found = np.where(at >= 0, kind[at], -1) if len(kind) else np.full(len(at), -1, np.int32)
    every = Side(table, slice(None), column(table, "file"), column(table, "task"), found)
    return every.where(found >= 0)
