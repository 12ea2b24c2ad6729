"""Catalogue of the patterns: what later stages need to know about each of them.

A pattern is defined in analyzer/patterns/facts.py (or groups.py), its evidence in evidence.py;
docs/how-to/add-a-pattern.md explains how to add one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """Properties of one pattern. `blind`: confidence factor where the collector cannot record how
    many bytes moved, or their offsets. `touched`: the pattern depends on which bytes were accessed;
    `thinned`: and missing single ranges can change it (fewer regions are still regions). `hint`:
    the hint that it calls for (hintgen/hints/mapping.py).
    """

    name: str
    blind: float
    color: str  # Okabe-Ito palette
    hint: str = ""
    touched: bool = False
    thinned: bool = False
    grouped: bool = False  # a label of a group of files around one task


# In order of precedence as the primary label when costs are equal.
CATALOGUE: tuple[Pattern, ...] = (
    Pattern("concurrently_shared", 0.7, "#000000", touched=True, thinned=True),
    Pattern("scatter", 0.3, "#CC79A7", "scatter", touched=True, thinned=True),
    Pattern("gather", 0.5, "#E69F00", "gather", touched=True),
    Pattern("broadcast", 0.6, "#D55E00", "replication", touched=True, thinned=True),
    Pattern("reduce", 0.7, "#0072B2", "collocation", grouped=True),
    Pattern("distribute", 0.8, "#56B4E9", "distribute", grouped=True),
    Pattern("pipeline", 0.8, "#009E73", "local"),
    Pattern("partly_shared", 0.3, "#B8A800", "replication", touched=True, thinned=True),
    Pattern("stage_in", 0.8, "#8A8A8A", "local"),
    Pattern("stage_out", 0.9, "#8A8A8A"),
)
# Minimum readers of a broadcast, scatter or partly shared file, and writers of a gather.
MIN_SHARING = 2
NAMES = tuple(p.name for p in CATALOGUE)
GROUPED = tuple(p.name for p in CATALOGUE if p.grouped)


def asking_for(hint: str) -> tuple[str, ...]:
    """Return the names of the patterns that call for this hint.

    >>> asking_for("replication")
    ('broadcast', 'partly_shared')
    """
    return tuple(p.name for p in CATALOGUE if p.hint == hint)
