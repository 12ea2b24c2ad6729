"""Errors of the predictions compared with measured runs: of intervals, and of choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scripts.bench.gain.predicted import Cell

HALF = 0.9  # share of runs that an interval should contain
LITTLE = 1e6  # bytes added to both sides of a ratio, to avoid 0 / 0
Row = Sequence[Cell]


def off(rows: Sequence[Row]) -> list[float]:
    """Return for each run the difference from the predicted time, as a share of that."""
    return [abs(r.seconds / c.predicted - 1) for row in rows for c in row for r in c.runs]


def within(errors: Sequence[float], share: float) -> float:
    """Return the quantile `share` of the errors."""
    return float(np.quantile(errors, share))


def covered(rows: Sequence[Row]) -> float:
    """Return the share of runs inside an interval derived only from the errors of other rows; NaN
    with fewer than two rows with cells."""
    inside = []
    for at, row in enumerate(rows):
        others = off([*rows[:at], *rows[at + 1 :]])
        if others:
            half = within(others, HALF)
            inside += [error <= half for error in off([row])]
    return float(np.mean(inside)) if inside else float("nan")


def of_ratios(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Return the errors of predicted ratios of two columns: of their times, and of their bytes."""
    times, sizes = [], []
    for row in rows:
        for i, a in enumerate(row):
            for b in row[:i]:
                predicted, measured = a.predicted / b.predicted, a.seconds / b.seconds
                times.append(abs(predicted / measured - 1))
                predicted = (a.predicted_bytes + LITTLE) / (b.predicted_bytes + LITTLE)
                measured = (a.bytes + LITTLE) / (b.bytes + LITTLE)
                sizes.append(abs(predicted / measured - 1))
    return times, sizes
