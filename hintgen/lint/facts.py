"""Tables and views shared by several rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import (
    Ints,
    Shorts,
    column,
    distinct,
    encode_column,
    in_order,
    ints,
    join_pairs,
    order_by,
    starts_of,
)
from tracehint.hintgen.file_users import Users, add_file_types
from tracehint.hintgen.query import text_column
from tracehint.hintgen.text.escape import text as visible

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle


NO_SIZE = np.iinfo(np.int64).min

DECLARED_TABLES = """
CREATE TABLE d_task (task BIGINT);
CREATE TABLE d_path (number BIGINT, path BLOB, path_text VARCHAR, name BIGINT);
CREATE TABLE d_io (task BIGINT, number BIGINT, name BIGINT, direction VARCHAR, size_bytes BIGINT);
CREATE TABLE d_named (number BIGINT, file BIGINT);
CREATE TABLE d_file (task BIGINT, file BIGINT, direction VARCHAR);
CREATE TABLE d_dir (task BIGINT, path_text VARCHAR, direction VARCHAR);
CREATE TABLE d_parent (task BIGINT, parent BIGINT);
"""
_STRIP_SQL = """
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
    """Declared files, one row per distinct task, path and direction: their codes and the largest
    declared size (NO_SIZE: none). `tasks`: all tasks that correspond to a declared task."""

    tasks: Ints
    task: Ints
    path: Ints
    way: Ints
    size: Ints
    paths: pa.Array
    ways: pa.Array


def uses_of(bundle: Bundle, declared_task: pa.Table) -> DeclaredUses:
    """Return the declared files of recorded tasks; `declared_task` maps declared tasks to these."""
    table = bundle.tables["declared_io"]
    (named, names), (path, paths), (way, ways) = (
        encode_column(table, name) for name in ("task", "path", "direction")
    )
    known, task = _match_declared_names(declared_task, names)
    row, task = join_pairs(named, known, task)
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
    """Fill the DECLARED_TABLES; `con` has `files`. `folders`: directories of the run's files.
    `relative`: SQL for the part of column `absolute` below its data root, one of `roots`."""
    import pyarrow as pa

    _fill(con, "d_task", {"task": uses.tasks})
    number = np.arange(len(uses.paths))
    text = _strip_paths(con, text_column(uses.paths), roots, relative)
    name = text.dictionary_encode().indices
    _fill(con, "d_path", {"number": number, "path": uses.paths, "path_text": text, "name": name})
    ways = pa.int8() if len(uses.ways) < 128 else pa.int32()
    direction = pa.DictionaryArray.from_arrays(pa.array(uses.way, ways), uses.ways)
    _fill(
        con,
        "d_io",
        {
            "task": uses.task,
            "number": uses.path,
            "name": name.take(pa.array(uses.path)),
            "direction": direction,
            "size_bytes": pa.array(uses.size, mask=uses.size == NO_SIZE),
        },
    )
    named = con.execute(_NAMED).fetchnumpy()
    number, file = ints(named["number"]), ints(named["file"])
    _fill(con, "d_named", {"number": number, "file": file})
    row, file = join_pairs(uses.path, number, file)
    _fill(
        con,
        "d_file",
        {"task": uses.task[row], "file": file, "direction": direction.take(pa.array(row))},
    )
    _fill(con, "d_dir", _directories(uses, text, name, folders))
    con.execute(_PARENTS)


def _directories(
    uses: DeclaredUses, text: pa.Array, name: pa.Array, folders: pa.Array
) -> dict[str, object]:
    """Return the columns of d_dir. `text`, `name`: text of each path in `uses`, and its code."""
    import pyarrow.compute as pc

    named_so = pc.ends_with(uses.paths, b"/")
    chosen = pc.or_(named_so, pc.is_in(text, value_set=folders)).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(chosen[uses.path])
    keys = uses.task[rows], ints(name.to_numpy())[uses.path[rows]], uses.way[rows]
    order = order_by(*keys)
    rows = rows[order[starts_of(*(key[order] for key in keys))]]
    return {
        "task": uses.task[rows],
        "path_text": text.take(uses.path[rows]),
        "direction": uses.ways.take(uses.way[rows]),
    }


