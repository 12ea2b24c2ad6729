"""The whole graph, a node for every task and file version, as columns: no SQL, no object per row.

What is shown, and in which order, is as build.py has it without a fold. Links are numbers until
some thousands of them are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Bools, Ints, distinct, finder, ints, order_by, starts_of
from tracehint.analyzer.columns import column
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.query import text_column

BATCH = 50_000  # nodes or links that are text at one time
_NO_WORD = 2  # of `peek`, where nobody knows


@dataclass(frozen=True)
class LinkRows:
    """A row per link: places of task and file among the nodes; via: number of the word."""

    task: Ints
    file: Ints
    bytes: Ints
    via: Ints
    peek: Ints

    def where(self, chosen: Bools) -> LinkRows:
        """Some of the rows."""
        return LinkRows(*(values[chosen] for values in vars(self).values()))

    def sorted_by(self, first: Ints, second: Ints) -> tuple[LinkRows, Ints]:
        """(one row for the rows of one task, file and via, of how many rows each is)."""
        order = order_by(first, second, self.via)
        rows = LinkRows(*(values[order] for values in vars(self).values()))
        at = starts_of(rows.task, rows.file, rows.via)
        if not len(at):
            return rows, at
        total, least = np.add.reduceat(rows.bytes, at), np.minimum.reduceat(rows.peek, at)
        one = LinkRows(rows.task[at], rows.file[at], total, rows.via[at], least)
        return one, np.diff(np.append(at, len(order)))


class Unfolded:
    """The nodes and links of an analysis; the order of their texts is that of SQL."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._tasks = _in_order(_work(analysis.tasks), "task", "t")
        self._task = column(self._tasks, "task")
        self._task_at = finder(self._task)
        self._made, self._read = self._used(analysis.producers), self._used(analysis.consumers)
        self._made &= column(analysis.producers, "superseded", 0) == 0
        files = _shown(analysis.files, self._users_files())
        self._files = _in_order(files, "file", "f")
        self._file = column(self._files, "file")
        self._file_at = finder(self._file)
        self._words: list[str] = sorted({"data", "engine_copy", *_words(analysis.edges)})

    def _used(self, table: pa.Table) -> Bools:
        found: Bools = self._task_at(column(table, "task")) >= 0
        return found

    def _users_files(self) -> Ints:
        some = (self._analysis.producers, self._made), (self._analysis.consumers, self._read)
        return distinct(np.concatenate([column(table, "file")[used] for table, used in some]))

    def nodes(self) -> Iterator[pa.RecordBatch]:
        """Tasks by their start, then files by their names: columns of GraphNode."""
        moved = self._moved()
        for start in range(0, len(self._task), BATCH):
            yield _task_nodes(self._tasks[start : start + BATCH], moved[start : start + BATCH])
        for start in range(0, len(self._file), BATCH):
            yield self._file_nodes(start)

    def _moved(self) -> Ints:
        """Bytes that each task read and wrote."""
        total = np.zeros(len(self._task) + 1, np.int64)
        for table in (self._analysis.producers, self._analysis.consumers):
            np.add.at(total, self._task_at(column(table, "task")), column(table, "bytes", 0))
        return total[:-1]

    @cached_property
    def _labels(self) -> pa.Table:
        """The label of each file node."""
        table = self._analysis.patterns
        own = table.filter(pc.and_(pc.is_null(table["edge"]), table["primary"]))
        at = finder(column(own, "file"))(self._file)
        some = own.select(["pattern", "confidence", "saves_bytes"])
        return some.take(pa.array(at, mask=at < 0))

    def _file_nodes(self, start: int) -> pa.RecordBatch:
        files = self._files[start : start + BATCH]
        labels = self._labels[start : start + BATCH]
        version = pc.binary_join_element_wise(" v", files["version"].cast(pa.string()), "")
        later = pc.fill_null(pc.greater(files["version"], 0), False)
        shown = pc.binary_join_element_wise(
            text_column(files["path"]), pc.if_else(later, version, ""), ""
        )
        return _batch(
            {
                "id": _named("f", files["file"]),
                "kind": pa.repeat("file", len(files)),
                "label": _or_unknown(shown),
                "kinds": pa.repeat(1, len(files)),
                "count": pc.is_valid(files["path"]).cast(pa.int64()),
                "bytes": pc.fill_null(files["size_bytes"], 0),
                "role": files["role"],
                "pattern": pc.fill_null(labels["pattern"].cast(pa.string()), ""),
                "confidence": pc.fill_null(labels["confidence"], 1.0),
                "saves_bytes": pc.fill_null(labels["saves_bytes"], 0),
            }
        )

    def links(self) -> Iterator[pa.RecordBatch]:
        """Columns of Link, by their source in the order of the nodes."""
        made, count = self._writes()
        for start in range(0, len(count), BATCH):
            yield self._link_batch(made, count, start, written=True)
        read, count = self._reads()
        for start in range(0, len(count), BATCH):
            yield self._link_batch(read, count, start, written=False)

    def _writes(self) -> tuple[LinkRows, Ints]:
        table = self._analysis.producers
        how = table["how"].combine_chunks()
        alone = pc.equal(pc.list_value_length(how), 1)
        copied = np.asarray(pc.fill_null(alone, False).to_numpy(zero_copy_only=False)).copy()
        if copied.any():
            only = pc.list_flatten(how.filter(pa.array(copied)))
            copied[copied] = pc.equal(only, "engine_copy").to_numpy(zero_copy_only=False)
        via = np.where(copied, self._words.index("engine_copy"), self._words.index("data"))
        rows = self._ends(table, "task", via, np.zeros(len(via), np.int64)).where(self._made)
        rows = rows.where((rows.task >= 0) & (rows.file >= 0))
        return rows.sorted_by(rows.task, rows.file)

    def _reads(self) -> tuple[LinkRows, Ints]:
        """Readers, and what was declared and not seen to be read."""
        table, edges = self._analysis.consumers, self._analysis.edges
        via = np.full(table.num_rows, self._words.index("data"))
        read = self._ends(table, "task", via, ints(column(table, "peek", _NO_WORD)))
        edges = edges.filter(pc.not_equal(edges["via"], "data"))
        via = ints(pc.index_in(edges["via"], pa.array(self._words)).to_numpy())
        told = self._ends(edges, "consumer", via, np.zeros(len(via), np.int64))
        many = len(self._file) + 1
        if len(told.task):
            seen = np.isin(told.task * many + told.file, read.task * many + read.file)
            told = told.where(~seen)
        both = (
            np.concatenate(pair)
            for pair in zip(vars(read).values(), vars(told).values(), strict=True)
        )
        rows = LinkRows(*both)
        rows = rows.where((rows.task >= 0) & (rows.file >= 0))
        by_name = ints(np.argsort(pc.sort_indices(_named("t", self._tasks["task"])).to_numpy()))
        return rows.sorted_by(rows.file, by_name[rows.task])

    def _ends(self, table: pa.Table, task: str, via: Ints, peek: Ints) -> LinkRows:
        tasks, files = self._task_at(column(table, task)), self._file_at(column(table, "file"))
        return LinkRows(tasks, files, column(table, "bytes", 0), via, peek)

    def _link_batch(
        self, all_: LinkRows, count: Ints, start: int, *, written: bool
    ) -> pa.RecordBatch:
        some = LinkRows(*(values[start : start + BATCH] for values in vars(all_).values()))
        ends = (
            _named("t", pa.array(self._task[some.task])),
            _named("f", pa.array(self._file[some.file])),
        )
        source, target = ends if written else ends[::-1]
        return _batch(
            {
                "source": source,
                "target": target,
                "bytes": pa.array(some.bytes),
                "count": pa.array(count[start : start + BATCH]),
                "pattern": pc.fill_null(
                    self._labels["pattern"].take(pa.array(some.file)).cast(pa.string()), ""
                ),
                "via": pa.array(self._words).take(pa.array(some.via)),
                "peek": pa.array(some.peek == 1, mask=some.peek == _NO_WORD),
            }
        )


