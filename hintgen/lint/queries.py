"""SQL shared by several rules: blocks, floods of metadata calls, missing placement hints."""

from __future__ import annotations

from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL, PLACED_SQL

# Block size per file: the hint in force, else the setting.
BLOCK_SQL = """
         block AS (SELECT f.file, coalesce(try_cast(h.value AS BIGINT), $block_size) AS bs
                   FROM p JOIN files f USING (file)
                   LEFT JOIN in_force h ON h.path_text = f.path_text AND h.name = 'BlockSize')"""

# Only the first and the last block of a range can be shared.
PART_SQL = """
         part AS (SELECT region.*, k, least(b, (k + 1) * bs) - greatest(a, k * bs) AS bytes
                  FROM region JOIN block USING (file),
                       unnest(list_distinct([a // bs, (b - 1) // bs])) AS u(k))"""


def by_template(column: str, name: str) -> str:
    """Return the rest of the query; `name`: result column with `column`, a task count."""
    return f"""
         per_file AS (SELECT file, count(*) AS blocks, sum(moved) AS moved
                      FROM shared GROUP BY file)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, list(f.file) AS placed,
           {CONFIDENCE_SQL}, sum(s.blocks)::BIGINT AS blocks, max(block.bs) AS block_size,
           max(ft.{column}) AS {name}
    FROM per_file s JOIN p USING (file) JOIN files f USING (file)
         JOIN file_types ft USING (file) JOIN block USING (file)
    GROUP BY {GROUP_SQL} HAVING sum(s.moved) >= $min_bytes"""


def storm(*operations: str) -> str:
    """Return SQL: task types with many such calls in total and per opened file, and where."""
    wanted = ", ".join(f"'{name}'" for name in operations)
    return f"""
    WITH opened AS (SELECT type, count(DISTINCT path_text) AS files FROM b_io GROUP BY type),
         calls AS (SELECT type, arg_max(dir, n) AS dir, sum(n)::BIGINT AS n
                   FROM (SELECT type, dir_text AS dir, sum(count) AS n FROM b_meta
                         WHERE op IN ({wanted}) AND inside GROUP BY ALL) GROUP BY type)
    SELECT c.dir || '/' AS template, coalesce(o.files, 0) AS files, 0 AS bytes,
           '' AS producers, c.type AS consumers, c.n AS operations, c.n AS calls
    FROM calls c LEFT JOIN opened o USING (type)
    WHERE c.n >= $storm_ops AND c.n >= $stat_ops_per_file * greatest(1, coalesce(o.files, 0))"""


def select_unhinted(pattern: str, hint: str, *columns: str) -> str:
    """Return SQL: files with this primary label that ask for a placement without such a hint.

    `hint` is a condition on in_force (name, value); `columns`: further columns of the result.
    """
    more = "".join(f", {column}" for column in columns)
    # A declared reader that read nothing has an edge but causes no traffic.
    return f"""
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {PLACED_SQL}, {CONFIDENCE_SQL}{more}
        FROM primary_label p JOIN files f USING (file) JOIN file_types ft USING (file)
        WHERE p.pattern = '{pattern}' AND f.data AND ft.n_consumers > 0
          AND coalesce(p.placement, '') <> 'default'
          AND f.path_text NOT IN (SELECT path_text FROM in_force WHERE {hint})
        GROUP BY {GROUP_SQL}
        HAVING coalesce(sum(f.size_bytes * greatest(1, ft.n_readers)), $min_bytes) >= $min_bytes"""
