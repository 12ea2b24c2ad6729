"""The page of results: measured values, and the model's predictions of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from scripts.bench.gain.columns import COLUMNS
from scripts.bench.gain.errors import find_quantile, measure_coverage, of_ratios, time_errors
from scripts.bench.gain.predicted import Cell
from scripts.bench.load import LOADED

Rows = Mapping[str, Sequence[Cell]]  # title of a row -> its cells


def tables(rows: Rows) -> str:
    """Return all tables of one scale as Markdown."""
    shown = [
        name for name in COLUMNS if any(c.column == name for row in rows.values() for c in row)
    ]
    parts = [
        _table("seconds", rows, shown, _seconds),
        _table("MB over the links", rows, shown,
            lambda c: _spread([r.bytes / 1e6 for r in c.runs], 0)),
        _table("predicted seconds", rows, shown,
            lambda c: f"{c.predicted:.1f} ({c.low:.1f} to {c.high:.1f}) {c.error:+.0%}"),
        _table("predicted MB", rows, shown,
            lambda c: f"{c.predicted_bytes / 1e6:.0f} {c.bytes_error:+.0%}"),
        _runs(rows),
    ]  # fmt: skip  # a table
    return "\n\n".join(parts)


def summary(rows: Iterable[Sequence[Cell]]) -> str:
    """Return the table of the accuracy of predictions, over all cells."""
    every = list(rows)
    cells = [cell for row in every for cell in row]
    if not cells:
        return "Nothing was measured yet."
    errors, sizes = [abs(c.error) for c in cells], [abs(c.bytes_error) for c in cells]
    runs = [(r.seconds, c) for c in cells for r in c.runs]
    inside = sum(c.low <= seconds <= c.high for seconds, c in runs)
    pairs = [pair for row in every for pair in _pairs(row)]
    ratios = of_ratios(every)
    right = sum((m > 1) == (p > 1) for m, p in pairs)
    return "\n".join([
        "| over all columns and rows | |", "|---|---|",
        f"| columns x rows, runs | {len(cells)}, {len(runs)} |",
        f"| of them while others used over {LOADED:.0%} of the processors "
        f"| {sum(c.loaded for c in cells)} |",
        f"| error of the time: median, worst | {_of(errors)} |",
        f"| error of the bytes: median, worst | {_of(sizes)} |",
        f"| runs inside the 90 % interval | {inside / len(runs):.0%} |",
        f"| of the predicted time 80 %, 90 % of the runs differ by at most "
        f"| {_quantiles(time_errors(every))} |",
        f"| runs inside an interval from the errors of the other workflows alone "
        f"| {measure_coverage(every):.0%} |",
        f"| error of the ratio of two columns, 80 %, 90 % of all pairs: times "
        f"| {_quantiles(ratios[0])} |",
        f"| the same: bytes | {_quantiles(ratios[1])} |",
        f"| choice right, of pairs of columns that differ by over 10 % | {right} of {len(pairs)} |",
    ])  # fmt: skip  # a table


def _quantiles(errors: list[float]) -> str:
    if not errors:
        return "-"
    return f"{find_quantile(errors, 0.8):.0%}, {find_quantile(errors, 0.9):.0%}"


def _of(errors: list[float]) -> str:
    return f"{statistics.median(errors):.1%}, {max(errors):.0%}"


def _pairs(row: Sequence[Cell]) -> list[tuple[float, float]]:
    """Return (measured, predicted) time ratios of pairs of columns that differ by over 10 %."""
    found = [
        (a.seconds / b.seconds, a.predicted / b.predicted)
        for i, a in enumerate(row)
        for b in row[:i]
    ]
    return [(m, p) for m, p in found if max(m, 1 / m) > 1.1]


def _seconds(cell: Cell) -> str:
    return _spread([run.seconds for run in cell.runs], 1) + (" \\*" if cell.loaded else "")


def _spread(values: list[float], digits: int) -> str:
    middle = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _table(title: str, rows: Rows, shown: list[str], cell: Callable[[Cell], str]) -> str:
    lines = [
        f"| {title} | " + " | ".join(COLUMNS[name].title for name in shown) + " |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for name, row in rows.items():
        told = {c.column: cell(c) for c in row}
        lines.append(f"| {name} | " + " | ".join(told.get(c, "-") for c in shown) + " |")
    return "\n".join(lines)


def _runs(rows: Rows) -> str:
    lines = [
        "| | runs | processors: others, bench | best / default | planned by | outputs |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        if not row:
            continue
        counts = [len(c.runs) for c in row]
        loads = [run.load for c in row for run in c.runs]
        others, own = (statistics.median(x[key] for x in loads) for key in ("others", "own"))
        outputs = {run.outputs for c in row for run in c.runs}
        astray = sum(run.astray for c in row for run in c.runs)
        said = "identical" if len(outputs) == 1 else f"DIFFER: {len(outputs)}"
        said += f"; {astray} files elsewhere" if astray else ""
        lines.append(
            f"| {name} | {min(counts)} to {max(counts)} | {others:.0%}, {own:.0%} | "
            f"{_best(row)} | {_searches(row)} | {said} |"
        )
    return "\n".join(lines)


def _best(row: Sequence[Cell]) -> str:
    base = next((c for c in row if c.column == "default"), None)
    if base is None:
        return "-"
    best = min(row, key=lambda c: c.seconds)
    return f"{best.seconds / base.seconds:.2f} ({best.column})"


def _searches(row: Sequence[Cell]) -> str:
    """Return the name of the search that made the plan of a row."""
    return ", ".join(c.search for c in row if c.search) or "-"
