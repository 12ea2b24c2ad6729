"""Time that the tests wait for expected events."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 900.0  # distinguishes hanging from slow on a loaded machine


def until(true: Callable[[], object], what: str, *, every_s: float = 0.05) -> None:
    """Wait until `true()` holds. Raises AssertionError with `what` if it never does."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(every_s)
