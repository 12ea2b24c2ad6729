"""Panels of the report: single tasks and files, bytes between stages, heat maps of accesses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb


PAIRS_PER_ROW = 6  # accesses shown for each task or file shown
MAX_EVIDENCE = 600  # characters of one file's evidence

# Largest: by bytes moved, then the longest.
_KEPT_TASKS = """
    CREATE OR REPLACE TEMP TABLE kept_tasks AS
    SELECT t.task, coalesce(r.bytes, 0)::BIGINT AS read_bytes,
           coalesce(w.bytes, 0)::BIGINT AS written_bytes
    FROM work t
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM consumers GROUP BY 1) r USING (task)
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM producers GROUP BY 1) w USING (task)
    ORDER BY coalesce(r.bytes, 0) + coalesce(w.bytes, 0) DESC,
             coalesce(t.end_s - t.start_s, 0) DESC, t.task LIMIT {rows}"""
_TASKS = """
    SELECT t.task, n.node, t.name, t.command, t.host, round(t.start_s, 3) AS start_s,
           round(t.end_s, 3) AS end_s, t.exit_status, t.attempt, k.read_bytes, k.written_bytes
    FROM kept_tasks k JOIN tasks t USING (task) JOIN task_node n USING (task)
    ORDER BY t.start_s, t.task"""
_KEPT_FILES = """
    CREATE OR REPLACE TEMP TABLE kept_files AS
    SELECT f.file FROM files f JOIN file_node n USING (file)
    LEFT JOIN label l USING (file)
    ORDER BY f.size_bytes DESC NULLS LAST, f.file LIMIT {rows}"""
_FILES = """
    SELECT f.file, n.node, f.path_text AS path, f.version, f.role, f.size_bytes, f.deleted,
           coalesce(l.pattern, '') AS pattern, round(coalesce(l.confidence, 1), 3) AS confidence,
           coalesce(l.placement, '') AS placement,
           coalesce(l.runner_up, '') AS runner_up,
           coalesce(l.evidence, '') AS evidence,
           coalesce(o.others, '') AS others
    FROM kept_files JOIN files f USING (file) JOIN file_node n USING (file)
    LEFT JOIN (SELECT * FROM patterns WHERE edge IS NULL AND "primary"
               AND file IN (SELECT file FROM kept_files)) l USING (file)
    LEFT JOIN (SELECT file, string_agg(DISTINCT pattern, ', ' ORDER BY pattern) AS others
               FROM patterns WHERE edge IS NULL AND NOT "primary"
               AND file IN (SELECT file FROM kept_files) GROUP BY file) o USING (file)
    ORDER BY f.size_bytes DESC NULLS LAST, f.file"""
_PAIRS = """
    SELECT * FROM (
      SELECT task, file, unique_bytes AS bytes, 0 AS kind FROM writers
      UNION ALL
      SELECT task, file, unique_bytes, CASE WHEN peek THEN 2 ELSE 1 END FROM readers)
    WHERE task IN (SELECT task FROM kept_tasks) AND file IN (SELECT file FROM kept_files)
    ORDER BY bytes DESC, task, file, kind LIMIT {rows}"""
_COUNTS = """
    SELECT (SELECT count(*) FROM work), (SELECT count(*) FROM file_node),
           (SELECT count(*) FROM writers JOIN file_node USING (file))
           + (SELECT count(*) FROM readers JOIN file_node USING (file))"""
_ENCODED = {
    "tasks": ("node", "host", "command"),
    "files": ("node", "role", "pattern", "placement", "runner_up", "evidence", "others"),
}


def detail(con: duckdb.DuckDBPyConnection, rows: int) -> dict[str, Any]:
    """Return `tasks` and `files` (at most `rows` of each), `pairs` of them, and `left_out`: kind ->
    number of rows that are not included. `con`: with the tables of drawing.build_on."""
    con.execute(_KEPT_TASKS.format(rows=int(rows)))
    con.execute(_KEPT_FILES.format(rows=int(rows)))
    tasks, files = _columns(con, _TASKS), _columns(con, _FILES)
    pairs = _columns(con, _PAIRS.format(rows=int(rows) * PAIRS_PER_ROW))
    counts = con.execute(_COUNTS).fetchone() or (0, 0, 0)
    shown = (len(tasks["task"]), len(files["file"]), len(pairs["task"]))
    # From here on, rows are identified by position.
    task_at = {task: i for i, task in enumerate(tasks.pop("task"))}
    file_at = {file: i for i, file in enumerate(files.pop("file"))}
    pairs["task"] = [task_at[t] for t in pairs["task"]]
    pairs["file"] = [file_at[f] for f in pairs["file"]]
    for table, name in ((tasks, "tasks"), (files, "files")):
        table.update({column: _encode_column(table[column]) for column in _ENCODED[name]})
    files["evidence"]["values"] = [_parse_evidence(e) for e in files["evidence"]["values"]]
    names = ("tasks", "files", "accesses")
    left_out = {name: n - k for name, n, k in zip(names, counts, shown, strict=True) if k < n}
    return {"tasks": tasks, "files": files, "pairs": pairs, "left_out": left_out}


def _columns(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    cursor = con.execute(sql)
    names = [d[0] for d in cursor.description or []]
    rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _encode_column(values: Sequence[Any]) -> dict[str, Any]:
    """Encode a column as distinct values and indexes into them."""
    known: dict[Any, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return {"values": list(known), "codes": codes}


def _parse_evidence(raw: str) -> dict[str, Any]:
    """Parse the evidence of a label; long lists are cut, large values left out."""
    try:
        data = json.loads(raw) if raw else {}
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    short: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, list) and len(value) > 8:
            value = [*value[:8], f"… {len(value) - 8} more"]
        if len(json.dumps(value)) <= MAX_EVIDENCE:
            short[name] = value
    return short


BINS = 64
MAX_FILES = 12
MAX_TASKS = 64

# The largest file of each template and pattern, so that no template fills the list.
_HEAT_FILES = f"""
    SELECT p.file, f.path_text AS path, p.pattern, f.size_bytes, f.version
    FROM patterns p JOIN files f USING (file)
    WHERE p.edge IS NULL AND p.pattern IN ('scatter', 'gather', 'partly_shared')
      AND p."primary" AND f.size_bytes > 0
    QUALIFY row_number() OVER (PARTITION BY f.template, p.pattern
                               ORDER BY f.size_bytes DESC, f.file) = 1
    ORDER BY f.size_bytes DESC, p.file LIMIT {MAX_FILES}"""
_RANGES = """
    SELECT t.name, t.start_s, s.ranges FROM {table} s JOIN tasks t USING (task)
    WHERE s.file = $file AND NOT t.engine AND len(s.ranges) > 0
    ORDER BY s.ranges[1][1], t.start_s, t.task"""


def heat_maps(con: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return a map per file: `cells` [bin, task, share of the bin's bytes the task touched]."""
    maps = []
    for file in query.rows(con, _HEAT_FILES):
        table = "producers" if file["pattern"] == "gather" else "consumers"
        rows = query.rows(con, _RANGES.format(table=table), {"file": file["file"]})
        if not rows:
            continue
        cells = []
        for index, row in enumerate(rows[:MAX_TASKS]):
            shares = _measure_coverage(row["ranges"], file["size_bytes"])
            cells += [[b, index, round(s, 3)] for b, s in enumerate(shares) if s > 0]
        maps.append(
            {
                "path": file["path"],
                "version": file["version"],
                "pattern": file["pattern"],
                "size_bytes": file["size_bytes"],
                "tasks": [r["name"] for r in rows[:MAX_TASKS]],
                "more_tasks": max(0, len(rows) - MAX_TASKS),
                "bins": BINS,
                "cells": cells,
            }
        )
    return maps


def _measure_coverage(ranges: list[list[int]], size: int) -> list[float]:
    """Return the covered share of each of BINS equal parts of the file; `ranges` are sorted."""
    import numpy as np

    spans = np.array(ranges, dtype=float).reshape(-1, 2)
    edges = np.linspace(0.0, float(size), BINS + 1)
    # Covered bytes up to each edge: whole ranges before it, plus the part of the one it cuts.
    starts, ends = spans[:, 0], spans[:, 1]
    whole = np.concatenate([[0.0], np.cumsum(ends - starts)])
    index = np.searchsorted(starts, edges, side="right")
    before = whole[index]
    cut = np.where(index > 0, np.maximum(ends[np.maximum(index - 1, 0)] - edges, 0.0), 0.0)
    covered = np.diff(before - cut)
    shares: list[float] = (covered / (size / BINS)).clip(0, 1).tolist()
    return shares


MAX_STAGES = 60

# Types are aggregated as numbers, one row per file and pair of stages, before texts are joined.
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
    """Return stages in order of their first start; `back` counts bytes that flow to an earlier
    stage or within one, which are not drawn. Node -1 is the inputs, -2 the outputs."""
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
