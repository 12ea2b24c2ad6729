"""Human-readable numbers; the page formats them alike (hintgen/report/assets/js/1_util.js)."""

from __future__ import annotations

from tracehint.analyzer.text import human_bytes, human_seconds


def size(count: float | None) -> str:
    """Format bytes with a binary unit.

    >>> size(1536), size(0), size(None)
    ('1.5 KiB', '0 B', '?')
    >>> size(1023 * 1024)
    '1023 KiB'
    """
    return "?" if count is None else human_bytes(count)


def number(count: int) -> str:
    """Format an integer with thousands separators.

    >>> number(2833)
    '2,833'
    """
    return f"{count:,}"


def seconds(value: float | None) -> str:
    """Format a duration.

    >>> seconds(0.25), seconds(75.0), seconds(None)
    ('0.250 s', '1 min 15 s', '?')
    """
    return "?" if value is None else human_seconds(value)
