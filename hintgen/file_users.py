"""Writers and readers of each file as arrays: tasks, task types, last readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    Shorts,
    column,
    distinct,
    finder,
    floats,
    ints,
    lookup,
    order_by,
    rank_values,
    starts_of,
)
from tracehint.hintgen.reach import Reach

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis


@dataclass(frozen=True)
class Side:
    """Rows `row` of `table`, producers or consumers. `kind`: index of the task's type, in 32
    bits."""

    table: pa.Table
    row: Ints | slice  # a slice: all of them
    file: Ints
    task: Ints
    kind: Shorts

    def where(self, chosen: Bools) -> Side:
        """Return the rows selected by a mask."""
        if chosen.all():
            return self
        row = np.flatnonzero(chosen) if isinstance(self.row, slice) else self.row[chosen]
        return Side(self.table, row, self.file[chosen], self.task[chosen], self.kind[chosen])


@dataclass(frozen=True)
class Users:
    """Writers and readers of all files. `kinds`: sorted types of non-engine tasks, null last.
    `whole`: `read` without header reads (peeks), unless all readers of the file only peek."""

    kinds: list[str | None]
    made: Side
    read: Side
    whole: Side


def users_of(analysis: Analysis) -> Users:
    """Return the producers that were not superseded and the consumers, without engine tasks."""
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
    """Return, per file: number of tasks (`tasks`), of those with more than header reads (`whole`),
    and the latest access (`last_s`, null if unknown)."""
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
    """Return the types, and the index of each task's type; -1 for an engine."""
    work = column(tasks, "engine", 0) == 0
    encoded = tasks["type"].combine_chunks().dictionary_encode("encode")
    words = encoded.dictionary.to_pylist()
    code = ints(encoded.indices.to_numpy(zero_copy_only=False))
    order = sorted(distinct(code[work]).tolist(), key=lambda c: (words[c] is None, words[c] or ""))
    number = np.full(len(words), -1, np.int32)
    number[order] = np.arange(len(order))
    return [words[code] for code in order], np.where(work, number[code], -1)


def _side(table: pa.Table, at: Ints, kind: Shorts) -> Side:
    """Return the rows of existing non-engine tasks. `at`: index of each row's task; -1: none."""
    found = np.where(at >= 0, kind[at], -1) if len(kind) else np.full(len(at), -1, np.int32)
    every = Side(table, slice(None), column(table, "file"), column(table, "task"), found)
    return every.where(found >= 0)


