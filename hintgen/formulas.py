"""Values that depend on scale: a closed list of formulas, no expressions from files.

replicas  {"fn": "replicas", "per": 3}: one copy per `per` readers, at least 2, at
          most the nodes.
group     {"fn": "group", "prefix": "reduce-x", "captures": [0, 2]}: group name from the
          consuming (or producing) task where the engine's graph names it, else from the
          template's placeholders.
region    {"fn": "region", "step": 65536}: block size = largest multiple of `step` in a
          reader's share of the file (size / readers), at least one step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tracehint.hintgen.model import Hint
from tracehint.hintgen.vocabulary import safe_name

FORMULAS: dict[str, frozenset[str]] = {
    "replicas": frozenset({"fn", "per"}),
    "group": frozenset({"fn", "prefix", "captures", "by"}),
    "region": frozenset({"fn", "step"}),
}


@dataclass(frozen=True)
class Scale:
    """What is known about one file before the run; None: not known."""

    captures: tuple[bytes, ...] = ()
    readers: int | None = None
    nodes: int | None = None
    size: int | None = None
    task: str | None = None  # the one consumer (reduce) or producer (distribute)


def replicas(readers: int, nodes: int | None, per: float) -> int:
    """Copies for `readers` readers: one per `per`, at least 2, at most one per node."""
    wanted = max(2, math.ceil(readers / per))
    return min(wanted, nodes) if nodes else wanted


def group_name(formula: dict[str, Any], scale: Scale) -> str:
    """Name of the group that a file belongs to."""
    prefix = str(formula.get("prefix", "group"))
    if scale.task is not None:
        return safe_name(scale.task, 120)
    texts = [
        scale.captures[i].decode("utf-8", "surrogateescape")
        for i in formula.get("captures", [])
        if i < len(scale.captures)
    ]
    return safe_name("-".join([prefix, *texts]), 120)


def value_of(hint: Hint, scale: Scale) -> str:
    """The hint's value for a file of that scale; the learned value where the scale is unknown."""
    fn = hint.formula.get("fn")
    if fn == "replicas":
        if scale.readers is None:
            learned = int(hint.value)
            return str(min(learned, scale.nodes) if scale.nodes else learned)
        return str(replicas(scale.readers, scale.nodes, float(hint.formula.get("per", 3))))
    if fn == "group":
        return hint.value.partition("|")[0] + "|" + group_name(hint.formula, scale)
    if fn == "region" and scale.size is not None and scale.readers:
        step = int(hint.formula.get("step", 65536))
        return str(max(step, scale.size // scale.readers // step * step))
    return hint.value
