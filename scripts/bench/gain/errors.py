"""Errors of the predictions compared with measured runs: of intervals, and of choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scripts.bench.gain.predicted import Cell

INTERVAL_SHARE = 0.9  # share of runs that an interval should contain
MIN_BYTES = 1e6  # bytes added to both sides of a ratio, to avoid 0 / 0
Row = Sequence[Cell]


def time_errors(rows: Sequence[Row]) -> list[float]:
    """Return for each run the difference from the predicted time, as a share of that."""
    return [abs(r.seconds / c.predicted - 1) for row in rows for c in row for r in c.runs]


def find_quantile(errors: Sequence[float], share: float) -> float:
    """Return the quantile `share` of the errors."""
    return float(np.quantile(errors, share))


def measure_coverage(rows: Sequence[Row]) -> float:
    """Return the share of runs inside an interval derived only from the errors of other rows; NaN
    with fewer than two rows with cells."""
    inside = []
    for at, row in enumerate(rows):
        others = time_errors([*rows[:at], *rows[at + 1 :]])
        if others:
            half = find_quantile(others, INTERVAL_SHARE)
            inside += [error <= half for error in time_errors([row])]
    return float(np.mean(inside)) if inside else float("nan")


def of_ratios(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return the errors of predicted ratios of two columns: of their times, and of their bytes."""
    times, sizes = [], []
    for row in rows:
        for i, a in enumerate(row):
            for b in row[:i]:
                predicted, measured = a.predicted / b.predicted, a.seconds / b.seconds
                times.append(abs(predicted / measured - 1))
                predicted = (a.predicted_bytes + MIN_BYTES) / (b.predicted_bytes + MIN_BYTES)
                measured = (a.bytes + MIN_BYTES) / (b.bytes + MIN_BYTES)
                sizes.append(abs(predicted / measured - 1))
    return times, sizes
