"""What the probe found out, as it stands in a cluster file."""

from __future__ import annotations

from dataclasses import dataclass

from tracehint.analyzer.predict.cluster import Range


@dataclass(frozen=True)
class Known:
    """A number of the file, or a word: its place, what was measured, and from what."""

    table: str
    key: str
    value: Range | str
    said: str


def exact(value: float) -> Range:
    """A number without a range."""
    return Range(value, value, value)
