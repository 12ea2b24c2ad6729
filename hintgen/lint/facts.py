"""Tables and views that several rules share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.columns import column
from tracehint.hintgen.filetypes import add_file_types
from tracehint.hintgen.lint import declared
from tracehint.hintgen.query import text_column
from tracehint.hintgen.users import Users

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

_VIEWS = """
CREATE TABLE in_force (path_text VARCHAR, name VARCHAR, value VARCHAR, set_s DOUBLE);
"""

# b_io    one row per open-file session with its task and the path relative to the data root
# b_opener  who opened a path to write it, engines too (task may be null)
# b_meta  metadata operations with task, directory and whether it lies below a data root
# b_exe   programs that each task executed
# b_driver  the engine (its type) that started each task
# d_...: what the engine declares (declared.py)
_BUNDLE_VIEWS = """
CREATE TABLE b_io AS
  SELECT o.created, o.read_bytes, o.write_bytes, o.read_ops, o.write_ops, o.seq_ops, o.small_ops,
         pt.task, t.type, r.rel AS path_text
  FROM b_opens o JOIN b_proc_task pt USING (proc) JOIN work t USING (task)
  JOIN b_open_paths r ON r.path = o.path;
CREATE TABLE b_opener AS
  SELECT DISTINCT r.rel AS path_text, pt.task
  FROM b_opens o LEFT JOIN b_proc_task pt USING (proc) JOIN b_open_paths r ON r.path = o.path
  WHERE o.created OR o.write_bytes > 0 OR o.write_ops > 0;
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
_ABOVE = """
SELECT DISTINCT regexp_replace(path_text, '/[^/]*$', '') AS above FROM files
WHERE contains(path_text, '/')"""


def with_primary_labels(analysis: Analysis) -> Analysis:
    """The analysis with the primary labels of files only: rules ask for no others."""
    import pyarrow.compute as pc

    own = without_edge_labels(analysis).patterns
    if pc.all(own.column("primary")).as_py() is False:
        own = own.filter(own.column("primary"))
    return replace(analysis, patterns=own)


def without_edge_labels(analysis: Analysis) -> Analysis:
    """The analysis with the labels of files only: those of the edges are two of three."""
    import pyarrow.compute as pc

    edge = analysis.patterns.column("edge")
    count = edge.null_count
    own = analysis.patterns.slice(0, count)
    if own.column("edge").null_count < count:
        own = analysis.patterns.filter(pc.is_null(edge))
    return replace(analysis, patterns=own)


def add_views(con: duckdb.DuckDBPyConnection, analysis: Analysis, users: Users) -> None:
    """file_types, primary_label (the primary pattern of each file) and the declared tables,
    empty."""
    add_file_types(con, users, column(analysis.files, "file"))
    con.register("primary_label", with_primary_labels(analysis).patterns)
    con.execute(_VIEWS)
    con.execute(declared.EMPTY)


def add_bundle_views(
    con: duckdb.DuckDBPyConnection, analysis: Analysis, bundle: Bundle, *, owned: bool = False
) -> None:
    """Tables that join the bundle's raw rows to tasks and to paths of the analysis. `owned`: what
    is declared is taken out of the bundle."""
    proc_task, declared_task = _members(analysis, bundle)
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
    uses = declared.uses_of(bundle, declared_task)
    if owned:
        con.unregister("b_declared_io")
        bundle.tables["declared_io"] = bundle.tables["declared_io"].schema.empty_table()
    declared.add_declared(con, uses, _folders(con), roots, relative_sql("absolute", roots))
    if owned:  # how many there are is asked later
        con.unregister("b_declared_tasks")
        bundle.tables["declared_tasks"] = bundle.tables["declared_tasks"].select(["pid"])


def _folders(con: duckdb.DuckDBPyConnection) -> pa.Array:
    """What comes before any / of the name of a file."""
    import pyarrow as pa

    above = con.execute(_ABOVE).fetchnumpy()["above"].tolist()
    found = set(above)
    while above:
        above = [name.rpartition("/")[0] for name in above if "/" in name]
        above = list(set(above) - found)
        found.update(above)
    return pa.array(sorted(found), pa.string())


def _members(analysis: Analysis, bundle: Bundle) -> tuple[pa.Table, pa.Table]:
    """Processes and declared tasks of each task: from the analysis, where it was made of the
    bundle in this process."""
    if analysis.proc_task is not None and analysis.declared_task is not None:
        return analysis.proc_task, analysis.declared_task
    from tracehint.analyzer.tasks.segmentation import segment_tasks

    segmented = segment_tasks(bundle)
    return segmented.proc_task, segmented.declared_task


def _register_paths(
    con: duckdb.DuckDBPyConnection, name: str, paths: pa.Array, roots: list[str]
) -> None:
    """Table of distinct paths: `number`, `path` (bytes), `absolute` (text), `rel` (below its data
    root)."""
    import pyarrow as pa

    paths = paths.drop_null()
    number = np.arange(len(paths))
    table = pa.table({"number": number, "path": paths, "absolute": text_column(paths)})
    con.register("incoming", table)
    rel = relative_sql("absolute", roots)
    con.execute(f"CREATE TABLE {name} AS SELECT *, {rel} AS rel FROM incoming")
    con.unregister("incoming")


def relative_sql(column: str, roots: list[str]) -> str:
    """SQL: the path below the longest data root that holds it, else the absolute path."""
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
