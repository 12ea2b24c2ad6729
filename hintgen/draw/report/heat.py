"""Which task touched which bytes, for the files where that decides the pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query

if TYPE_CHECKING:
    import duckdb

BINS = 64
MAX_FILES = 12
MAX_TASKS = 64

# The largest file of each template; several templates before several files of one.
_FILES = f"""
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
    """One map per file: `cells` [bin, task, share of the bin's bytes that the task touched]."""
    maps = []
    for file in query.rows(con, _FILES):
        table = "producers" if file["pattern"] == "gather" else "consumers"
        rows = query.rows(con, _RANGES.format(table=table), {"file": file["file"]})
        if not rows:
            continue
        cells = []
        for index, row in enumerate(rows[:MAX_TASKS]):
            shares = _shares(row["ranges"], file["size_bytes"])
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


def _shares(ranges: list[list[int]], size: int) -> list[float]:
    """Share of each of BINS equal parts of the file that the sorted ranges cover."""
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
