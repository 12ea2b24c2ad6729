"""From a pattern to neutral hints: the one table, and the values in it.

`Need` is what a set of files with one pattern tells about the values;
`hints_of` turns it into hints. Values that depend on scale carry a formula.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tracehint.analyzer.catalogue import CATALOGUE
from tracehint.hintgen.hints.model import CONSTANT, Formula, Hint, When
from tracehint.hintgen.hints.vocabulary import safe_name


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


def readers_of(formula: Formula, files: int, count: Callable[[str], int]) -> float | None:
    """Readers of each of a rule's `files` files, from the names of the run; None: not known."""
    counts = [count(template) for template, _, _ in formula.counts]
    if not any(counts) or files < 1:
        return None
    return float(
        sum(
            each * found / files if found else here
            for (_, each, here), found in zip(formula.counts, counts, strict=True)
        )
    )


def without_digits(text: bytes) -> bytes:
    """The text, each run of digits as one `#`."""
    return re.sub(rb"[0-9]+", b"#", text)


def group_name(formula: Formula, scale: Scale) -> str:
    """Name of the group that a file belongs to."""
    if scale.task is not None:
        return safe_name(scale.task, 120)
    read = without_digits if formula.letters else bytes
    texts = [
        read(scale.captures[i]).decode("utf-8", "surrogateescape")
        for i in formula.captures or ()
        if i < len(scale.captures)
    ]
    return safe_name("-".join([formula.prefix or "group", *texts]), 120)


def value_of(hint: Hint, scale: Scale) -> str:
    """The hint's value for a file of that scale; the learned value where the scale is unknown."""
    formula = hint.formula
    if formula.fn == "replicas":
        if not scale.readers:
            learned = int(hint.value)
            return str(min(learned, scale.nodes) if scale.nodes else learned)
        return str(replicas(scale.readers, scale.nodes, formula.per))
    if formula.fn == "group":
        return hint.value.partition("|")[0] + "|" + group_name(formula, scale)
    if formula.fn == "region" and scale.size is not None and scale.readers:
        step = formula.step
        return str(max(step, scale.size // scale.readers // step * step))
    return hint.value


MIN_BLOCK = 64 << 10
MAX_BLOCK = 64 << 20
READERS_PER_REPLICA = 3  # the WOSS paper: one replica per 2 to 3 readers at one time


@dataclass(frozen=True)
class Need:
    """What decides the values; numbers are medians over the files of a rule."""

    is_input: bool = False
    readers: int = 2
    copies: int = 0  # that the cost model chose; 0: not known
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


def _group_hints(
    kind: str, by: Literal["consumer", "producer"]
) -> Callable[[Need], tuple[Hint, ...]]:
    def hints(need: Need) -> tuple[Hint, ...]:
        formula = Formula(
            fn="group",
            prefix=safe_name(need.group),
            captures=need.captures,
            by=by,
            letters=need.letters,
        )
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


def _block_formula(need: Need) -> Formula:
    share = need.size / max(1, need.readers)
    scales = need.size > 0 and abs(need.region - share) <= 0.1 * share
    return Formula(fn="region", step=MIN_BLOCK) if scales else CONSTANT


def _scatter(need: Need) -> tuple[Hint, ...]:
    block, per_region = blocks(need.region, need.starts)
    when: When = "staging" if need.is_input else "create"
    formula = _block_formula(need) if per_region == 1 else CONSTANT
    return (Hint("DP", f"scatter|{per_region}", when), Hint("BlockSize", str(block), when, formula))


def _gather(need: Need) -> tuple[Hint, ...]:
    return (Hint("BlockSize", str(blocks(need.region, need.starts)[0]), "create"),)


def _readers_per_replica(need: Need) -> float:
    """Readers per copy, so that a file like those of the run gets as many copies as the cost model
    chose: it counts the readers at one time, and one copy per 2 or 3 of them."""
    if not need.copies:
        return READERS_PER_REPLICA
    for per in (2, READERS_PER_REPLICA):
        if need.copies == replicas(need.readers, need.nodes, per):
            return per
    return math.ceil(1000 * need.readers / need.copies) / 1000


def _replication_hints(need: Need) -> tuple[Hint, ...]:
    when: When = "staging" if need.is_input else "create"
    per = _readers_per_replica(need)
    copies = replicas(need.readers, need.nodes, per)
    formula = Formula(fn="replicas", per=per, counts=need.counts)
    return (
        Hint("Replication", str(copies), when, formula),
        Hint("ReplicationSemantics", "optimistic", when),
    )


# what a pattern asks for (analyzer/catalogue.py) -> its hints
_MADE: dict[str, Callable[[Need], tuple[Hint, ...]]] = {
    "local": _local,
    "collocation": _group_hints("collocation", "consumer"),
    "distribute": _group_hints("distribute", "producer"),
    "scatter": _scatter,
    "gather": _gather,
    "replication": _replication_hints,
}
# Patterns that are not here get none.
PATTERN_HINTS = {p.name: _MADE[p.hint] for p in CATALOGUE if p.hint}


def hints_of(pattern: str, need: Need) -> tuple[Hint, ...]:
    """Placement hints of a pattern; empty where there is nothing to say or no evidence."""
    if pattern in ("scatter", "gather") and need.region <= 0:
        return ()
    make = PATTERN_HINTS.get(pattern)
    return make(need) if make else ()


REREAD = 1.5  # bytes read per distinct byte from which a cache pays

Traits = tuple[tuple[str, Any], ...]


def advisory_hints(cells: Sequence[Traits], consumers: Sequence[str]) -> tuple[Hint, ...]:
    """Lifetime, last reader and access order, where all cells of a rule agree."""
    rows = [dict(cell) for cell in cells]
    out: list[Hint] = []

    def advise(name: str, value: str) -> None:
        out.append(Hint(name, value, "any", CONSTANT, "advisory"))

    last = {row["last_reader"] for row in rows}
    reader = next(iter(last)) if len(last) == 1 and all(row["last_known"] for row in rows) else None
    # A file that is still there may be a result, whatever read it last: what the run itself
    # deleted is temporary.
    if all(row["role"] == "intermediate" and row["roles"] == 1 and row["deleted"] for row in rows):
        advise("Lifetime", f"temporary|{safe_name(reader)}" if reader else "temporary")
    if reader and len(consumers) > 1:
        advise("LastReader", safe_name(reader))
    if all(row["reread"] >= REREAD for row in rows) and max(row["size"] for row in rows):
        advise("CacheSize", str(max(row["size"] for row in rows)))
    if all(row["random"] for row in rows):
        advise("Access", "random")
    return tuple(out)
