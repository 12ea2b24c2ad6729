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
MAX_HOSTS = 24  # with a line of their own in the chart of bytes; more are one line

# The longest: the others would be thinner than a pixel.
_TASKS = """
    SELECT host, type, start_s, coalesce(end_s, start_s) AS end_s, name,
           coalesce(exit_status, 0) <> 0 AS failed
    FROM (FROM work ORDER BY coalesce(end_s - start_s, 0) DESC, task LIMIT $limit)
    ORDER BY host, start_s, task"""
_WHOLE = "SELECT count(*) AS tasks, max(coalesce(end_s, start_s)) AS end_s FROM work"
_HOSTS = "SELECT DISTINCT host FROM work ORDER BY host"
_IO = """
    SELECT h.code AS host, a.written, a.bytes, a.first_s, a.last_s FROM (
      SELECT task, true AS written, bytes, first_s, last_s, file FROM producers
      UNION ALL SELECT task, false, bytes, first_s, last_s, file FROM consumers) a
    JOIN work t USING (task) JOIN files f USING (file)
    JOIN (SELECT host, (row_number() OVER (ORDER BY host) - 1)::INTEGER AS code
          FROM (SELECT DISTINCT host FROM work)) h USING (host)
    WHERE f.data AND a.first_s IS NOT NULL"""


def timeline(
    con: duckdb.DuckDBPyConnection, duration_s: float, limit: int = MAX_BARS
) -> dict[str, Any]:
    """`bars` [lane, start, end, type, failed] of the `limit` longest tasks (`left_out`: how many
    more there are), lanes per host, and I/O per host and time bin."""
    whole = query.rows(con, _WHOLE)[0]
    rows = query.rows(con, _TASKS, {"limit": limit})
    # Imported runs can be longer than the tasks that are known: those would be a thin stripe.
    end = whole["end_s"] or duration_s or 1.0
    # In order of their start, so that stages side by side differ in colour.
    types = list(dict.fromkeys(r["type"] for r in sorted(rows, key=lambda r: r["start_s"])))
    code = {name: i for i, name in enumerate(types)}
    bars, hosts, base = [], [], 0
    for host in sorted({r["host"] for r in rows}):
        mine = [r for r in rows if r["host"] == host]
        found = lanes([(r["start_s"], r["end_s"]) for r in mine])
        bars += [
            [
                base + lane,
                round(r["start_s"], 3),
                round(r["end_s"], 3),
                code[r["type"]],
                r["name"],
                int(r["failed"]),
            ]
            for lane, r in zip(found, mine, strict=True)
        ]
        count = max(found, default=-1) + 1
        hosts.append({"name": host, "first": base, "lanes": count})
        base += count
    return {
        "end_s": end, "types": types, "bars": bars, "hosts": hosts, "io": _io(con, end),
        "left_out": whole["tasks"] - len(bars),
    }  # fmt: skip  # a table


def lanes(spans: list[tuple[float, float]]) -> list[int]:
    """A lane for each span (ordered by start), so that spans of one lane do not overlap."""
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


def _io(con: duckdb.DuckDBPyConnection, end: float) -> dict[str, Any]:
    """Bytes per time bin; an access is spread evenly from its first to its last operation."""
    columns = con.execute(_IO).fetchnumpy()
    names = [host for (host,) in con.execute(_HOSTS).fetchall()]
    if len(names) > MAX_HOSTS:
        names, columns["host"] = ["all hosts"], columns["host"] * 0
    step = end / BINS
    series = []
    for code, host in enumerate(names):
        for kind in ("read", "write"):
            mask = (columns["host"] == code) & (columns["written"] == (kind == "write"))
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
