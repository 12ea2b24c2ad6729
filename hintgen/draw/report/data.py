"""Everything that the report page shows, as one JSON-able dict.

Columns instead of rows where there is one entry per task, file or access: the
page stays small. What would make it too large is left out and named in `left_out`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query
from tracehint.hintgen.draw import palette
from tracehint.hintgen.draw.build import build_on
from tracehint.hintgen.draw.model import title
from tracehint.hintgen.draw.report import flow, heat, timeline
from tracehint.hintgen.lint.finding import total
from tracehint.hintgen.lint.render.json_ import as_dict
from tracehint.hintgen.text.escape import text
from tracehint.version import __version__

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.lint.finding import Finding

MAX_TASKS = 20_000
MAX_FILES = 20_000
MAX_PAIRS = 60_000
MAX_EVIDENCE = 600  # characters of one file's evidence

_TOTALS = """
    SELECT (SELECT count(*) FROM tasks WHERE NOT engine) AS tasks,
           (SELECT count(DISTINCT type) FROM tasks WHERE NOT engine) AS types,
           (SELECT count(DISTINCT path) FROM files WHERE data) AS files,
           (SELECT coalesce(sum(bytes), 0)::BIGINT FROM consumers c JOIN tasks t USING (task)
            JOIN files f USING (file) WHERE NOT t.engine AND f.data) AS read_bytes,
           (SELECT coalesce(sum(bytes), 0)::BIGINT FROM producers c JOIN tasks t USING (task)
            JOIN files f USING (file) WHERE NOT t.engine AND f.data) AS written_bytes,
           (SELECT coalesce(sum(bytes), 0)::BIGINT FROM edges) AS handed_bytes,
           (SELECT count(*) FROM tasks WHERE NOT engine AND exit_status <> 0) AS failed"""
# Bytes as the summary counts them: what all readers read, or the size where nobody reads.
_MIX = """
    SELECT p.pattern, count(*) AS files,
           coalesce(sum(coalesce(c.bytes, f.size_bytes)), 0)::BIGINT AS bytes,
           coalesce(sum(greatest(p.saves_bytes, 0)), 0)::BIGINT AS saves_bytes
    FROM patterns p JOIN files f USING (file)
    LEFT JOIN (SELECT file, sum(unique_bytes) AS bytes FROM consumers GROUP BY 1) c USING (file)
    WHERE p.edge IS NULL AND p."primary" AND f.data
    GROUP BY p.pattern ORDER BY bytes DESC, p.pattern"""
_STAGES = """
    SELECT t.type, count(*) AS tasks, min(start_s) AS start_s, max(end_s) AS end_s,
           median(end_s - start_s) AS median_s, max(end_s - start_s) AS longest_s,
           coalesce(sum(r.bytes), 0)::BIGINT AS read_bytes,
           coalesce(sum(w.bytes), 0)::BIGINT AS written_bytes
    FROM tasks t
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM consumers GROUP BY 1) r USING (task)
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM producers GROUP BY 1) w USING (task)
    WHERE NOT engine GROUP BY t.type ORDER BY min(start_s), t.type"""
_TASKS = f"""
    SELECT t.task, n.node, t.name, t.command, t.host, round(t.start_s, 3) AS start_s,
           round(t.end_s, 3) AS end_s, t.exit_status, t.attempt,
           coalesce(r.bytes, 0)::BIGINT AS read_bytes, coalesce(w.bytes, 0)::BIGINT
           AS written_bytes
    FROM tasks t JOIN task_node n USING (task)
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM consumers GROUP BY 1) r USING (task)
    LEFT JOIN (SELECT task, sum(bytes) AS bytes FROM producers GROUP BY 1) w USING (task)
    ORDER BY t.start_s, t.task LIMIT {MAX_TASKS}"""
_FILES = f"""
    SELECT f.file, n.node, f.path_text AS path, f.version, f.role, f.size_bytes, f.deleted,
           coalesce(l.pattern, '') AS pattern, round(coalesce(l.confidence, 1), 3) AS confidence,
           coalesce(l.saves_bytes, 0) AS saves_bytes, coalesce(l.placement, '') AS placement,
           coalesce(l.runner_up, '') AS runner_up,
           coalesce(l.runner_up_saves_bytes, 0) AS runner_up_saves_bytes,
           coalesce(l.evidence, '') AS evidence,
           coalesce(o.others, '') AS others
    FROM files f JOIN file_node n USING (file)
    LEFT JOIN (SELECT * FROM patterns WHERE edge IS NULL AND "primary") l USING (file)
    LEFT JOIN (SELECT file, string_agg(DISTINCT pattern, ', ' ORDER BY pattern) AS others
               FROM patterns WHERE edge IS NULL AND NOT "primary" GROUP BY file) o USING (file)
    ORDER BY coalesce(l.saves_bytes, 0) DESC, f.size_bytes DESC NULLS LAST, f.file
    LIMIT {MAX_FILES}"""
_PAIRS = f"""
    SELECT * FROM (
      SELECT task, file, unique_bytes AS bytes, 0 AS kind FROM producers
      WHERE NOT superseded
      UNION ALL
      SELECT task, file, unique_bytes, CASE WHEN peek THEN 2 ELSE 1 END FROM consumers)
    WHERE task IN (SELECT task FROM kept_tasks) AND file IN (SELECT file FROM kept_files)
    ORDER BY bytes DESC LIMIT {MAX_PAIRS}"""


def collect(
    analysis: Analysis, findings: Sequence[Finding], hints: HintFile | None = None, source: str = ""
) -> dict[str, Any]:
    """The data of the page. Times in seconds of the run, sizes in bytes. `source` is the name of
    the bundle or file that the run was read from."""
    con = query.connect(analysis)
    drawing = build_on(con, True)
    totals = query.rows(con, _TOTALS)[0]
    data = {
        "tool": f"tracehint {__version__}",
        "title": title(analysis.run, Path(source) if source else None),
        "run": _run(analysis.run),
        "totals": totals,
        "mix": query.rows(con, _MIX),
        "stages": query.rows(con, _STAGES),
        "findings": [as_dict(f) for f in findings],
        "saves": {word: total(findings, f"{word}_bytes") for word in ("network", "storage")},
        "graph": {
            "nodes": [vars(n) for n in drawing.nodes],
            "links": [vars(link) for link in drawing.links],
            "left_out": drawing.left_out,
        },
        "sankey": flow.sankey(con),
        "timeline": timeline.timeline(con, float(analysis.run.get("duration_s") or 0)),
        "heat": heat.heat_maps(con),
        "hints": _hints(hints),
        "colors": {p: {"line": palette.color(p), "fill": palette.tint(p, 0.25)}
                   for p in palette.PATTERN_COLOR},
        **_detail(con, totals),
    }  # fmt: skip  # a table
    cleaned: dict[str, Any] = _clean(data)
    return cleaned


def _run(run: dict[str, Any]) -> dict[str, Any]:
    names = (
        "command",
        "hosts",
        "sites",
        "collector",
        "started",
        "duration_s",
        "nodes",
        "lost_events",
        "completeness",
        "data_roots",
    )
    return {name: run.get(name) for name in names}


def _detail(con: duckdb.DuckDBPyConnection, totals: dict[str, Any]) -> dict[str, Any]:
    tasks = _columns(con, _TASKS)
    files = _columns(con, _FILES)
    con.execute("CREATE TABLE kept_tasks AS SELECT unnest($1::BIGINT[]) AS task", [tasks["task"]])
    con.execute("CREATE TABLE kept_files AS SELECT unnest($1::BIGINT[]) AS file", [files["file"]])
    pairs = _columns(con, _PAIRS)
    # Rows are known by their position from here on.
    task_at = {task: i for i, task in enumerate(tasks.pop("task"))}
    file_at = {file: i for i, file in enumerate(files.pop("file"))}
    pairs["task"] = [task_at[t] for t in pairs["task"]]
    pairs["file"] = [file_at[f] for f in pairs["file"]]
    for table, name in (
        (tasks, "node"),
        (tasks, "host"),
        (tasks, "command"),
        (files, "node"),
        (files, "role"),
        (files, "pattern"),
        (files, "placement"),
        (files, "runner_up"),
        (files, "evidence"),
        (files, "others"),
    ):
        table[name] = _coded(table[name])
    files["evidence"]["values"] = [_evidence(e) for e in files["evidence"]["values"]]
    left_out = {}
    shown = len(file_at)
    row = con.execute("SELECT count(*) FROM file_node").fetchone()
    for name, count, kept in (
        ("tasks", totals["tasks"], len(task_at)),
        ("files", row[0] if row else 0, shown),
    ):
        if kept < count:
            left_out[name] = count - kept
    if len(pairs["task"]) == MAX_PAIRS:
        left_out["smallest accesses"] = 1
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


def _hints(hints: HintFile | None) -> list[dict[str, Any]]:
    if hints is None:
        return []
    return [
        {
            "seen": not rule.evidence.get("level"),  # names of this run, not a fallback
            "template": rule.template,
            "pattern": rule.pattern,
            "producer": rule.producer,
            "consumers": list(rule.consumers),
            "hints": [{"name": h.name, "value": h.value, "when": h.when} for h in rule.hints],
            "confidence": rule.confidence,
            "evidence": dict(rule.evidence),
        }
        for rule in hints.rules
    ]


def _clean(value: Any) -> Any:
    """Plain JSON: visible text, no NaN, no numpy or Decimal numbers."""
    if isinstance(value, str):
        return text(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, dict):
        return {text(str(k)): _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else round(number, 4)
