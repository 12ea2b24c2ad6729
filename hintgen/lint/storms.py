"""SQL that the rules about floods of metadata calls share."""

from __future__ import annotations


def storm(*operations: str) -> str:
    """Task types with many such calls in all and per file that they opened, and the directory."""
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