def _strip_paths(
    con: duckdb.DuckDBPyConnection, texts: pa.Array, roots: Sequence[str], relative: str
) -> pa.Array:
    """Strip the data root, a leading ./ and a trailing / from paths; most have none of these."""
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
    found = in_order(con.sql(_STRIP_SQL.format(rel=relative)).to_arrow_table(), "number")
    con.unregister("odd_paths")
    return pc.replace_with_mask(texts, odd, found["path_text"].combine_chunks())


def _match_declared_names(declared_task: pa.Table, names: pa.Array) -> tuple[Ints, Ints]:
    """Return (code of the declared name, task) for tasks whose declared name is in `names`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = pc.index_in(declared_task["declared"], value_set=names.cast(pa.string()))
    number = ints(pc.fill_null(place, -1).to_numpy())
    matched = number >= 0
    return number[matched], column(declared_task, "task")[matched]


def _fill(con: duckdb.DuckDBPyConnection, name: str, columns: dict[str, object]) -> None:
    """Replace the empty table by these columns, without a copy; integers that fit into 32 bits are
    narrowed."""
    import pyarrow as pa

    con.execute(f"DROP TABLE {name}")
    small = {k: _narrow(v) if isinstance(v, np.ndarray) else v for k, v in columns.items()}
    con.register(name, pa.table(small))


def _narrow(values: Ints) -> Ints | Shorts:
    return values.astype(np.int32) if values.max(initial=0) < 1 << 31 else values


_VIEWS = """
CREATE TABLE in_force (path_text VARCHAR, name VARCHAR, value VARCHAR, set_s DOUBLE);
"""

# b_io    one row per open-file session with its task and the path relative to the data root
# b_opener  tasks, engines too, that opened a path to write it; null where the process has no task
#           or only inherited the open file
# b_meta  metadata operations with task, directory and whether it is below a data root
# b_exe   programs that each task executed
# b_driver  the engine (its type) that started each task
# d_...: the declared graph of the engine (see DECLARED_TABLES)
_BUNDLE_VIEWS = """
CREATE TABLE b_io AS
  SELECT o.created, o.read_bytes, o.write_bytes, o.read_ops, o.write_ops, o.seq_ops, o.small_ops,
         pt.task, t.type, r.rel AS path_text
  FROM b_opens o JOIN b_proc_task pt USING (proc) JOIN work t USING (task)
  JOIN b_open_paths r ON r.path = o.path;
CREATE TABLE b_opener AS
  SELECT DISTINCT r.rel AS path_text, CASE WHEN o.via <> 'inherited' THEN pt.task END AS task
  FROM b_opens o LEFT JOIN b_proc_task pt USING (proc) JOIN b_open_paths r ON r.path = o.path
  WHERE o.created OR o.truncated OR o.flags & 3 > 0 OR o.write_bytes > 0 OR o.write_ops > 0;
CREATE TABLE b_meta AS
  SELECT m.*, pt.task, t.type, r.rel AS dir_text, r.rel <> r.absolute AS inside
  FROM b_metadata_ops m JOIN b_proc_task pt USING (proc) JOIN work t USING (task)
  JOIN b_meta_paths r ON r.path = m.dir;
CREATE TABLE b_exe AS
  SELECT DISTINCT pt.task, r.rel AS path_text
  FROM b_processes p JOIN b_proc_task pt USING (proc) JOIN b_exe_paths r ON r.path = p.exe;
CREATE TABLE b_driver AS
  SELECT DISTINCT pt.task, e.type AS driver
  FROM b_processes p JOIN b_proc_task pt USING (proc) JOIN b_proc_task up ON up.proc = p.parent
  JOIN tasks e ON e.task = up.task WHERE e.engine AND e.task <> pt.task;
