"""The tables of results: only what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from scripts.bench.gain_stores.results import Moved, Results
from scripts.bench.gain_stores.table import Store

MEGA = 1e6


def table(store: Store, rows: Mapping[str, Results]) -> str:
    """One table per store: MB of the first run with what hints cost, then of later ones."""
    columns = store.bench().COLUMNS
    head = ["MB over the links", *columns.values(), "planned / best other"]
    lines = [head, ["---"] * len(head)]
    for title, results in rows.items():
        found = {name: results.of(name) for name in columns}
        if any(found.values()):
            for words, cells in _kinds(found).items():
                lines.append([f"{title}{words}", *cells, ratio(found, words)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _kinds(found: Mapping[str, Sequence[Moved]]) -> dict[str, list[str]]:
    """Lines of one row: the first run, a later one, what came back to the head."""
    lines = {": first run": [_spread([run.once for run in runs]) for runs in found.values()]}
    if any(run.later is not None for runs in found.values() for run in runs):
        lines[": later runs"] = [
            _spread([run.later for run in runs if run.later is not None]) for runs in found.values()
        ]
    if any(run.back for runs in found.values() for run in runs):
        lines[": brought back to the head"] = [
            _spread([run.back for run in runs]) for runs in found.values()
        ]
    return lines


def ratio(found: Mapping[str, Sequence[Moved]], words: str) -> str:
    """Median of the planned column over the best median of the others; of little, a difference."""
    kind = {": first run": "once", ": later runs": "later"}.get(words, "back")
    medians = {
        name: statistics.median(getattr(run, kind) or 0 for run in runs)
        for name, runs in found.items()
        if runs
    }
    mine = medians.pop("planned", None)
    if mine is None or not medians:
        return "-"
    best = min(medians.values())
    return f"{mine / best:.2f}" if best > MEGA else f"{(mine - best) / MEGA:+.1f} MB"


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "-"
    middle = f"{statistics.median(values) / MEGA:.0f}"
    low, high = (f"{value / MEGA:.0f}" for value in (min(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"
