"""What an engine declares as tables of numbers: text is joined for what is reported only.

d_task    tasks of which the engine declares something
d_path    the declared paths: number, path (bytes), path_text (below its data root, without ./ and
          a last /), name: the number of that text
d_io      task, number, name, direction, size_bytes: what a task declares
d_named   number, file: the versions of files that have a declared path
d_file    task, file, direction: the same for each use in d_io
d_dir     task, path_text, direction: declared directories
d_parent  task, parent: tasks that wait for others
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts, distinct, ints, joined, order_by, starts_of
from tracehint.analyzer.columns import coded, column, in_order
from tracehint.hintgen.query import text_column
from tracehint.hintgen.text.escape import text as visible

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

NO_SIZE = np.iinfo(np.int64).min

EMPTY = """
CREATE TABLE d_task (task BIGINT);
CREATE TABLE d_path (number BIGINT, path BLOB, path_text VARCHAR, name BIGINT);
CREATE TABLE d_io (task BIGINT, number BIGINT, name BIGINT, direction VARCHAR, size_bytes BIGINT);
CREATE TABLE d_named (number BIGINT, file BIGINT);
CREATE TABLE d_file (task BIGINT, file BIGINT, direction VARCHAR);
CREATE TABLE d_dir (task BIGINT, path_text VARCHAR, direction VARCHAR);
CREATE TABLE d_parent (task BIGINT, parent BIGINT);
"""
_PLAIN = """
WITH below AS (SELECT number, {rel} AS rel FROM odd_paths)
SELECT number, rtrim(CASE WHEN starts_with(rel, './')
                     THEN regexp_replace(rel, '^(\\./)+', '') ELSE rel END, '/') AS path_text
FROM below"""
_NAMED = "SELECT d.number, f.file FROM d_path d JOIN files f USING (path_text)"
_PARENTS = """
INSERT INTO d_parent
  SELECT DISTINCT m.task, pm.task
  FROM (SELECT task, unnest(parents) AS parent FROM b_declared_tasks) d
  JOIN b_declared_task m ON m.declared = d.task
  JOIN b_declared_task pm ON pm.declared = d.parent WHERE m.task <> pm.task;
