"""Values that depend on scale: a closed list of formulas, no expressions from files.

replicas  {"fn": "replicas", "per": 3, "counts": [[template, each, here], ...]}: one copy
          per `per` readers, at least 2, at most the nodes. `counts` tells the readers where no
          graph does but all names of the run are known: the sum of each * files of the template
          / files of the rule, `here` for a template without files (hintgen/learn/scale.py).
group     {"fn": "group", "prefix": "reduce-x", "captures": [0, 2]}: group name from the
          consuming (or producing) task where the engine's graph names it, else from the
          template's placeholders; with "letters": true, without their digits.
region    {"fn": "region", "step": 65536}: block size = largest multiple of `step` in a
          reader's share of the file (size / readers), at least one step.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tracehint.hintgen.hints.model import Hint
from tracehint.hintgen.hints.vocabulary import safe_name

FORMULAS: dict[str, frozenset[str]] = {
    "replicas": frozenset({"fn", "per", "counts"}),
    "group": frozenset({"fn", "prefix", "captures", "by", "letters"}),
    "region": frozenset({"fn", "step"}),
}


@dataclass(frozen=True)
class Scale:
    """What is known about one file before the run; None: not known."""

    captures: tuple[bytes, ...] = ()
    readers: float | None = None
    nodes: int | None = None
    size: int | None = None
    task: str | None = None  # the one consumer (reduce) or producer (distribute)


def replicas(readers: float, nodes: int | None, per: float) -> int:
    """Copies for `readers` readers: one per `per`, at least 2, at most one per node."""
    wanted = max(2, math.ceil(readers / per))
    return min(wanted, nodes) if nodes else wanted


def readers_of(formula: dict[str, Any], files: int, count: Callable[[str], int]) -> float | None:
    """Readers of each of a rule's `files` files, from the names of the run; None: not known."""
    terms = formula.get("counts", [])
    counts = [count(template) for template, _, _ in terms]
    if not any(counts) or files < 1:
        return None
    return float(
        sum(
            each * found / files if found else here
            for (_, each, here), found in zip(terms, counts, strict=True)
        )
    )


def without_digits(text: bytes) -> bytes:
    """The text, each run of digits as one `#`."""
    return re.sub(rb"[0-9]+", b"#", text)


def group_name(formula: dict[str, Any], scale: Scale) -> str:
    """Name of the group that a file belongs to."""
    prefix = str(formula.get("prefix", "group"))
    if scale.task is not None:
        return safe_name(scale.task, 120)
    read = without_digits if formula.get("letters") else bytes
    texts = [
        read(scale.captures[i]).decode("utf-8", "surrogateescape")
        for i in formula.get("captures", [])
        if i < len(scale.captures)
    ]
    return safe_name("-".join([prefix, *texts]), 120)


def value_of(hint: Hint, scale: Scale) -> str:
    """The hint's value for a file of that scale; the learned value where the scale is unknown."""
    fn = hint.formula.get("fn")
    if fn == "replicas":
        if not scale.readers:
            learned = int(hint.value)
            return str(min(learned, scale.nodes) if scale.nodes else learned)
        return str(replicas(scale.readers, scale.nodes, float(hint.formula.get("per", 3))))
    if fn == "group":
        return hint.value.partition("|")[0] + "|" + group_name(hint.formula, scale)
    if fn == "region" and scale.size is not None and scale.readers:
        step = int(hint.formula.get("step", 65536))
        return str(max(step, scale.size // scale.readers // step * step))
    return hint.value
