"""The analysis as SQL tables, queried by lint, graph, report and diff.

Tables of the analysis keep their names (tasks, files, producers, ...); those of
the bundle are called `b_<name>`. Views: see file_users.py. Added columns:

files.path_text  the path as printable text (bytes that are not UTF-8 as `\\xNN`)
files.mask       path_text with each sequence of digits and each random part as `*`
files.template   as mask, but keeps digits that are constant among files used alike
files.dir        directory part of path_text ("" at the data root)
files.data       not software
files.newest     no later version of the file exists
files.named      number of the path; files.shape: number of the template
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    codes,
    column,
    encode_column,
    ints,
    lookup,
    order_by,
    positions,
    rank_values,
    spread,
    starts_of,
)
from tracehint.hintgen import file_users
from tracehint.hintgen.file_users import Users, add_type_sets, users_of
from tracehint.hintgen.text.masks import layouts_of, show_shapes

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle


# Templates of file names for display: parts that vary between files become a star.
#
# A template is made per group of files that are *alike*: same mask (masks.py), role,
# primary label, and types of producers and consumers.

VARIES = "*"
AT_ONCE = 1 << 19  # digit runs compared at one time, with 24 bytes of memory per digit


class DigitRuns:
    """Sequences of digits of each text. `count`: their number. `texts`: one array without nulls."""

    def __init__(self, texts: pa.Array) -> None:
        _, ends, text = texts.buffers()
        place = np.frombuffer(ends, np.int32)[texts.offset :][: len(texts) + 1].astype(np.int64)
        self._bytes = np.frombuffer(text or b"", np.uint8)[: place[-1]]
        digit = (self._bytes >= ord("0")) & (self._bytes <= ord("9"))
        digit[: place[0]] = False
        first = np.zeros(len(digit) + 1, bool)
        first[place[:-1]] = True
        before = np.append(False, digit[:-1]) & ~first[:-1]
        after = np.append(digit[1:], False) & ~first[1:]
        self._start = np.flatnonzero(digit & ~before)
        self._length = np.flatnonzero(digit & ~after) + 1 - self._start
        text_of = np.searchsorted(place, self._start, "right") - 1
        self.count = np.bincount(text_of, minlength=len(texts))
        self._first = np.cumsum(self.count) - self.count

    def constant(self, rows: Ints, kind: Ints) -> Iterator[tuple[int, list[str]]]:
        """Yield (kind, its digit runs, VARIES where they differ); a kind's texts have equally many.

        `kind`: the kind of each of the rows.
        """
        rows = rows[order_by(kind)]
        kind = np.sort(kind)
        first = starts_of(kind)
        model = np.repeat(rows[first], np.diff(np.append(first, len(rows))))
        run, other = self._runs(rows), self._runs(model)
        varies = np.zeros(len(self._start), bool)
        varies[other[~self._same(run, other)]] = True
        shown = iter(self._format_runs(self._runs(rows[first]), varies))
        for name, many in zip(kind[first].tolist(), self.count[rows[first]].tolist(), strict=True):
            yield name, list(islice(shown, many))

    def _runs(self, rows: Ints) -> Ints:
        return spread(self._first[rows], self.count[rows])

    def _same(self, run: Ints, other: Ints) -> Bools:
        same: Bools = self._length[run] == self._length[other]
        alike = np.flatnonzero(same)
        for begin in range(0, len(alike), AT_ONCE):
            some = alike[begin : begin + AT_ONCE]
            length = self._length[run[some]]
            left, right = (spread(self._start[side[some]], length) for side in (run, other))
            owner = np.repeat(some, length)
            same[owner[self._bytes[left] != self._bytes[right]]] = False
        return same

    def _format_runs(self, runs: Ints, varies: Bools) -> Iterator[str]:
        text = self._bytes.data
        ends = self._start[runs] + self._length[runs]
        for start, end, other in zip(
            self._start[runs].tolist(), ends.tolist(), varies[runs].tolist(), strict=True
        ):
            yield VARIES if other else str(text[start:end], "ascii")


# Files without digits that are used alike share one template: `{a,b,c}.bin`.
DIR = "CASE path_text WHEN '/' THEN '' ELSE parse_dirpath(path_text, 'forward_slash') END"
# `lone`: files whose shape is unique to one name.
_LONE = f"""
    WITH named AS (SELECT shape, flow, {DIR} AS dir,
                          regexp_extract(path_text, '(\\.[^./]*)?$') AS ending,
                          regexp_extract(path_text, '([^/]*?)(\\.[^./]*)?$', 1) AS stem
                   FROM lone),
         shared AS (SELECT dir, ending, list(DISTINCT shape) AS members,
                           list_sort(list(DISTINCT stem)) AS stems
                    FROM named GROUP BY dir, ending, flow HAVING count(DISTINCT shape) >= 3),
         each_ AS (SELECT unnest(members) AS shape,
           CASE WHEN dir = '' THEN '' ELSE dir || '/' END || '{{'
           || array_to_string(stems[1:3], ',')
           || CASE WHEN len(stems) > 3 THEN ',+' || (len(stems) - 3) ELSE '' END
           || '}}' || ending AS text FROM shared)
    SELECT shape, min(text) AS text FROM each_ GROUP BY shape"""


def with_templates(con: duckdb.DuckDBPyConnection, files: pa.Table, flow: Ints) -> pa.Table:
    """Add mask, template and shape (see query.py), dictionary-encoded. `files` has path_text,
    named and data. `flow`: a number that is equal for files that are alike except for their
    mask."""
    texts = files["path_text"].combine_chunks()
    layouts = layouts_of(texts)
    masks = show_shapes(layouts.shapes).cast(pa.string()).dictionary_encode("encode")
    number = masks.indices.take(layouts.code)
    kind = flow * len(masks.dictionary) + ints(number.to_numpy())
    plain = _are_digit_masks(layouts.known, masks).to_numpy(zero_copy_only=False)[
        layouts.code.to_numpy()
    ]
    templates = _templates(texts, masks, ints(number.to_numpy()), kind, plain)
    templates = _with_lone_names(con, files, templates, flow)
    for name, values in (
        ("mask", pa.DictionaryArray.from_arrays(number, masks.dictionary)),
        ("shape", templates.indices),
        ("template", templates),
    ):
        files = files.append_column(name, values)
    return files


def _are_digit_masks(layouts: pa.Array, masks: pa.DictionaryArray) -> pa.Array:
    """Whether the stars of each layout's mask are exactly its digit runs."""
    only_digits = pc.replace_substring_regex(layouts, pattern="[0-9]+", replacement="*")
    return pc.fill_null(pc.equal(only_digits, masks.dictionary_decode().cast(pa.binary())), False)


