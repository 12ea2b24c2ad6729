"""Which task ran when on which host, and how many bytes moved meanwhile."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb
    import numpy as np

BINS = 240
MAX_BARS = 20_000

_TASKS = """
    SELECT host, type, start_s, coalesce(end_s, start_s) AS end_s, name,
           coalesce(exit_status, 0) <> 0 AS failed
    FROM tasks WHERE NOT engine ORDER BY host, start_s, task LIMIT $limit"""
_IO = """
    SELECT t.host, a.kind, a.bytes, a.first_s, a.last_s FROM (
      SELECT task, 'write' AS kind, bytes, first_s, last_s, file FROM producers
      UNION ALL SELECT task, 'read', bytes, first_s, last_s, file FROM consumers) a
    JOIN tasks t USING (task) JOIN files f USING (file)
    WHERE NOT t.engine AND f.data AND a.first_s IS NOT NULL"""


def timeline(
    con: duckdb.DuckDBPyConnection, duration_s: float, limit: int = MAX_BARS
) -> dict[str, Any]:
    """`bars` [lane, start, end, type, failed], lanes per host, and I/O per host and time bin."""
    rows = query.rows(con, _TASKS, {"limit": limit})
    # Imported runs can be longer than the tasks that are known: those would be a thin stripe.
    end = max((r["end_s"] for r in rows), default=0.0) or duration_s or 1.0
    # In order of their start, so that stages side by side differ in colour.
    types = list(dict.fromkeys(r["type"] for r in sorted(rows, key=lambda r: r["start_s"])))
    code = {name: i for i, name in enumerate(types)}
    bars, hosts, base = [], [], 0
    for host in sorted({r["host"] for r in rows}):
        mine = [r for r in rows if r["host"] == host]
        lanes = _lanes([(r["start_s"], r["end_s"]) for r in mine])
        bars += [
            [
                base + lane,
                round(r["start_s"], 3),
                round(r["end_s"], 3),
                code[r["type"]],
                r["name"],
                int(r["failed"]),
            ]
            for lane, r in zip(lanes, mine, strict=True)
        ]
        count = max(lanes, default=-1) + 1
        hosts.append({"name": host, "first": base, "lanes": count})
        base += count
    return {"end_s": end, "types": types, "bars": bars, "hosts": hosts, "io": _io(con, end)}


def _lanes(spans: list[tuple[float, float]]) -> list[int]:
    """A lane for each span (ordered by start), so that spans of one lane do not overlap."""
    busy: list[tuple[float, int]] = []  # (end, lane)
    free: list[int] = []
    lanes = []
    for start, end in spans:
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (max(end, start), lane))
        lanes.append(lane)
    return lanes


def _io(con: duckdb.DuckDBPyConnection, end: float) -> dict[str, Any]:
    """Bytes per time bin; an access is spread evenly from its first to its last operation."""
    columns = con.execute(_IO).fetchnumpy()
    step = end / BINS
    series = []
    for host in sorted(set(columns["host"].tolist())):
        for kind in ("read", "write"):
            mask = (columns["host"] == host) & (columns["kind"] == kind)
            values = _spread(
                columns["bytes"][mask].astype(float),
                columns["first_s"][mask].astype(float),
                columns["last_s"][mask].astype(float),
                step,
            )
            if values.any():
                series.append({"host": host, "kind": kind, "bytes": values.round().tolist()})
    return {"step_s": step, "series": series}


def _spread(bytes_: np.ndarray, first: np.ndarray, last: np.ndarray, step: float) -> np.ndarray:
    """Bytes per bin: the differences of the cumulated bytes at the bin edges."""
    import numpy as np

    if not len(bytes_):
        return np.zeros(BINS)
    # Half a bin at least, so that an instant has a length; the sum stays the same.
    middle = (first + last) / 2
    half = np.maximum((last - first) / 2, step / 4)
    low, high = middle - half, middle + half
    rate = bytes_ / (high - low)
    # Cumulated bytes at t: sum of rate * clip(t - low, 0, high - low), by sorted break points.
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
