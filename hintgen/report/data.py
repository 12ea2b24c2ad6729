"""Data of the report page: sums, graph, flows, findings by rule, largest tasks and files."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.memory import give_back
from tracehint.hintgen import query
from tracehint.hintgen.lint.edits import engine_of, nodes_of
from tracehint.hintgen.lint.finding import by_rule, freed_storage, sum_findings
from tracehint.hintgen.lint.formats import savings_text
from tracehint.hintgen.report import drawing as palette
from tracehint.hintgen.report import panels, timeline
from tracehint.hintgen.report.actions import actions
from tracehint.hintgen.report.drawing import build_on, title
from tracehint.hintgen.report.panels import detail
from tracehint.hintgen.report.screen import coverage
from tracehint.hintgen.report.timeline import what_if
from tracehint.hintgen.summary.labelled import Labelled
from tracehint.hintgen.summary.summary import io_bottleneck
from tracehint.hintgen.summary.tallies import stages, totals
from tracehint.hintgen.summary.words import advice, why
from tracehint.hintgen.text.escape import shorten, text
from tracehint.version import __version__

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.gain import Baseline, Gain
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.summary.gain import Simulation


def fold_findings(findings: Sequence[Finding], baseline: Baseline | None) -> list[dict[str, Any]]:
    """Return a row per rule, in the order of the findings: count, savings, first finding."""
    return [
        {
            "count": len(own),
            "saves": dataclasses.asdict(sum_findings(own)),
            "first": own[0].as_dict(),
            "first_saves": savings_text(own[0], baseline),
        }
        for own in by_rule(findings)
    ]


ROW_LIMITS = (2000, 1000, 500, 250, 100, 40)  # of single tasks and files; the first that fits
MAX_DATA = 1_600_000  # characters of JSON; the page's CSS and JavaScript are 1.3 MB
MAX_STAGES = 300
MAX_TEXT = 600  # characters

_TIMES = """
    SELECT type, max(end_s) AS end_s, median(end_s - start_s) AS median_s,
           max(end_s - start_s) AS longest_s
    FROM work GROUP BY type"""


def collect(
    analysis: Analysis,
    findings: Sequence[Finding],
    hints: HintFile | None = None,
    source: str = "",
    con: duckdb.DuckDBPyConnection | None = None,
    simulation: Simulation | None = None,
    prediction: dict[str, Any] | None = None,
    decision: str = "",
    comparison: dict[str, Any] | None = None,
    labelled: Labelled | None = None,
) -> dict[str, Any]:
    """Return the data of the page, in seconds since the start of the run and in bytes.

    `source`: name of the bundle or file of the run; `con`: its tables (None: query.connect);
    `simulation`: the gains; `prediction`: a sweep; `decision`: the plan's result as a sentence;
    `comparison`: with an earlier run; `labelled`: files by label (None: made here). Sums, mix,
    graph, flow and heat cover the whole run; of tasks, files ... the largest are listed.
    """
    con = con or query.connect(analysis)
    found = _stages(analysis, con)
    whole = {
        "tool": f"tracehint {__version__}",
        "title": title(analysis.run, Path(source) if source else None),
        "decision": decision[:MAX_TEXT],
        **_collect_run(analysis, labelled or Labelled(analysis), simulation, findings),
        "stages": found[:MAX_STAGES],
        "graph": _graph(con),
        "sankey": panels.sankey(con),
        "heat": panels.heat_maps(con),
        "whatif": what_if(prediction, con),
        "compare": comparison,
        "colors": _colors(),
    }
    data: dict[str, Any] = plain(whole)
    budget = MAX_DATA - len(json.dumps(data))
    rest = _limit_rows(budget, lambda rows: _largest(con, analysis, findings, hints, rows))
    if len(found) > MAX_STAGES:
        rest["left_out"]["stages"] = len(found) - MAX_STAGES
    return data | rest


def _limit_rows(budget: int, collect_rows: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Return the data with the most rows that fits in `room` characters, else the fewest rows."""
    for rows in ROW_LIMITS:
        rest: dict[str, Any] = plain(collect_rows(rows))
        if len(json.dumps(rest)) <= budget:
            break
    return rest