def _templates(
    texts: pa.Array, masks: pa.DictionaryArray, number: Ints, kind: Ints, plain: Bools
) -> pa.DictionaryArray:
    """Return the template of each file: the mask, with stars replaced by text that is constant in
    all files of a kind.

    Files with masked random parts keep the mask, as their digit runs do not correspond to its
    stars. `number`: the mask of each file. `plain`: files whose digit runs correspond.
    """
    known = masks.dictionary.to_pylist()
    stars = np.array([0 if mask is None else mask.count("*") for mask in known], np.int64)
    runs = DigitRuns(pc.fill_null(texts, ""))
    rows = np.flatnonzero(plain & (stars[number] > 0) & (runs.count == stars[number]))
    kinds, at = rank_values(kind)
    mask = np.zeros(len(kinds), np.int64)
    mask[at] = number  # of all files of a kind
    mask_of = dict(zip(kinds.tolist(), mask.tolist(), strict=True))
    found = {
        key: _fill(known[mask_of[key]], parts) for key, parts in runs.constant(rows, kind[rows])
    }
    labels = [found.get(key, known[mask_of[key]]) for key in kinds.tolist()]
    return _code_texts(labels, pa.array(at))


def _with_lone_names(
    con: duckdb.DuckDBPyConnection, files: pa.Table, templates: pa.DictionaryArray, flow: Ints
) -> pa.DictionaryArray:
    """Return the templates, with one shared by lone names used alike. A path with several versions
    can belong to several groups; the first one counts."""
    shape = templates.indices.to_numpy()
    named = column(files, "named")
    data = column(files, "data", 0) != 0
    one = np.full(len(templates.dictionary), -1, np.int64)
    one[shape[data]] = named[data]
    alone = one >= 0
    alone[shape[data][named[data] != one[shape[data]]]] = False
    rows = np.flatnonzero(alone[shape])
    lone = {"shape": shape[rows], "flow": flow[rows], "path_text": files["path_text"].take(rows)}
    con.register("lone", pa.table(lone))
    shared = dict(con.execute(_LONE).fetchall())
    con.unregister("lone")
    known = templates.dictionary.to_pylist()
    return _code_texts([shared.get(n, text) for n, text in enumerate(known)], templates.indices)


def _code_texts(texts: list[str | None], at: pa.Array) -> pa.DictionaryArray:
    """Return the text at each index, dictionary-encoded without duplicates."""
    encoded = pa.array(texts, pa.string()).dictionary_encode("encode")
    return pa.DictionaryArray.from_arrays(encoded.indices.take(at), encoded.dictionary)


def _fill(mask: str, parts: Iterable[str]) -> str:
    pieces = mask.split("*")
    return pieces[0] + "".join(p + rest for p, rest in zip(parts, pieces[1:], strict=True))


