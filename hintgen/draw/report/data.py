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
from tracehint.hintgen.summary.labelled import Labelled
from tracehint.hintgen.summary.saved import Saved, saved
from tracehint.hintgen.summary.tallies import stages, totals
from tracehint.hintgen.summary.words import advice, why
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

_TIMES = """
    SELECT type, max(end_s) AS end_s, median(end_s - start_s) AS median_s,
           max(end_s - start_s) AS longest_s
    FROM tasks WHERE NOT engine GROUP BY type"""
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
    analysis: Analysis,
    findings: Sequence[Finding],
    hints: HintFile | None = None,
    source: str = "",
    saves: Saved | None = None,
) -> dict[str, Any]:
    """The data of the page. Times in seconds of the run, sizes in bytes. `source` is the name of
    the bundle or file that the run was read from, `saves` what all hints would save (None: no
    hint was in force)."""
    con = query.connect(analysis)
    drawing = build_on(con, True)
    labelled = Labelled(analysis)
    saves = saved(labelled) if saves is None else saves
    counted = _totals(analysis)
    data = {
        "tool": f"tracehint {__version__}",
        "title": title(analysis.run, Path(source) if source else None),
        "run": _run(analysis.run),
        "totals": counted,
        "mix": labelled.mix(),
        "best": [_best(row) for row in labelled.best(3)],
        "stages": _stages(analysis, con),
        "findings": [as_dict(f) for f in findings],
        "saves": {**vars(saves), "storage": total(findings, "storage_bytes")},
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
        **_detail(con, counted),
    }  # fmt: skip  # a table
    cleaned: dict[str, Any] = _clean(data)
    return cleaned


def _totals(analysis: Analysis) -> dict[str, int]:
    """What the summary counts, under the names of the page."""
    found = totals(analysis)
    for name in ("read", "written", "handed"):
        found[f"{name}_bytes"] = found.pop(name)
    return found


def _stages(analysis: Analysis, con: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """The stages of the summary, with the times of their tasks."""
    times = {row.pop("type"): row for row in query.rows(con, _TIMES)}
    return [
        {
            "type": row["type"],
            "tasks": row["tasks"],
            "start_s": row["first"],
            "read_bytes": row["read"],
            "written_bytes": row["written"],
            **times.get(row["type"], {}),
        }
        for row in stages(analysis)
    ]


def _best(row: dict[str, Any]) -> dict[str, Any]:
    """A flow of the summary's list of where hints would save most."""
    return {
        "template": row["name"],
        "others": row["others"],
        "files": row["files"],
        "pattern": row["pattern"],
        "saves": Saved(row["saves"], row["waits"]).text,
        "network_bytes": row["saves"],
        "waiting_bytes": row["waits"],
        "why": why(row["pattern"], row["evidence"]),
        "advice": advice(row["pattern"], row["placement"]),
    }


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


def _detail(con: duckdb.DuckDBPyConnection, counted: dict[str, Any]) -> dict[str, Any]:
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
        ("tasks", counted["tasks"], len(task_at)),
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
