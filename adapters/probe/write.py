"""A cluster file from what the probe measured: text that `predict --cluster` reads."""

from __future__ import annotations

from collections.abc import Sequence

from tracehint.adapters.probe.known import Known
from tracehint.analyzer.predict.cluster import Range
from tracehint.analyzer.predict.cluster_fields import TABLES, Number


def cluster_text(
    name: str, base: str | None, found: Sequence[Known], missing: Sequence[str]
) -> str:
    """TOML: every number with what it was measured from, and what was not measured."""
    lines = ["# Measured by `tracehint calibrate`: ranges are [low, usual, high]."]
    lines += [f"# Not measured: {what}." for what in missing]
    lines += [f'base = "{base}"'] if base else []
    lines += [f'name = "{name}"']
    for table in TABLES:
        own = [known for known in found if known.table == table]
        lines += ["", f"[{table}]"] if own else []
        lines += [f"{k.key} = {_value(k)}  # {k.said}" for k in own]
    return "\n".join(lines) + "\n"


def _value(known: Known) -> str:
    if isinstance(known.value, str):
        return f'"{known.value}"'
    field = TABLES[known.table][0][known.key]
    assert isinstance(field, Number)
    low, value, high = (_within(x / field.unit, field) for x in _three(known.value))
    if field.whole:
        return str(round(value))
    return f"{value:.4g}" if low == high else f"[{low:.4g}, {value:.4g}, {high:.4g}]"


def _three(known: Range) -> tuple[float, float, float]:
    return known.low, known.value, known.high


def _within(value: float, field: Number) -> float:
    return min(max(value, field.least), field.most)