def numbers_of(group: Ints, member: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (sorted distinct groups, set number of each, encoding of each set by a smaller one).

    `member`: a non-negative member of each row's group. The encoding of a set is (number of the set
    without its largest member + 1) * (largest of all members + 1) + its largest member.
    """
    many = int(member.max(initial=0)) + 1
    pairs = distinct(group * many + member)
    group, member = pairs // many, pairs % many
    first = starts_of(group)
    groups, count = group[first], np.diff(np.append(first, len(group)))
    number, made = np.full(len(groups), -1, np.int64), [ints([])]
    going = np.arange(len(groups))
    place = base = 0
    while len(going):
        kinds, inverse = rank_values((number[going] + 1) * many + member[first[going] + place])
        made.append(kinds)
        number[going] = base + inverse
        base, place = base + len(kinds), place + 1
        going = going[count[going] > place]
    return groups, number, np.concatenate(made)


def sets_of(group: Ints, member: Ints) -> tuple[Ints, Ints, list[tuple[int, ...]]]:
    """Return (sorted distinct groups, set number of each, the sets as sorted tuples). Like
    `numbers_of`, for few distinct sets."""
    many = int(member.max(initial=0)) + 1
    groups, number, made = numbers_of(group, member)
    sets = list[tuple[int, ...]]()
    for one in made.tolist():
        before, last = divmod(one, many)
        sets.append((*(sets[before - 1] if before else ()), last))
    return groups, number, sets


def add_type_sets(con: duckdb.DuckDBPyConnection, users: Users) -> pa.Table:
    """Create `type_set` (file, made, used: set numbers, null for none) and `type_words` (number,
    words: the sorted types, text: the types joined by commas, shown: the number of that text).
    Return the first."""
    import pyarrow as pa

    at = np.concatenate([users.made.file * 2, users.read.file * 2 + 1])
    groups, number, sets = sets_of(at, np.concatenate([users.made.kind, users.read.kind]))
    files = distinct(groups // 2)
    columns = {"file": pa.array(files)}
    for side, name in enumerate(("made", "used")):
        own = groups % 2 == side
        values = np.full(len(files), -1, np.int32)
        values[np.searchsorted(files, groups[own] // 2)] = number[own]
        columns[name] = pa.array(values, mask=values < 0)
    of_files = pa.table(columns)
    con.register("type_set", of_files)
    texts = [[users.kinds[k] for k in some] for some in sets]
    shown = [", ".join(word for word in some if word is not None) for some in texts]
    kinds = {
        "number": pa.array(range(len(sets)), pa.int64()),
        "words": pa.array(texts, pa.list_(pa.string())),
        "text": pa.array(shown, pa.string()),
        "shown": pa.array(shown, pa.string()).dictionary_encode().indices,
    }
    con.register("type_words", pa.table(kinds))
    return of_files


@dataclass(frozen=True)
class Members:
    """Sorted distinct members of each of the sorted `groups`; `first`: offsets of each group in
    `members`, with the end appended."""

    groups: Ints
    first: Ints
    members: Ints

    def place(self, group: Ints) -> Ints:
        """Return the index of each group; -1: it has no members."""
        return lookup(self.groups, np.arange(len(self.groups)), group)

    def counts(self, group: Ints) -> Ints:
        """Return the number of members of each group."""
        return ints(np.append(np.diff(self.first), 0)[self.place(group)])

    def only(self, group: Ints) -> Ints:
        """Return the first member of each group; -1: none."""
        return ints(np.append(self.members, -1)[np.append(self.first[:-1], -1)[self.place(group)]])

    def lists(self, group: Ints) -> pa.ListArray:
        """Return the members of each group."""
        ends = pa.array(np.append(self.first, len(self.members)), pa.int32())
        every = pa.ListArray.from_arrays(ends, pa.array(self.members))
        return every.take(pa.array(_or_last(self.place(group), len(self.groups))))


def members_of(group: Ints, member: Ints) -> Members:
    """Return the members of groups from (group, member) rows in any order, with duplicates."""
    order = order_by(group, member)
    group, member = group[order], member[order]
    rows = starts_of(group, member)
    group, member = group[rows], member[rows]
    first = starts_of(group)
    return Members(group[first], np.append(first, len(group)), member)


def words_of(
    file: Ints, kind: Ints | Shorts, words: Sequence[str | None], wanted: Ints
) -> pa.ListArray:
    """Return the sorted distinct words of each wanted file, from (file, word index) rows."""
    files, number, sets = sets_of(file, ints(kind))
    texts = pa.array([[words[k] for k in some] for some in [*sets, ()]], pa.list_(pa.string()))
    at = lookup(files, number, wanted)
    return texts.take(pa.array(_or_last(at, len(sets))))


def _or_last(at: Ints, last: int) -> Ints:
    return np.where(at < 0, last, at)


VIEWS = """
CREATE VIEW work AS SELECT * FROM tasks WHERE NOT coalesce(engine, false);
CREATE VIEW writers AS
  SELECT p.*, t.type, t.host FROM producers p JOIN work t USING (task)
  WHERE NOT coalesce(p.superseded, false);
CREATE VIEW readers AS
  SELECT c.*, t.type, t.host FROM consumers c JOIN work t USING (task);
