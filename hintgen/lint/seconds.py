"""Savings in seconds, from what `tracehint calibrate` measured on the store.

A range, because the trace does not say how the transfers would overlap: at
best all nodes move their share at the faster measured rate, at worst one after
the other at the slower. Calls: the low and the high end of the measured time
per call. Without a calibration there are no seconds.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.lint.finding import Finding

SCHEMA = "tracehint.calibration/1"


@dataclass(frozen=True)
class Rates:
    """Bytes per second, slowest and fastest; seconds per call, lowest and highest."""

    slow: float
    fast: float
    call_low: float
    call_high: float


def read_rates(path: Path) -> Rates:
    """Rates of a calibration file. Raises InputError."""
    try:
        data = json.loads(path.read_bytes())
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, not {SCHEMA!r}")
        rates = [_positive(data[name].get("bytes_per_s")) for name in ("write", "read")]
        known = [rate for rate in rates if rate]
        calls = data["calls"]["open"]
        low, high = _positive(calls.get("low")), _positive(calls.get("high"))
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such calibration", "Make one: tracehint calibrate DIRECTORY -o FILE"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: not a calibration: {error}", "Measure again.") from None
    if not known:
        raise InputError(f"{path}: no rate was measured", "Measure again with a larger --size-mb.")
    return Rates(min(known), max(known), low or 0.0, high or 0.0)


def _positive(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else None


def with_seconds(findings: Sequence[Finding], rates: Rates, nodes: int) -> list[Finding]:
    """The findings with `saves.seconds` where there is something to save."""
    result = []
    for finding in findings:
        saves = finding.saves
        low = saves.network_bytes / (rates.fast * nodes) + saves.operations * rates.call_low
        high = saves.network_bytes / rates.slow + saves.operations * rates.call_high
        if high > 0:
            saves = dataclasses.replace(saves, seconds=(round(low, 6), round(high, 6)))
        result.append(dataclasses.replace(finding, saves=saves))
    return result
