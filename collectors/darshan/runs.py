"""Runs of accesses from DXT segments, and byte ranges from counters where there are no segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

# One run of accesses of one log; `file` is an index into the log's own list of names.
RUN = np.dtype(
    [
        ("file", "<i8"), ("rank", "<i4"), ("write", "?"), ("how", "<i4"), ("start", "<i8"),
        ("length", "<i8"), ("ops", "<i8"), ("bytes", "<i8"), ("first", "<f8"), ("last", "<f8"),
        ("exact", "?"),
    ]
)  # fmt: skip  # a table
MAX_COUNT = 1 << 60  # bytes, operations, offsets
MAX_SECONDS = 1e9  # of one job
MIN_SECONDS = -86_400.0  # clocks of ranks may disagree about the start
HOW_CALL, HOW_COUNTERS = 0, 1
SEGMENT = np.dtype([("offset", "<i8"), ("length", "<i8"), ("first", "<f8"), ("last", "<f8")])

Runs = npt.NDArray[Any]


def possible(rows: Runs, counts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which rows of a damaged log can be: these columns and the times are within all bounds."""
    good = np.ones(len(rows), bool)
    for name in counts:
        good &= (rows[name] >= 0) & (rows[name] <= MAX_COUNT)
    for name in ("first", "last"):  # false for what is no number
        good &= (rows[name] >= MIN_SECONDS) & (rows[name] <= MAX_SECONDS)
    return good


def coalesce(segments: Runs, *, file: int, rank: int, write: bool) -> Runs:
    """Contiguous neighbours in time become one run; times are seconds from the log's start."""
    segments = segments[segments["length"] > 0]
    if not len(segments):
        return np.zeros(0, RUN)
    if np.any(np.diff(segments["first"]) < 0):
        segments = segments[np.argsort(segments["first"], kind="stable")]
    ends = segments["offset"] + segments["length"]
    begins = np.flatnonzero(np.concatenate([[True], segments["offset"][1:] != ends[:-1]]))
    lasts = np.concatenate([begins[1:] - 1, [len(segments) - 1]])
    runs = np.zeros(len(begins), RUN)
    runs["file"], runs["rank"], runs["write"] = file, rank, write
    runs["start"] = segments["offset"][begins]
    runs["length"] = runs["bytes"] = ends[lasts] - runs["start"]
    runs["ops"] = lasts - begins + 1
    runs["first"] = segments["first"][begins]
    runs["last"] = np.maximum.reduceat(segments["last"], begins)
    runs["exact"] = True
    return runs


def from_counters(
    *,
    file: int,
    rank: int,
    write: bool,
    ops: int,
    total: int,
    max_byte: int,
    consecutive: int,
    first: float,
    last: float,
) -> Runs:
    """One run from counters alone.

    When every operation began where the one before ended, the range follows
    exactly: `total` bytes that end at `max_byte`. Otherwise the run is an upper
    bound, [0, max_byte + 1).
    """
    if ops <= 0 or total <= 0:
        return np.zeros(0, RUN)
    contiguous = consecutive >= ops - 1 and total <= max_byte + 1
    start = max_byte + 1 - total if contiguous else 0
    end = max(max_byte + 1, total if max_byte < 0 else 0)
    run = np.zeros(1, RUN)
    run["file"], run["rank"], run["write"], run["how"] = file, rank, write, HOW_COUNTERS
    run["start"], run["length"] = start, end - start
    run["ops"], run["bytes"] = ops, total
    run["first"], run["last"], run["exact"] = first, max(first, last), contiguous
    return run