def _work(tasks: pa.Table) -> pa.Table:
    return tasks.filter(pa.array(column(tasks, "engine", 0) == 0))


def _shown(files: pa.Table, used: Ints) -> pa.Table:
    """Files of the run's work, without software and scratch files."""
    hidden = pc.is_in(files["role"], pa.array(["software", "scratch"]))
    known = pc.and_(pc.invert(hidden), pc.is_valid(files["role"]))
    return files.filter(pc.and_(known, pa.array(np.isin(column(files, "file"), used))))


def _words(edges: pa.Table) -> list[str]:
    return [word for word in pc.unique(edges["via"]).to_pylist() if word is not None]


def _in_order(table: pa.Table, number: str, letter: str) -> pa.Table:
    """By the start, where there is one, then by the text of the node's name."""
    keys = {"name": _named(letter, table[number])}
    if "start_s" in table.column_names:
        keys = {"start": table["start_s"], **keys}
    order = [(name, "ascending") for name in keys]
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=order))


def _named(letter: str, numbers: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pc.binary_join_element_wise(letter, numbers.cast(pa.string()), "")


def _or_unknown(labels: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.fill_null(pc.equal(labels, ""), True), "?", labels)


def _task_nodes(tasks: pa.Table, moved: Ints) -> pa.RecordBatch:
    return _batch(
        {
            "id": _named("t", tasks["task"]),
            "kind": pa.repeat("task", len(tasks)),
            "label": _or_unknown(tasks["name"]),
            "type": pc.fill_null(tasks["type"], ""),
            "count": pa.repeat(1, len(tasks)),
            "start_s": tasks["start_s"],
            "end_s": tasks["end_s"],
            "bytes": pa.array(moved),
        }
    )


def _batch(columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.RecordBatch:
    (found,) = pa.table(columns).combine_chunks().to_batches()
    return found
