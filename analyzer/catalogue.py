"""The patterns, one row each: what the rooms after the analysis need to know of all of them.

What a pattern is stands in analyzer/patterns/facts.py (or groups.py), its numbers in numbers.py;
docs/how-to/add-a-pattern.md adds one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """`blind`: what a label is worth where the collector could not see how many bytes moved, or
    where. `touched`: it rests on which bytes were touched; `thinned`: and changes when single
    ranges are missing (fewer regions are still regions). `hint`: what it asks of a store
    (hintgen/hints/mapping.py).
    """

    name: str
    blind: float
    color: str  # Okabe and Ito's set
    hint: str = ""
    touched: bool = False
    thinned: bool = False
    grouped: bool = False  # a label of a group of files around one task


# In the order in which they become the primary label where the costs are the same.
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
)  # fmt: skip  # a table
# The least readers of a broadcast, scatter or partly shared file, and writers of a gather.
MIN_SHARING = 2
NAMES = tuple(p.name for p in CATALOGUE)
GROUPED = tuple(p.name for p in CATALOGUE if p.grouped)


def asking_for(hint: str) -> tuple[str, ...]:
    """The patterns that ask for it.

    >>> asking_for("replication")
    ('broadcast', 'partly_shared')
    """
    return tuple(p.name for p in CATALOGUE if p.hint == hint)