"""
_PARENT_FOLDERS_SQL = """
SELECT DISTINCT regexp_replace(path_text, '/[^/]*$', '') AS above FROM files
WHERE contains(path_text, '/')"""


def with_primary_labels(analysis: Analysis) -> Analysis:
    """Return the analysis with only the primary labels of files: rules use no others."""
    import pyarrow.compute as pc

    own = without_edge_labels(analysis).patterns
    if pc.all(own.column("primary")).as_py() is False:
        own = own.filter(own.column("primary"))
    return replace(analysis, patterns=own)


def without_edge_labels(analysis: Analysis) -> Analysis:
    """Return the analysis without edge labels, which are two thirds of all labels."""
    import pyarrow.compute as pc

    edge = analysis.patterns.column("edge")
    count = edge.null_count
    own = analysis.patterns.slice(0, count)
    if own.column("edge").null_count < count:
        own = analysis.patterns.filter(pc.is_null(edge))
    return replace(analysis, patterns=own)


def add_views(con: duckdb.DuckDBPyConnection, analysis: Analysis, users: Users) -> None:
    """Add file_types, primary_label (the primary pattern of each file) and, empty, in_force and
    the declared tables."""
    add_file_types(con, users, column(analysis.files, "file"))
    con.register("primary_label", with_primary_labels(analysis).patterns)
    con.execute(_VIEWS)
    con.execute(DECLARED_TABLES)


def add_bundle_views(
    con: duckdb.DuckDBPyConnection, analysis: Analysis, bundle: Bundle, *, owned: bool = False
) -> None:
    """Add tables that join the bundle's raw rows to tasks and paths of the analysis. `owned`: the
    declared tables are removed from the bundle."""
    proc_task, declared_task = _find_members(analysis, bundle)
    con.register("b_proc_task", proc_task)
    con.register("b_declared_task", declared_task)
    roots = analysis.run["data_roots"]
    for name, table, path in (
        ("b_open_paths", "opens", "path"),
        ("b_meta_paths", "metadata_ops", "dir"),
        ("b_exe_paths", "processes", "exe"),
        ("b_name_paths", "names", "path"),
    ):
        _register_paths(con, name, bundle.tables[table].column(path).unique(), roots)
    con.execute(
        "CREATE TABLE b_run AS SELECT $1::BIGINT AS origin_ns", [bundle.manifest.started_ns]
    )
    con.execute(_BUNDLE_VIEWS)
    uses = uses_of(bundle, declared_task)
    if owned:
        con.unregister("b_declared_io")
        bundle.tables["declared_io"] = bundle.tables["declared_io"].schema.empty_table()
    add_declared(con, uses, _list_folders(con), roots, relative_sql("absolute", roots))
    if owned:  # Context.has needs the number of rows
        con.unregister("b_declared_tasks")
        bundle.tables["declared_tasks"] = bundle.tables["declared_tasks"].select(["pid"])


def _list_folders(con: duckdb.DuckDBPyConnection) -> pa.Array:
    """Return all directories, direct and indirect, of files."""
    import pyarrow as pa

    above = con.execute(_PARENT_FOLDERS_SQL).fetchnumpy()["above"].tolist()
    found = set(above)
    while above:
        above = [name.rpartition("/")[0] for name in above if "/" in name]
        above = list(set(above) - found)
        found.update(above)
    return pa.array(sorted(found), pa.string())


def _find_members(analysis: Analysis, bundle: Bundle) -> tuple[pa.Table, pa.Table]:
    """Return the processes and declared tasks of each task: from the analysis if this process made
    it from the bundle, else by segmentation."""
    if analysis.proc_task is not None and analysis.declared_task is not None:
        return analysis.proc_task, analysis.declared_task
    from tracehint.analyzer.tasks.segmentation import segment_tasks

    segmented = segment_tasks(bundle)
    return segmented.proc_task, segmented.declared_task


def _register_paths(
    con: duckdb.DuckDBPyConnection, name: str, paths: pa.Array, roots: list[str]
) -> None:
    """Create a table of distinct paths: `number`, `path` (bytes), `absolute` (text), `rel` (below
    its data root)."""
    import pyarrow as pa

    paths = paths.drop_null()
    number = np.arange(len(paths))
    table = pa.table({"number": number, "path": paths, "absolute": text_column(paths)})
    con.register("incoming", table)
    rel = relative_sql("absolute", roots)
    con.execute(f"CREATE TABLE {name} AS SELECT *, {rel} AS rel FROM incoming")
    con.unregister("incoming")


def relative_sql(column: str, roots: list[str]) -> str:
    """Return SQL for the path below the longest data root that contains it, else the full path."""
    from tracehint.hintgen.text.escape import text

    cases = []
    for root in sorted(roots, key=len, reverse=True):
        prefix = text(root).rstrip("/") + "/"
        quoted = prefix.replace("'", "''")
        cases.append(f"WHEN {column} = '{quoted[:-1]}' THEN ''")
        cases.append(
            f"WHEN starts_with({column}, '{quoted}') THEN substr({column}, {len(prefix) + 1})"
        )
    return f"CASE {' '.join(cases)} ELSE {column} END" if cases else column
