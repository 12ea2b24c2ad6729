"""Everything that the report page shows, as one JSON-able dict.

The page stays small whatever the run: what would make it too large is left out
and named in `left_out`.
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
from tracehint.hintgen.draw.report.detail import detail
from tracehint.hintgen.lint.finding import total
from tracehint.hintgen.lint.render.json_ import as_dict
from tracehint.hintgen.text.escape import shorten, text
from tracehint.version import __version__

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.lint.finding import Finding

ROWS = (2000, 1000, 500, 250, 100, 40)  # tasks and files of their own: the first that fits
MAX_DATA = 1_600_000  # characters of JSON; style and programs of the page are 1.3 MB
MAX_STAGES = 300
MAX_TEXT = 600  # characters of one text

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


def collect(
    analysis: Analysis,
    findings: Sequence[Finding],
    hints: HintFile | None = None,
    source: str = "",
    con: duckdb.DuckDBPyConnection | None = None,
) -> dict[str, Any]:
    """The data of the page. Times in seconds of the run, sizes in bytes. `source` is the name of
    the bundle or file that the run was read from, `con` its tables (None: query.connect's).

    Sums, mix, graph, flow and heat are those of the whole run. Single tasks, files, accesses,
    findings and rules are the largest; fewer where their names would make the page too large.
    """
    con = con or query.connect(analysis)
    drawing = build_on(con, True)
    stages = query.rows(con, _STAGES)
    whole = {
        "tool": f"tracehint {__version__}",
        "title": title(analysis.run, Path(source) if source else None),
        "run": _run(analysis.run),
        "totals": query.rows(con, _TOTALS)[0],
        "mix": query.rows(con, _MIX),
        "stages": stages[:MAX_STAGES],
        "saves": {word: total(findings, f"{word}_bytes") for word in ("network", "storage")},
        "graph": {
            "nodes": [vars(n) for n in drawing.nodes],
            "links": [vars(link) for link in drawing.links],
            "left_out": drawing.left_out,
        },
        "sankey": flow.sankey(con),
        "heat": heat.heat_maps(con),
        "colors": {p: {"line": palette.color(p), "fill": palette.tint(p, 0.25)}
                   for p in palette.PATTERN_COLOR},
    }  # fmt: skip  # a table
    data = plain(whole)
    used = len(json.dumps(data))
    for rows in ROWS:
        rest = plain(_largest(con, analysis, findings, hints, rows))
        if used + len(json.dumps(rest)) <= MAX_DATA:
            break
    if len(stages) > MAX_STAGES:
        rest["left_out"]["stages"] = len(stages) - MAX_STAGES
    whole_page: dict[str, Any] = data | rest
    return whole_page


def _largest(
    con: duckdb.DuckDBPyConnection,
    analysis: Analysis,
    findings: Sequence[Finding],
    hints: HintFile | None,
    rows: int,
) -> dict[str, Any]:
    """What the page has one entry for each of: at most `rows`, a quarter of it where an entry is a
    text. Findings come by what they save."""
    most = max(1, rows // 4)
    rules = _hints(hints)
    duration = float(analysis.run.get("duration_s") or 0)
    result = {
        "findings": [as_dict(f) for f in findings[:most]],
        "hints": rules[:most],
        "timeline": timeline.timeline(con, duration, rows),
        **detail(con, rows),
    }
    bars = result["timeline"].pop("left_out")
    for name, count in (
        ("findings", len(findings) - most),
        ("hint rules", len(rules) - most),
        ("tasks in the timeline", bars),
    ):
        if count > 0:
            result["left_out"][name] = count
    return result


def _run(run: dict[str, Any]) -> dict[str, Any]:
    names = (
        "command",
        "hosts",
        "sites",
        "collector",
        "started",
        "duration_s",
        "nodes",
        "troubles",
        "lost_events",
        "completeness",
        "data_roots",
    )
    return {name: run.get(name) for name in names}


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


def plain(value: Any) -> Any:
    """Plain JSON: visible text of bounded length, no NaN, no numpy or Decimal numbers."""
    if isinstance(value, str):
        return shorten(text(value), MAX_TEXT)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, dict):
        return {shorten(text(str(k)), MAX_TEXT): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else round(number, 4)