"""


def add_file_types(con: duckdb.DuckDBPyConnection, users: Users, files: Ints) -> None:
    """Create `file_types` of the files: file; producers, consumers: types of writers and readers as
    text, made, used: numbers of these texts; n_producers, n_consumers: tasks, n_readers: tasks that
    do more than header reads; written_s, last_read_s. Null where there are none.

    `con` has the tables of `add_type_sets`. Texts stay dictionary-encoded, which needs a tenth of
    the memory.
    """
    import pyarrow as pa

    sets = con.execute("SELECT file, made, used FROM type_set").fetchnumpy()
    words = con.execute("SELECT text, shown FROM type_words ORDER BY number").fetchnumpy()
    texts, shown = pa.array(words["text"].tolist(), pa.string()), ints(words["shown"])
    columns = {"file": pa.array(files)}
    place = finder(ints(sets["file"]))(files)
    for text, number, name in (("producers", "made", "made"), ("consumers", "used", "used")):
        which = _at(np.ma.filled(sets[name], -1), place)
        mask = which < 0
        columns[text] = pa.DictionaryArray.from_arrays(
            pa.array(which.astype(np.int32), mask=mask), texts
        )
        number_of = shown[np.maximum(which, 0)] if len(shown) else which
        columns[number] = pa.array(number_of.astype(np.int32), mask=mask)
    counts = ((users.made, "producers", "written_s"), (users.read, "consumers", "last_read_s"))
    for side, name, when in counts:
        found = counts_by_file(side)
        row = finder(ints(found["file"].to_numpy()))(files)
        at = pa.array(row, mask=row < 0)
        columns[f"n_{name}"] = found["tasks"].take(at).cast(pa.int32())
        if name == "consumers":
            columns["n_readers"] = found["whole"].take(at).cast(pa.int32())
        columns[when] = found["last_s"].take(at)
    con.register("file_types", pa.table(columns))


def _at(values: Ints, place: Ints) -> Ints:
    """Return the value at each index; -1 for index -1."""
    return np.append(ints(values), -1)[place]


def last_readers(users: Users, edges: pa.Table) -> tuple[Ints, Ints]:
    """Return the sorted files and the index in `users.kinds` of the type that reads each last.

    Files without a certain last reader are omitted. Pairs of tasks count as independent if the
    graph is too large to order them.
    """
    read = users.whole
    order = order_by(read.file)
    file, kind = read.file[order], read.kind[order]
    first = starts_of(file)
    if not len(first):
        return file, ints(kind)
    files, last = file[first], np.minimum.reduceat(kind, first)
    certain = last == np.maximum.reduceat(kind, first)
    several, what = _last_of_several(read.where(~np.isin(read.file, files[certain])), edges)
    place = np.searchsorted(files, several)
    certain[place], last[place] = True, what
    return files[certain], ints(last[certain])


def _last_of_several(read: Side, edges: pa.Table) -> tuple[Ints, Shorts]:
    """Return the last readers of files with readers of several types; see `last_readers`."""
    order = _by_time(read)
    file, task, kind = read.file[order], read.task[order], read.kind[order]
    first = starts_of(file)
    count = np.diff(np.append(first, len(file)))
    last = first + count - 1
    files, who, what = file[last], np.repeat(task[last], count), np.repeat(kind[last], count)
    other = kind != what
    free = _pairs_without_order(task[other], who[other], edges)
    certain = ~np.isin(files, file[other][free])
    return files[certain], kind[last][certain]


def _by_time(read: Side) -> Ints:
    """Return the order of readers by file, then by end of reading, then by task."""
    ended = floats(read.table, "last_s")[read.row]
    when = np.unique(np.where(np.isnan(ended), -1.0, ended), return_inverse=True)[1]
    return order_by(read.file, when, read.task)


def _pairs_without_order(before: Ints, after: Ints, edges: pa.Table) -> Bools:
    """Return a mask of the pairs of tasks that the graph does not order, or may not order."""
    if not len(before):
        return np.zeros(0, bool)
    producer, consumer = column(edges, "producer"), column(edges, "consumer")
    order = order_by(producer, consumer)
    links = order[starts_of(producer[order], consumer[order])]
    unordered, unknown = Reach(producer[links], consumer[links]).split(before, after)
    return unordered | unknown
