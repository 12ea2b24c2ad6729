"""How long the tests wait for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 900.0  # tells what hangs from what is slow on a machine full of work


def until(true: Callable[[], object], what: str, *, every_s: float = 0.05) -> None:
    """Wait until it is true. Raises AssertionError, with what it was, when it never is."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(every_s)
