"""What `tracehint calibrate` measured on a store: rates, and what a call costs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.errors import InputError
from tracehint.hintgen.text.textfile import TextFile

SCHEMA = "tracehint.calibration/1"
_FILE = TextFile(
    kind="A calibration",
    limit="small-bytes",
    remedy="Measure again.",
    check="Make one: tracehint calibrate DIRECTORY -o FILE",
)


@dataclass(frozen=True)
class Rates:
    """Bytes per second, slowest and fastest; seconds per call. 0: a call was not measured."""

    slow: float
    fast: float
    open_low: float = 0.0  # of opening a file, lowest and highest
    open_high: float = 0.0
    set_hint: float = 0.0  # of setting a hint, median


def read_rates(path: Path) -> Rates:
    """Rates of a calibration file. Raises InputError."""
    data = _FILE.json(path)
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, not {SCHEMA!r}")
        rates = [_number(data[name].get("bytes_per_s")) for name in ("write", "read")]
        calls = {name: data["calls"].get(name, {}) for name in ("open", "set")}
        low, high = _number(calls["open"].get("low")), _number(calls["open"].get("high"))
        set_hint = _number(calls["set"].get("seconds"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a calibration: {error}", "Measure again.") from None
    known = [rate for rate in rates if rate]
    if not known:
        raise InputError(f"{path}: no rate was measured", "Measure again with a larger --size-mb.")
    return Rates(min(known), max(known), low, high, set_hint)


def hint_cost(path: Path) -> tuple[float, float]:
    """(milliseconds of a call that sets a hint, megabits per second) of a calibration file.

    The rate is the faster one of writing and reading: what a byte saved is worth at least.
    Raises InputError.
    """
    rates = read_rates(path)
    if not rates.set_hint:
        raise InputError(
            f"{path}: no time of a set call was measured", "Give --call-ms and --link-mbit instead."
        )
    return rates.set_hint * 1e3, rates.fast * 8e-6


def _number(value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else 0.0
