"""The analysis as SQL tables: what lint, graph, report and diff ask their questions to.

Tables of the analysis keep their names (tasks, files, producers, ...); those of
the bundle are called `b_<name>`. Views: see relation.py. Added columns:

files.path_text  the path as visible text (bytes that are not UTF-8 as `\\xNN`)
files.mask       path_text with every run of digits and every random part as `*`
files.template   as mask, but digits are kept that never change among files used alike
files.dir        directory part of path_text ("" at the data root)
files.data       not software
files.newest     no later version of it is there
files.named      a number of the path; files.shape: of the template
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, lookup, numbered, order_by, positions, starts_of
from tracehint.analyzer.columns import coded, codes, column
from tracehint.hintgen import relation
from tracehint.hintgen.text import names
from tracehint.hintgen.typesets import add_type_sets
from tracehint.hintgen.users import Users, users_of

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

BATCH = 10_000  # rows of a large result in Python at one time
# Up to here a thread is awake for longer than it works, and a copy is made in less time than
# DuckDB asks Arrow for the columns of a question.
SMALL = 20_000  # rows of all tables of the analysis


def text_column(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Binary paths as visible text; one vectorised cast unless some are not UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.hintgen.text.escape import text

    try:
        shown = column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if v is None else text(v) for v in column.to_pylist()], pa.string())
    plain = pc.fill_null(pc.match_substring_regex(shown, r"^[\x20-\x7e]*$"), True)
    if pc.all(plain).as_py() is not False:
        return shown
    odd = pc.invert(plain)
    fixed = [text(v) for v in shown.filter(odd).to_pylist()]
    flat = shown.combine_chunks() if isinstance(shown, pa.ChunkedArray) else shown
    mask = odd.combine_chunks() if isinstance(odd, pa.ChunkedArray) else odd
    return pc.replace_with_mask(flat, mask, pa.array(fixed, pa.string()))


def connect(
    analysis: Analysis, bundle: Bundle | None = None, users: Users | None = None
) -> duckdb.DuckDBPyConnection:
    """An in-memory database over the run; it reads no file and writes none. `users`: those of the
    analysis, where they are known."""
    con, kind = _opened(analysis)
    sets = add_type_sets(con, users or users_of(analysis))
    files = _with_numbers(analysis.files)
    files = names.with_templates(con, files, _flow(files, sets, analysis.patterns))
    con.register("raw_files", files)
    con.execute(f"CREATE {kind} files AS SELECT *, {names.DIR} AS dir FROM raw_files")
    for name, table in (bundle.tables if bundle else {}).items():
        con.register(f"b_{name}", table)
    return con


def connect_plain(analysis: Analysis) -> duckdb.DuckDBPyConnection:
    """The same for those who ask about each row by itself: of the added columns files have
    path_text and data only, and no column has to be there that nobody asks for."""
    con, _ = _opened(analysis)
    files = analysis.files
    if "path" in files.column_names:
        files = files.append_column("path_text", text_column(files.column("path")))
        files = files.drop_columns("path")
    con.register("raw_files", files)
    con.execute("CREATE TABLE files AS SELECT *, role <> 'software' AS data FROM raw_files")
    con.unregister("raw_files")
    return con


def _opened(analysis: Analysis) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A database with all tables but `files`, and whether they are tables or views."""
    import duckdb

    con = duckdb.connect(":memory:")
    con.execute("SET enable_external_access = false")
    tables = analysis.tables()
    kind = "TABLE" if sum(table.num_rows for table in tables.values()) <= SMALL else "VIEW"
    if kind == "TABLE":
        con.execute("SET threads = 1")
    for name, table in tables.items():
        if name != "files":
            _add(con, kind, name, table)
    con.execute(relation.VIEWS)
    return con, kind


def _with_numbers(files: pa.Table) -> pa.Table:
    """The files with path_text, named, newest and data."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths, roles = files.column("path"), files.column("role")
    named = paths.combine_chunks().dictionary_encode().indices
    for name, values in (
        ("path_text", text_column(paths)),
        ("named", named),
        ("newest", pa.array(_newest(files))),
        ("data", pc.not_equal(roles, "software")),
    ):
        files = files.append_column(name, values)
    return files


def _flow(files: pa.Table, sets: pa.Table, patterns: pa.Table) -> Ints:
    """A number of role, primary label and the types of producers and consumers of each file."""
    flow = np.zeros(files.num_rows, np.int64)
    place = positions(column(sets, "file"), column(files, "file"))
    parts = [np.append(column(sets, name), -1)[place] for name in ("made", "used")]
    for part in (codes(files, "role"), *parts, _primary(files, patterns)):
        _, flow = numbered(flow * (part.max(initial=0) + 2) + part + 1)
    return flow


def _primary(files: pa.Table, patterns: pa.Table) -> Ints:
    """The number of the primary label of each file, the first by its name; -1: there is none."""
    import pyarrow.compute as pc

    own = patterns.select(["file", "pattern", "edge", "primary"])
    own = own.filter(pc.and_(pc.is_null(own.column("edge")), own.column("primary")))
    number, words = coded(own, "pattern")
    rank = np.argsort(np.argsort(words.to_numpy(zero_copy_only=False)))[number]
    file = column(own, "file")
    order = order_by(file, rank)
    first = order[starts_of(file[order])]
    return lookup(file[first], rank[first], column(files, "file"))


def _newest(files: pa.Table) -> Bools:
    """Whether no later version of the same file is there."""
    lineage, version = column(files, "lineage"), column(files, "version")
    order = order_by(lineage, version)
    last = np.append(starts_of(lineage[order])[1:], len(order)) - 1 if len(order) else order
    most = lookup(lineage[order][last], version[order][last], lineage)
    return np.asarray(version == most)


def _add(con: duckdb.DuckDBPyConnection, kind: str, name: str, table: pa.Table) -> None:
    """A view of the Arrow table itself, or a copy of it. Pairs of a fixed size are lists where they
    are asked for: DuckDB's ARRAY type has fewer functions."""
    con.register(f"raw_{name}", table)
    pairs = " REPLACE (ranges::BIGINT[][] AS ranges)" if "ranges" in table.column_names else ""
    con.execute(f'CREATE {kind} "{name}" AS SELECT *{pairs} FROM "raw_{name}"')


def rows(
    con: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The result as a list of dicts (for results of the size of a screen)."""
    cursor = con.execute(sql, parameters) if parameters else con.execute(sql)
    columns = [d[0] for d in cursor.description or []]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def each(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[dict[str, Any]]:
    """The rows of a result of any size, until the connection is asked something else."""
    cursor = con.execute(sql)
    columns = [d[0] for d in cursor.description or []]
    while some := cursor.fetchmany(BATCH):
        for row in some:
            yield dict(zip(columns, row, strict=True))


def arrow_batches(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pa.RecordBatch]:
    """The columns of a result of any size, BATCH rows at a time; as `each`."""
    reader: pa.RecordBatchReader = con.sql(sql).to_arrow_reader(BATCH)
    yield from (batch for batch in reader if batch.num_rows)
