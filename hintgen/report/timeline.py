"""Timelines of recorded and predicted tasks by host, with the bytes moved per time bin."""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Shorts, column, finder, floats
from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Analysis


BINS = 240
MAX_BARS = 20_000
MAX_HOSTS = 24  # maximum number of lines in the chart of bytes; more hosts share one

# The longest: the others would be thinner than a pixel.
_TASKS = """
    SELECT host, type, start_s, coalesce(end_s, start_s) AS end_s, name,
           coalesce(exit_status, 0) <> 0 AS failed
    FROM (FROM work ORDER BY coalesce(end_s - start_s, 0) DESC, task LIMIT $limit)
    ORDER BY host, start_s, task"""
_TOTALS = "SELECT count(*) AS tasks, max(coalesce(end_s, start_s)) AS end_s FROM work"
_SPAN_COLUMNS = ("bytes", "first_s", "last_s")
_HOSTS = "SELECT DISTINCT host FROM work ORDER BY host"


def timeline(
    con: duckdb.DuckDBPyConnection, analysis: Analysis, limit: int = MAX_BARS
) -> dict[str, Any]:
    """Return `bars` [lane, start, end, type, name, failed] of the `limit` longest tasks
    (`left_out`: number of other tasks), lanes per host, and I/O per host and time bin. `con`: with
    the tables of query.connect."""
    duration_s = float(analysis.run.get("duration_s") or 0)
    whole = query.rows(con, _TOTALS)[0]
    rows = query.rows(con, _TASKS, {"limit": limit})
    # An imported run can be much longer than its known tasks, which would be a thin stripe.
    end = whole["end_s"] or duration_s or 1.0
    # In order of start, so that neighbouring stages differ in colour.
    types = list(dict.fromkeys(r["type"] for r in sorted(rows, key=lambda r: r["start_s"])))
    code = {name: i for i, name in enumerate(types)}
    by_host: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for r in rows:
        bar = [r["start_s"], r["end_s"], code[r["type"]], r["name"], int(r["failed"])]
        by_host[r["host"]].append(bar)
    bars, hosts = _in_lanes({host: by_host[host] for host in sorted(by_host)})
    return {
        "end_s": end,
        "types": types,
        "bars": bars,
        "hosts": hosts,
        "io": _io(con, analysis, end),
        "left_out": whole["tasks"] - len(bars),
    }


def lanes(spans: list[tuple[float, float]]) -> list[int]:
    """Return a lane for each span (ordered by start), so that spans of one lane do not overlap."""
    busy: list[tuple[float, int]] = []  # (end, lane)
    free: list[int] = []
    found = []
    for start, end in spans:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (max(end, start), lane))
        found.append(lane)
    return found


def _in_lanes(by_host: dict[str, list[list[Any]]]) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Return bars [lane, start, end, ...], lanes numbered over all hosts; and each host's lanes."""
    bars: list[list[Any]] = []
    hosts, base = [], 0
    for host, mine in by_host.items():
        found = lanes([(start, end) for start, end, *_ in mine])
        bars += [
            [base + lane, round(start, 3), round(end, 3), *rest]
            for lane, (start, end, *rest) in zip(found, mine, strict=True)
        ]
        count = max(found, default=-1) + 1
        hosts.append({"name": host, "first": base, "lanes": count})
        base += count
    return bars, hosts


def _io(con: duckdb.DuckDBPyConnection, analysis: Analysis, end: float) -> dict[str, Any]:
    """Return bytes per time bin; an access is spread evenly from its first to its last operation.
    Rows are added in table order, since sums of floats depend on the order."""
    names = [host for (host,) in con.execute(_HOSTS).fetchall()]
    known = _host_codes(analysis, names)
    if len(names) > MAX_HOSTS:
        names, known = ["all hosts"], np.minimum(known, 0)
    sides = {"read": analysis.consumers, "write": analysis.producers}
    codes = {kind: _row_hosts(analysis, table, known) for kind, table in sides.items()}
    step = end / BINS
    series = []
    for code, host in enumerate(names):
        for kind, table in sides.items():
            rows = np.flatnonzero(codes[kind] == code)
            bytes_, first, last = (floats(table, name)[rows] for name in _SPAN_COLUMNS)
            values = _spread(bytes_, first, last, step)
            if values.any():
                series.append({"host": host, "kind": kind, "bytes": values.round().tolist()})
    return {"step_s": step, "series": series}


