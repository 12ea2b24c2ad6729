"""Figures of a damaged log that cannot be: they are left out and counted.

The library unpacks whatever a record holds. What is beyond these bounds would overflow columns of
the bundle, or stretch a run over centuries.
"""

from __future__ import annotations

from typing import Any

from tracehint.collectors.darshan.facts import SUMMED, LogFacts, UnreadableLogError
from tracehint.collectors.darshan.runs import MAX_COUNT, MAX_SECONDS, MIN_SECONDS, possible

_MAX_EPOCH = 1 << 33  # seconds: the year 2242
_TIMES = ("open", "close", "first", "last")


def check(facts: LogFacts) -> None:
    """Drop impossible figures, one loss for all. Raises UnreadableLogError for the job record."""
    if not 0 <= facts.start_ns < _MAX_EPOCH * 10**9:
        raise UnreadableLogError("its job record is damaged")
    if facts.end_ns is not None and facts.end_ns > facts.start_ns + MAX_SECONDS * 1e9:
        facts.end_ns = None
    facts.uid = facts.uid if 0 <= facts.uid < 1 << 31 else 0
    facts.nprocs = facts.nprocs if facts.nprocs < 1 << 31 else 1
    wrong = _check_runs(facts) + sum(_check_open(row) for row in facts.opens)
    if wrong:
        facts.losses.append(("log_limits", wrong, f"{wrong} records with impossible figures"))
    facts.losses = [(kind, min(n, MAX_COUNT), text) for kind, n, text in facts.losses]


def _check_runs(facts: LogFacts) -> int:
    runs = facts.runs
    good = possible(runs, ("start", "length", "ops", "bytes"))
    if not good.all():
        facts.runs = runs[good]
    return int((~good).sum())


def _check_open(row: dict[str, Any]) -> int:
    wrong = 0
    for name in SUMMED:
        if not 0 <= row[name] <= MAX_COUNT:
            row[name], wrong = 0, 1
    for name in _TIMES:
        if not MIN_SECONDS <= row[name] <= MAX_SECONDS:
            row[name], wrong = 0.0, 1
    if not 0 <= row["io"] <= MAX_SECONDS * MAX_COUNT:
        row["io"], wrong = 0.0, 1
    return wrong