"""


@dataclass(frozen=True)
class DeclaredUses:
    """What is declared, a row for each different task, path and direction: the numbers of these,
    and the largest size (NO_SIZE: none is declared). `tasks`: all that stand for a declared one."""

    tasks: Ints
    task: Ints
    path: Ints
    way: Ints
    size: Ints
    paths: pa.Array
    ways: pa.Array


def uses_of(bundle: Bundle, declared_task: pa.Table) -> DeclaredUses:
    """`declared_task`: the tasks that stand for each declared one."""
    table = bundle.tables["declared_io"]
    (named, names), (path, paths), (way, ways) = (
        coded(table, name) for name in ("task", "path", "direction")
    )
    known, task = _known(declared_task, names)
    row, task = joined(named, known, task)
    path, way, size = path[row], way[row], column(table, "size_bytes", NO_SIZE)[row]
    order = order_by(task, path, way)
    task, path, way = task[order], path[order], way[order]
    first = starts_of(task, path, way)
    most = np.maximum.reduceat(size[order], first) if len(first) else size
    tasks = distinct(column(declared_task, "task"))
    return DeclaredUses(tasks, task[first], path[first], way[first], most, paths, ways)


def add_declared(
    con: duckdb.DuckDBPyConnection,
    uses: DeclaredUses,
    folders: pa.Array,
    roots: Sequence[str],
    relative: str,
) -> None:
    """Fill the tables. `con` has `files`. `folders`: of the files of the run. `relative`: SQL that
    makes of a text `absolute` what is below its data root, one of `roots`."""
    import pyarrow as pa

    _put(con, "d_task", {"task": uses.tasks})
    number = np.arange(len(uses.paths))
    text = _plain(con, text_column(uses.paths), roots, relative)
    name = text.dictionary_encode().indices
    _put(con, "d_path", {"number": number, "path": uses.paths, "path_text": text, "name": name})
    ways = pa.int8() if len(uses.ways) < 128 else pa.int32()
    direction = pa.DictionaryArray.from_arrays(pa.array(uses.way, ways), uses.ways)
    _put(con, "d_io", {
        "task": uses.task, "number": uses.path, "name": name.take(pa.array(uses.path)),
        "direction": direction, "size_bytes": pa.array(uses.size, mask=uses.size == NO_SIZE),
    })  # fmt: skip  # a table
    named = con.execute(_NAMED).fetchnumpy()
    number, file = ints(named["number"]), ints(named["file"])
    _put(con, "d_named", {"number": number, "file": file})
    row, file = joined(uses.path, number, file)
    _put(con, "d_file", {
        "task": uses.task[row], "file": file, "direction": direction.take(pa.array(row)),
    })  # fmt: skip  # a table
    _put(con, "d_dir", _directories(uses, text, name, folders))
    con.execute(_PARENTS)


def _directories(
    uses: DeclaredUses, text: pa.Array, name: pa.Array, folders: pa.Array
) -> dict[str, object]:
    """The columns of d_dir. `text`, `name`: of each path in `uses`."""
    import pyarrow.compute as pc

    named_so = pc.ends_with(uses.paths, b"/")
    chosen = pc.or_(named_so, pc.is_in(text, value_set=folders)).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(chosen[uses.path])
    keys = uses.task[rows], ints(name.to_numpy())[uses.path[rows]], uses.way[rows]
    order = order_by(*keys)
    rows = rows[order[starts_of(*(key[order] for key in keys))]]
    return {
        "task": uses.task[rows], "path_text": text.take(uses.path[rows]),
        "direction": uses.ways.take(uses.way[rows]),
    }  # fmt: skip  # a table


def _plain(
    con: duckdb.DuckDBPyConnection, texts: pa.Array, roots: Sequence[str], relative: str
) -> pa.Array:
    """The paths below their data root, without ./ and a last /. Most are so already."""
    import pyarrow as pa
    import pyarrow.compute as pc

    odd = pc.or_(pc.starts_with(texts, "./"), pc.ends_with(texts, "/"))
    for root in roots:
        top = visible(root).rstrip("/")
        odd = pc.or_(odd, pc.or_(pc.equal(texts, top), pc.starts_with(texts, top + "/")))
    place = np.flatnonzero(odd.fill_null(False).to_numpy(zero_copy_only=False))
    if not len(place):
        return texts
    con.register("odd_paths", pa.table({"number": place, "absolute": texts.take(place)}))
    found = in_order(con.sql(_PLAIN.format(rel=relative)).to_arrow_table(), "number")
    con.unregister("odd_paths")
    return pc.replace_with_mask(texts, odd, found["path_text"].combine_chunks())


def _known(declared_task: pa.Table, names: pa.Array) -> tuple[Ints, Ints]:
    """(the number of the declared name, the task), of those that have one of the names."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = pc.index_in(declared_task["declared"], value_set=names.cast(pa.string()))
    number = ints(pc.fill_null(place, -1).to_numpy())
    there = number >= 0
    return number[there], column(declared_task, "task")[there]


def _put(con: duckdb.DuckDBPyConnection, name: str, columns: dict[str, object]) -> None:
    """In place of the empty table, these columns: not a copy, and whole numbers in 32 bits where
    they fit."""
    import pyarrow as pa

    con.execute(f"DROP TABLE {name}")
    small = {k: _small(v) if isinstance(v, np.ndarray) else v for k, v in columns.items()}
    con.register(name, pa.table(small))


def _small(values: Ints) -> Ints | Shorts:
    return values.astype(np.int32) if values.max(initial=0) < 1 << 31 else values
