"""Single tasks, files and accesses: the largest ones, as many as the page has room for.

Columns instead of rows: the page stays small. Everything else on the page counts all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
    ORDER BY coalesce(l.saves_bytes, 0) DESC, f.size_bytes DESC NULLS LAST, f.file LIMIT {rows}"""
_FILES = """
    SELECT f.file, n.node, f.path_text AS path, f.version, f.role, f.size_bytes, f.deleted,
           coalesce(l.pattern, '') AS pattern, round(coalesce(l.confidence, 1), 3) AS confidence,
           coalesce(l.saves_bytes, 0) AS saves_bytes, coalesce(l.placement, '') AS placement,
           coalesce(l.runner_up, '') AS runner_up,
           coalesce(l.runner_up_saves_bytes, 0) AS runner_up_saves_bytes,
           coalesce(l.evidence, '') AS evidence,
           coalesce(o.others, '') AS others
    FROM kept_files JOIN files f USING (file) JOIN file_node n USING (file)
    LEFT JOIN (SELECT * FROM patterns WHERE edge IS NULL AND "primary"
               AND file IN (SELECT file FROM kept_files)) l USING (file)
    LEFT JOIN (SELECT file, string_agg(DISTINCT pattern, ', ' ORDER BY pattern) AS others
               FROM patterns WHERE edge IS NULL AND NOT "primary"
               AND file IN (SELECT file FROM kept_files) GROUP BY file) o USING (file)
    ORDER BY coalesce(l.saves_bytes, 0) DESC, f.size_bytes DESC NULLS LAST, f.file"""
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
_CODED = {
    "tasks": ("node", "host", "command"),
    "files": ("node", "role", "pattern", "placement", "runner_up", "evidence", "others"),
}


def detail(con: duckdb.DuckDBPyConnection, rows: int) -> dict[str, Any]:
    """`tasks` and `files` (at most `rows` of each), `pairs` of them, and `left_out`: what is not
    among them -> how many. `con`: with the tables of draw.build.build_on."""
    con.execute(_KEPT_TASKS.format(rows=int(rows)))
    con.execute(_KEPT_FILES.format(rows=int(rows)))
    tasks, files = _columns(con, _TASKS), _columns(con, _FILES)
    pairs = _columns(con, _PAIRS.format(rows=int(rows) * PAIRS_PER_ROW))
    counts = con.execute(_COUNTS).fetchone() or (0, 0, 0)
    shown = (len(tasks["task"]), len(files["file"]), len(pairs["task"]))
    # Rows are known by their position from here on.
    task_at = {task: i for i, task in enumerate(tasks.pop("task"))}
    file_at = {file: i for i, file in enumerate(files.pop("file"))}
    pairs["task"] = [task_at[t] for t in pairs["task"]]
    pairs["file"] = [file_at[f] for f in pairs["file"]]
    for table, name in ((tasks, "tasks"), (files, "files")):
        table.update({column: _coded(table[column]) for column in _CODED[name]})
    files["evidence"]["values"] = [_evidence(e) for e in files["evidence"]["values"]]
    names = ("tasks", "files", "accesses")
    left_out = {name: n - k for name, n, k in zip(names, counts, shown, strict=True) if k < n}
    return {"tasks": tasks, "files": files, "pairs": pairs, "left_out": left_out}


def _columns(con: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    cursor = con.execute(sql)
    names = [d[0] for d in cursor.description or []]
    rows = cursor.fetchall()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _coded(values: Sequence[Any]) -> dict[str, Any]:
    """A column as distinct values and indexes into them."""
    known: dict[Any, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return {"values": list(known), "codes": codes}


def _evidence(raw: str) -> dict[str, Any]:
    """Evidence of a label, without lists that would fill a screen."""
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
