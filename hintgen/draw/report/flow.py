"""Bytes between stages for the Sankey diagram, without cycles (the diagram knows none)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb

MAX_STAGES = 60

# Types as numbers, and one row per file and pair of stages, before any text is looked at.
_LINKS = """
    WITH kind AS (SELECT type, row_number() OVER (ORDER BY type) AS number
                  FROM (SELECT DISTINCT type FROM tasks WHERE NOT engine)),
         stage AS MATERIALIZED (SELECT task, number AS type FROM tasks t JOIN kind k
                                ON t.type IS NOT DISTINCT FROM k.type WHERE NOT engine),
         label AS (SELECT file, pattern FROM patterns WHERE edge IS NULL AND "primary"),
         raw AS (
      SELECT p.type AS source, c.type AS target, e.bytes, e.file
      FROM edges e JOIN stage p ON p.task = e.producer JOIN stage c ON c.task = e.consumer
      UNION ALL
      SELECT NULL, s.type, c.unique_bytes, c.file
      FROM consumers c JOIN stage s USING (task) JOIN files f USING (file) WHERE f.role = 'input'
      UNION ALL
      SELECT s.type, NULL, p.unique_bytes, p.file
      FROM producers p JOIN stage s USING (task) JOIN files f USING (file)
      WHERE f.role = 'output' AND NOT p.superseded),
         per_file AS MATERIALIZED (SELECT source, target, file, sum(bytes) AS bytes, count(*) AS n
                                   FROM raw GROUP BY ALL),
         files_of AS (SELECT source, target, count(*) AS files FROM per_file GROUP BY ALL),
         part AS (SELECT source, target, l.pattern, sum(bytes) AS bytes, sum(n)::BIGINT AS n
                  FROM per_file LEFT JOIN label l USING (file) GROUP BY ALL),
         link AS (SELECT source, target, sum(bytes)::BIGINT AS bytes,
                         coalesce(arg_min(pattern, (-n, pattern)) FILTER (pattern IS NOT NULL), '')
                         AS pattern
                  FROM part GROUP BY source, target HAVING sum(bytes) > 0)
    SELECT s.type AS source, t.type AS target, bytes, files, pattern
    FROM link l JOIN files_of o ON l.source IS NOT DISTINCT FROM o.source
                               AND l.target IS NOT DISTINCT FROM o.target
         LEFT JOIN kind s ON s.number = l.source LEFT JOIN kind t ON t.number = l.target
    ORDER BY bytes DESC, source, target"""
_ORDER = """
    SELECT type, row_number() OVER (ORDER BY min(start_s), type) AS rank
    FROM tasks WHERE NOT engine GROUP BY type"""


def sankey(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Stages in order of their first start; `back` counts bytes that flow to an earlier stage
    or within one, which are not drawn. Node -1 stands for the inputs, -2 for the outputs."""
    rank = {r["type"]: int(r["rank"]) - 1 for r in query.rows(con, _ORDER)}
    names = sorted(rank, key=rank.__getitem__)
    links, back, dropped = [], 0, 0
    for row in query.rows(con, _LINKS):
        source = -1 if row["source"] is None else rank[row["source"]]
        target = -2 if row["target"] is None else rank[row["target"]]
        if target != -2 and source >= target:
            back += row["bytes"]
        elif max(source, target) >= MAX_STAGES:
            dropped += row["bytes"]
        else:
            links.append(
                {
                    "source": source,
                    "target": target,
                    "bytes": row["bytes"],
                    "files": row["files"],
                    "pattern": row["pattern"],
                }
            )
    return {"stages": names[:MAX_STAGES], "links": links, "back": back, "dropped": dropped}