def _collect_run(
    analysis: Analysis,
    labelled: Labelled,
    simulation: Simulation | None,
    findings: Sequence[Finding],
) -> dict[str, Any]:
    """Return sums, actions and findings of the run, and its three most important file groups."""
    known = simulation is not None and not simulation.reason
    gains: dict[str, Any] = {"baseline": None, "all": None}
    return {
        **(simulation.as_json() if simulation is not None else gains),
        "result": simulation.lines() if simulation is not None else [],
        "recorded": simulation.recorded if simulation is not None else "",
        "coverage": coverage(analysis.run),
        "io": io_bottleneck(stages(analysis)),
        "actions": [
            action.as_dict()
            for action in actions(
                findings,
                simulation.baseline if simulation is not None and known else None,
                engine_of(analysis),
                staging=simulation is not None and simulation.where.staging,
                nodes=nodes_of(analysis),
            )
        ],
        "run": _run(analysis.run),
        "totals": _totals(analysis),
        "mix": labelled.mix(),
        "best": [_best(*both, simulation) for both in simulation.largest(3)] if simulation else [],
        "folded": fold_findings(findings, simulation.baseline if simulation and known else None),
        "reclaimable_bytes": freed_storage(findings),
    }


def _graph(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    give_back()
    drawing = build_on(con, True)
    give_back()
    return {
        "nodes": [vars(n) for n in drawing.nodes],
        "links": [vars(link) for link in drawing.links],
        "left_out": drawing.left_out,
    }


def _colors() -> dict[str, dict[str, str]]:
    return {
        p: {"line": palette.color(p), "fill": palette.tint(p, 0.25)} for p in palette.PATTERN_COLOR
    }


def _largest(
    con: duckdb.DuckDBPyConnection,
    analysis: Analysis,
    findings: Sequence[Finding],
    hints: HintFile | None,
    rows: int,
) -> dict[str, Any]:
    """Return the lists of the page: at most `rows` tasks and files, and a quarter as many findings
    and hint rules, which are texts. Findings are in order of their savings."""
    most = max(1, rows // 4)
    rules = _hints(hints)
    result = {
        "findings": [f.as_dict() for f in findings[:most]],
        "hints": rules[:most],
        "timeline": timeline.timeline(con, analysis, rows),
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


def _totals(analysis: Analysis) -> dict[str, int]:
    """Return the totals of the summary, under the names of the page."""
    found = totals(analysis)
    for name in ("read", "written", "handed"):
        found[f"{name}_bytes"] = found.pop(name)
    return found


def _stages(analysis: Analysis, con: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the stages of the summary, with the times of their tasks."""
    times = {row.pop("type"): row for row in query.rows(con, _TIMES)}
    return [
        {
            "type": row["type"],
            "tasks": row["tasks"],
            "start_s": row["first"],
            "read_bytes": row["read"],
            "written_bytes": row["written"],
            "task_s": row["seconds"],
            "cpu_s": row["cpu"],
            "io_wait_s": row["io_wait"],
            **{name: row[name] for name in ("cores", "memory_bytes", "peak_bytes") if name in row},
            **times.get(row["type"], {}),
        }
        for row in stages(analysis)
    ]


def _best(row: dict[str, Any], gain: Gain, simulation: Simulation) -> dict[str, Any]:
    """Return a group of files with the gain of its placement."""
    return {
        "template": row["name"],
        "files": row["files"],
        "pattern": row["pattern"],
        "saves": gain.text(simulation.baseline),
        "gain": vars(gain),
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
            "gain": None if rule.gain is None else dataclasses.asdict(rule.gain),
        }
        for rule in hints.rules
    ]


def plain(value: Any) -> Any:
    """Convert to plain JSON: visible text of bounded length, no NaN, numpy or Decimal numbers."""
    if isinstance(value, str):
        return shorten(text(value), MAX_TEXT)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, dict):
        return {shorten(text(str(k)), MAX_TEXT): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [v if type(v) is int else plain(v) for v in value]
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else round(number, 4)
