"""From a pattern to neutral hints: the one table, and the values in it.

`Need` is what a set of files with one pattern tells about the values;
`hints_of` turns it into hints. Values that depend on scale carry a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracehint.analyzer.catalogue import CATALOGUE
from tracehint.hintgen.hints.formulas import Scale, group_name, replicas
from tracehint.hintgen.hints.model import Hint
from tracehint.hintgen.hints.vocabulary import safe_name

MIN_BLOCK = 64 << 10
MAX_BLOCK = 64 << 20
READERS_PER_REPLICA = 3  # the WOSS paper: one replica per 2 to 3 readers


@dataclass(frozen=True)
class Need:
    """What decides the values; numbers are medians over the files of a rule."""

    is_input: bool = False
    readers: int = 2
    nodes: int = 2
    size: int = 0
    region: int = 0  # bytes
    starts: tuple[int, ...] = ()  # where regions begin
    group: str = ""  # task (one file) or prefix (a rule)
    captures: tuple[int, ...] = ()
    letters: bool = False  # digits of the captured text are left out
    counts: tuple[tuple[str, float, float], ...] = ()  # hintgen/learn/scale.py


def _local(need: Need) -> tuple[Hint, ...]:
    return (Hint("DP", "local", "staging" if need.is_input else "create"),)


def _grouped(kind: str, by: str) -> Callable[[Need], tuple[Hint, ...]]:
    def hints(need: Need) -> tuple[Hint, ...]:
        formula: dict[str, Any] = {
            "fn": "group", "prefix": safe_name(need.group), "captures": list(need.captures),
            "by": by,
        }  # fmt: skip  # a table
        if need.letters:
            formula["letters"] = True
        value = f"{kind}|{group_name(formula, Scale())}"
        return (Hint("DP", value, "create", formula),)

    return hints


def blocks(region: int, starts: tuple[int, ...]) -> tuple[int, int]:
    """(block size, blocks per region), so that no block holds parts of two regions.

    Regions that begin at multiples of some size of at least 64 KiB get blocks of
    it; where they begin anywhere, small blocks keep what straddles small.
    """
    step = math.gcd(*starts) if any(starts) else region
    if step < MIN_BLOCK:
        return MIN_BLOCK, max(1, region // MIN_BLOCK)
    block = step
    for pieces in range(1, 4097):
        if step % pieces == 0 and step // pieces <= MAX_BLOCK:
            block = step // pieces
            break
    return block, max(1, round(region / block))


def _block_formula(need: Need) -> dict[str, Any]:
    share = need.size / max(1, need.readers)
    scales = need.size > 0 and abs(need.region - share) <= 0.1 * share
    return {"fn": "region", "step": MIN_BLOCK} if scales else {}


def _scatter(need: Need) -> tuple[Hint, ...]:
    block, per_region = blocks(need.region, need.starts)
    when = "staging" if need.is_input else "create"
    formula = _block_formula(need) if per_region == 1 else {}
    return (Hint("DP", f"scatter|{per_region}", when), Hint("BlockSize", str(block), when, formula))


def _gather(need: Need) -> tuple[Hint, ...]:
    return (Hint("BlockSize", str(blocks(need.region, need.starts)[0]), "create"),)


def _replicated(need: Need) -> tuple[Hint, ...]:
    when = "staging" if need.is_input else "create"
    copies = replicas(need.readers, need.nodes, READERS_PER_REPLICA)
    formula: dict[str, Any] = {"fn": "replicas", "per": READERS_PER_REPLICA}
    if need.counts:
        formula["counts"] = [list(term) for term in need.counts]
    return (
        Hint("Replication", str(copies), when, formula),
        Hint("ReplicationSemantics", "optimistic", when),
    )


# what a pattern asks for (analyzer/catalogue.py) -> its hints
_MADE: dict[str, Callable[[Need], tuple[Hint, ...]]] = {
    "local": _local,
    "collocation": _grouped("collocation", "consumer"),
    "distribute": _grouped("distribute", "producer"),
    "scatter": _scatter,
    "gather": _gather,
    "replication": _replicated,
}
# Patterns that are not here get none.
PATTERN_HINTS = {p.name: _MADE[p.hint] for p in CATALOGUE if p.hint}


def hints_of(pattern: str, need: Need) -> tuple[Hint, ...]:
    """Placement hints of a pattern; empty where there is nothing to say or no evidence."""
    if pattern in ("scatter", "gather") and need.region <= 0:
        return ()
    make = PATTERN_HINTS.get(pattern)
    return make(need) if make else ()