def _host_codes(analysis: Analysis, names: list[str | None]) -> Shorts:
    """Return the index of each task's host in `names`; -1 for engines and unknown hosts."""
    tasks = analysis.tasks
    code = pc.index_in(
        tasks["host"].cast(pa.string()), pa.array(names, pa.string()), skip_nulls=True
    )
    known = np.asarray(pc.fill_null(code, -1).to_numpy(), np.int32)
    return np.where(column(tasks, "engine", 0) != 0, np.int32(-1), known)


def _row_hosts(analysis: Analysis, table: pa.Table, known: Shorts) -> Shorts:
    """Return the host index of each row of producers or consumers; -1 for software files and rows
    without a time."""
    task = finder(column(analysis.tasks, "task"))(column(table, "task"))
    found: Shorts = np.append(known, np.int32(-1))[task]
    data = pc.fill_null(pc.not_equal(analysis.files["role"], "software"), False)
    file = finder(column(analysis.files, "file"))(column(table, "file"))
    found[~np.append(data.to_numpy(), False)[file]] = -1
    timed = pc.and_(pc.is_valid(table["first_s"]), pc.is_valid(table["last_s"]))
    found[~timed.to_numpy()] = -1
    return found


def _spread(bytes_: np.ndarray, first: np.ndarray, last: np.ndarray, step: float) -> np.ndarray:
    """Return bytes per bin, as differences of the cumulative bytes at the bin edges."""
    if not len(bytes_):
        return np.zeros(BINS)
    # At least half a bin, so that an instant has a length; the sum is unchanged.
    middle = (first + last) / 2
    half = np.maximum((last - first) / 2, step / 4)
    low, high = middle - half, middle + half
    rate = bytes_ / (high - low)
    # Cumulative bytes at t: sum of rate * clip(t - low, 0, high - low), by sorted break points.
    points = np.concatenate([low, high])
    slope = np.concatenate([rate, -rate])
    order = np.argsort(points, kind="stable")
    points, slope = points[order], np.cumsum(slope[order])
    area = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(points))])
    edges = np.arange(BINS + 1) * step
    total = np.interp(edges, points, area, left=0.0, right=area[-1])
    total[0], total[-1] = 0.0, area[-1]
    result: np.ndarray = np.maximum(np.diff(total), 0.0)
    return result


MAX_PREDICTED_BARS = 4000  # the longest: the others would be thinner than a pixel
MAX_POINTS = 500

_TYPES = "SELECT name, any_value(type ORDER BY task) AS type FROM work GROUP BY name"
_END = "SELECT max(end_s) - min(start_s) AS seconds FROM work"


def what_if(
    prediction: dict[str, Any] | None, con: duckdb.DuckDBPyConnection
) -> dict[str, Any] | None:
    """Return `points` of the sweep, and the `timeline` of the configuration `shown`: bars [lane,
    start, end, type, name] and lanes by node. Seconds, bytes. None: nothing was predicted.

    `prediction`: the object of `predict --format json`; `shown`: one of its configurations, with
    tasks.
    """
    if prediction is None:
        return None
    wanted = (
        "name",
        "placement",
        "nodes",
        "seconds",
        "seconds_low",
        "seconds_high",
        "network_bytes",
        "cost",
    )
    points = [{key: c[key] for key in wanted} for c in prediction["configurations"]]
    shown = prediction["shown"]
    return {
        "points": points[:MAX_POINTS],
        "left_out": max(0, len(points) - MAX_POINTS),
        "best": prediction["best"],
        "recorded_s": query.rows(con, _END)[0]["seconds"],
        "shown": shown["name"],
        "seconds": shown["seconds"],
        "timeline": _timeline(shown["tasks"], con),
        "assumptions": prediction["assumptions"],
    }


def _timeline(tasks: list[dict[str, Any]], con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    type_of = {row["name"]: row["type"] for row in query.rows(con, _TYPES)}
    longest = sorted(tasks, key=lambda t: t["start"] - t["end"])[:MAX_PREDICTED_BARS]
    rows = sorted(longest, key=lambda t: (t["start"], t["name"]))
    types = list(dict.fromkeys(type_of.get(t["name"], "") for t in rows))
    code = {name: i for i, name in enumerate(types)}
    by_node: defaultdict[str, list[list[Any]]] = defaultdict(list)
    for t in rows:
        by_node[t["node"]].append(
            [t["start"], t["end"], code[type_of.get(t["name"], "")], t["name"]]
        )
    nodes = sorted(by_node, key=lambda name: (len(name), name))
    bars, hosts = _in_lanes({node: by_node[node] for node in nodes})
    return {"bars": bars, "hosts": hosts, "types": types, "left_out": len(tasks) - len(rows)}
