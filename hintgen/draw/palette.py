"""Colours of the patterns: Okabe and Ito's set, told apart with every kind of colour vision.

Colour never stands alone: the pattern's name is in the label or the legend too.
"""

from __future__ import annotations

from tracehint.analyzer.catalogue import CATALOGUE

PATTERN_COLOR: dict[str, str] = {p.name: p.color for p in CATALOGUE}
NO_PATTERN = "#8A8A8A"


def color(pattern: str) -> str:
    """The pattern's colour; grey for none."""
    return PATTERN_COLOR.get(pattern, NO_PATTERN)


def tint(pattern: str, strength: float = 0.15) -> str:
    """The pattern's colour mixed into white, for a background under black text.

    >>> tint("reduce", 1.0), tint("reduce", 0.0)
    ('#0072b2', '#ffffff')
    """
    base = color(pattern)
    parts = (int(base[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (p - 255) * strength):02x}" for p in parts)