BATCH = 10_000  # rows of a large result converted to Python at one time
# For small tables, starting threads takes longer than their work, and copying takes less time
# than DuckDB's access to Arrow columns in a query.
SMALL = 20_000  # rows of all tables of the analysis


def text_column(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return binary paths as printable text, with one vectorised cast unless some are not UTF-8."""
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
    """Return an in-memory database of the run, without access to files. `users`: those of the
    analysis, if already computed."""
    con, kind = _open_database(analysis)
    sets = add_type_sets(con, users or users_of(analysis))
    files = _with_numbers(analysis.files)
    files = with_templates(con, files, _flow(files, sets, analysis.patterns))
    con.register("raw_files", files)
    con.execute(f"CREATE {kind} files AS SELECT *, {DIR} AS dir FROM raw_files")
    for name, table in (bundle.tables if bundle else {}).items():
        con.register(f"b_{name}", table)
    return con


def connect_plain(analysis: Analysis) -> duckdb.DuckDBPyConnection:
    """Return a database for queries of single rows: of the added columns, files have only path_text
    and data, and columns that no query uses may be missing."""
    con, _ = _open_database(analysis)
    files = analysis.files
    if "path" in files.column_names:
        files = files.append_column("path_text", text_column(files.column("path")))
        files = files.drop_columns("path")
    con.register("raw_files", files)
    con.execute("CREATE TABLE files AS SELECT *, role <> 'software' AS data FROM raw_files")
    con.unregister("raw_files")
    return con


def _open_database(analysis: Analysis) -> tuple[duckdb.DuckDBPyConnection, str]:
    """Return a database with all tables but `files`, and "TABLE" or "VIEW", their kind."""
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
    con.execute(file_users.VIEWS)
    return con, kind


def _with_numbers(files: pa.Table) -> pa.Table:
    """Add path_text, named, newest and data to the files."""
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
    """Return a number for the role, primary label, producer and consumer types of each file."""
    flow = np.zeros(files.num_rows, np.int64)
    place = positions(column(sets, "file"), column(files, "file"))
    parts = [np.append(column(sets, name), -1)[place] for name in ("made", "used")]
    for part in (codes(files, "role"), *parts, _primary(files, patterns)):
        _, flow = rank_values(flow * (part.max(initial=0) + 2) + part + 1)
    return flow


def _primary(files: pa.Table, patterns: pa.Table) -> Ints:
    """Return the number of each file's primary label, the first by name; -1: none."""
    import pyarrow.compute as pc

    own = patterns.select(["file", "pattern", "edge", "primary"])
    own = own.filter(pc.and_(pc.is_null(own.column("edge")), own.column("primary")))
    number, words = encode_column(own, "pattern")
    rank = np.argsort(np.argsort(words.to_numpy(zero_copy_only=False)))[number]
    file = column(own, "file")
    order = order_by(file, rank)
    first = order[starts_of(file[order])]
    return lookup(file[first], rank[first], column(files, "file"))


def _newest(files: pa.Table) -> Bools:
    """Return a mask of the files without a later version."""
    lineage, version = column(files, "lineage"), column(files, "version")
    order = order_by(lineage, version)
    last = np.append(starts_of(lineage[order])[1:], len(order)) - 1 if len(order) else order
    most = lookup(lineage[order][last], version[order][last], lineage)
    return np.asarray(version == most)


def _add(con: duckdb.DuckDBPyConnection, kind: str, name: str, table: pa.Table) -> None:
    """Add a view or a copy of an Arrow table. Ranges (fixed-size pairs) become lists:
    DuckDB's ARRAY type has fewer functions."""
    con.register(f"raw_{name}", table)
    pairs = " REPLACE (ranges::BIGINT[][] AS ranges)" if "ranges" in table.column_names else ""
    con.execute(f'CREATE {kind} "{name}" AS SELECT *{pairs} FROM "raw_{name}"')


def rows(
    con: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the result as a list of dicts, for small results."""
    cursor = con.execute(sql, parameters) if parameters else con.execute(sql)
    columns = [d[0] for d in cursor.description or []]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def each(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a result of any size; the next query on the connection ends it."""
    cursor = con.execute(sql)
    columns = [d[0] for d in cursor.description or []]
    while some := cursor.fetchmany(BATCH):
        for row in some:
            yield dict(zip(columns, row, strict=True))


def arrow_batches(con: duckdb.DuckDBPyConnection, sql: str) -> Iterator[pa.RecordBatch]:
    """Yield a result of any size in batches of BATCH rows; the next query ends it."""
    reader: pa.RecordBatchReader = con.sql(sql).to_arrow_reader(BATCH)
    yield from (batch for batch in reader if batch.num_rows)
