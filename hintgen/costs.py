"""What setting a hint costs on a store, as `tracehint calibrate` measured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tracehint.errors import InputError

SCHEMA = "tracehint.calibration/1"


def measured(path: Path) -> tuple[float, float]:
    """(milliseconds of a call that sets a hint, megabits per second) of a calibration file.

    The rate is the faster one of writing and reading: what a byte saved is worth at least.
    Raises InputError.
    """
    try:
        data = json.loads(path.read_bytes())
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, not {SCHEMA!r}")
        rates = [_number(data[name].get("bytes_per_s")) for name in ("write", "read")]
        call = _number(data["calls"]["set"].get("seconds"))
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}", "Make one: tracehint calibrate DIR -o FILE"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: not a calibration: {error}", "Measure again.") from None
    if not call or not any(rates):
        raise InputError(
            f"{path}: no time of a set call, or no rate, was measured",
            "Give --call-ms and --link-mbit instead.",
        )
    return call * 1e3, max(rates) * 8e-6


def _number(value: Any) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else 0.0
