"""What the measured runs say about the errors of predictions: for intervals, and for choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scripts.bench.gain.predicted import Cell

HALF = 0.9  # of the runs shall lie inside
LITTLE = 1e6  # bytes that are added to both sides of a ratio: nothing is divided by nothing
Row = Sequence[Cell]


def off(rows: Sequence[Row]) -> list[float]:
    """Of each run, how far its time is from the predicted one, as a share of that."""
    return [abs(r.seconds / c.predicted - 1) for row in rows for c in row for r in c.runs]


def within(errors: Sequence[float], share: float) -> float:
    """What this share of the errors does not exceed."""
    return float(np.quantile(errors, share))


def covered(rows: Sequence[Row]) -> float:
    """The share of runs inside an interval that only the other rows' errors made; at least two
    rows with cells are needed."""
    inside = []
    for at, row in enumerate(rows):
        others = off([*rows[:at], *rows[at + 1 :]])
        if others:
            half = within(others, HALF)
            inside += [error <= half for error in off([row])]
    return float(np.mean(inside)) if inside else float("nan")


def of_ratios(rows: Sequence[Row]) -> tuple[list[float], list[float]]:
    """Errors of the predicted ratio of two columns: of their times, and of their bytes."""
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
