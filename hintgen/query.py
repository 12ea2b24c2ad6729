"""The analysis as SQL tables: what lint, graph, report and diff ask their questions to.

Tables of the analysis keep their names (tasks, files, producers, ...); those of
the bundle are called `b_<name>`. Added columns:

files.path_text  the path as visible text (bytes that are not UTF-8 as `\\xNN`)
files.mask       path_text with every run of digits and every random part as `*`
files.template   as mask, but digits that never change within the mask are kept
files.dir        directory part of path_text ("" at the data root)
files.data       not software
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

# Random parts of names: applied in this order, before digits. RE2 syntax.
RANDOM_PARTS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "*"),  # UUID
    (r"(^|/)work/[0-9a-f]{2}/[0-9a-f]{30}", r"\1work/*/*"),  # Nextflow
    (r"(^|[^0-9A-Za-z])(tmp[._-]?)[A-Za-z0-9_]{6,12}", r"\1\2*"),  # mktemp, tempfile
    (r"(^|/)cc[A-Za-z0-9]{6}\.(s|o|res|le|ld|cdtor)", r"\1cc*.\2"),  # compiler drivers
    (r"[0-9a-f]{16,}", "*"),  # hashes
    (r"[0-9]+", "*"),
)


def text_column(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Binary paths as visible text; one vectorised cast unless some are not UTF-8."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tracehint.hintgen.escape import text

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


def mask_sql(column: str) -> str:
    """SQL expression: `column` with its changing parts as `*`."""
    for pattern, replacement in RANDOM_PARTS:
        column = f"regexp_replace({column}, '{pattern}', '{replacement}', 'g')"
    return column


def connect(analysis: Analysis, bundle: Bundle | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory database over the run; it reads no file and writes none."""
    import duckdb

    con = duckdb.connect(":memory:")
    con.execute("SET enable_external_access = false")
    for name, table in analysis.tables().items():
        if name != "files":
            _load(con, name, _encodable(table))
    files = analysis.files
    files = files.append_column("path_text", text_column(files.column("path")))
    _load(con, "files_raw", files)
    _add_templates(con)
    _group_lone_names(con)
    for name, table in (bundle.tables if bundle else {}).items():
        con.register(f"b_{name}", table)  # read once or twice: not copied
    return con


def _load(con: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    con.register("incoming", table)
    con.execute(f'CREATE TABLE "{name}" AS SELECT * FROM incoming')
    con.unregister("incoming")


def _encodable(table: pa.Table) -> pa.Table:
    """Fixed-size pairs as lists: DuckDB's ARRAY type has fewer functions."""
    import pyarrow as pa

    if "ranges" not in table.column_names:
        return table
    index = table.column_names.index("ranges")
    plain = table.column("ranges").cast(pa.list_(pa.list_(pa.int64())))
    return table.set_column(index, "ranges", plain)


def _add_templates(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        f"""CREATE TABLE files AS
            SELECT *, {mask_sql("path_text")} AS mask, role <> 'software' AS data,
                   regexp_extract(path_text, '^(.*)/[^/]*$', 1) AS dir
            FROM files_raw"""
    )
    con.execute("DROP TABLE files_raw")
    # A position of the mask whose text is the same in every file keeps its text. Where random
    # parts were masked, the runs of digits do not line up with the stars: those keep the mask.
    rows = con.execute(
        """WITH runs AS (SELECT DISTINCT path_text, mask,
                                regexp_extract_all(path_text, '[0-9]+') AS run
                         FROM files WHERE contains(mask, '*')),
                fit AS (SELECT * FROM runs
                        WHERE len(run) = len(mask) - len(replace(mask, '*', ''))
                          AND regexp_replace(path_text, '[0-9]+', '*', 'g') = mask),
                flat AS (SELECT mask, unnest(run) AS part,
                                generate_subscripts(run, 1) AS position FROM fit),
                kept AS (SELECT mask, position,
                                CASE WHEN count(DISTINCT part) = 1 THEN min(part) ELSE '*' END
                                AS part
                         FROM flat GROUP BY ALL)
           SELECT mask, list(part ORDER BY position) FROM kept GROUP BY mask"""
    ).fetchall()
    templates = [(mask, _fill(mask, parts)) for mask, parts in rows]
    con.execute("ALTER TABLE files ADD COLUMN template VARCHAR")
    con.execute("UPDATE files SET template = mask")
    if templates:
        import pyarrow as pa

        table = pa.table({"mask": [m for m, _ in templates], "template": [t for _, t in templates]})
        con.register("incoming", table)
        con.execute(
            "UPDATE files SET template = i.template FROM incoming i WHERE files.mask = i.mask"
        )
        con.unregister("incoming")


def _group_lone_names(con: duckdb.DuckDBPyConnection) -> None:
    """One template for files without digits that are made and used alike: `{a,b,c}.bin`.

    Three or more files of one directory and ending, with the same types of producers and
    consumers and the same primary label, whose templates stand for one path each.
    """
    con.execute(
        """CREATE TEMP TABLE lone AS
        WITH p AS (SELECT file, string_agg(DISTINCT t.type, chr(10) ORDER BY t.type) AS made
                   FROM producers JOIN tasks t USING (task) GROUP BY file),
             c AS (SELECT file, string_agg(DISTINCT t.type, chr(10) ORDER BY t.type) AS used
                   FROM consumers JOIN tasks t USING (task) GROUP BY file),
             l AS (SELECT file, min(pattern) AS pattern FROM patterns
                   WHERE edge IS NULL AND "primary" GROUP BY file),
             single AS (SELECT template FROM files WHERE data GROUP BY template
                        HAVING count(DISTINCT path) = 1),
             named AS (SELECT f.template, f.dir, f.role, p.made, c.used, l.pattern,
                              regexp_extract(f.path_text, '(\\.[^./]*)?$') AS ending,
                              regexp_extract(f.path_text, '([^/]*?)(\\.[^./]*)?$', 1) AS stem
                       FROM files f JOIN single USING (template)
                       LEFT JOIN p USING (file) LEFT JOIN c USING (file)
                       LEFT JOIN l USING (file)),
             alike AS (SELECT dir, ending, list(DISTINCT template) AS members,
                              list_sort(list(DISTINCT stem)) AS stems
                       FROM named GROUP BY dir, ending, role, made, used, pattern
                       HAVING count(DISTINCT template) >= 3)
        SELECT unnest(members) AS template,
               CASE WHEN dir = '' THEN '' ELSE dir || '/' END || '{'
               || array_to_string(stems[1:3], ',')
               || CASE WHEN len(stems) > 3 THEN ',+' || (len(stems) - 3) ELSE '' END
               || '}' || ending AS shared
        FROM alike"""
    )
    # A path with several versions can be alike with several groups: it keeps the first.
    con.execute(
        """UPDATE files SET template = l.shared
           FROM (SELECT template, min(shared) AS shared FROM lone GROUP BY template) l
           WHERE files.template = l.template"""
    )
    con.execute("DROP TABLE lone")


def _fill(mask: str, parts: Iterable[str]) -> str:
    pieces = mask.split("*")
    return pieces[0] + "".join(p + rest for p, rest in zip(parts, pieces[1:], strict=True))


def rows(
    con: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The result as a list of dicts (for results of the size of a screen)."""
    cursor = con.execute(sql, parameters) if parameters else con.execute(sql)
    names = [d[0] for d in cursor.description or []]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
