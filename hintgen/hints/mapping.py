"""Map patterns to store-independent hints and compute the hint values.

`Need` holds the measurements of files with one pattern; `hints_of` converts
it to hints. Values that depend on the scale of a run have a formula.
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
    """Scale of one file as known before the run; None: unknown."""

    captures: tuple[bytes, ...] = ()
    readers: float | None = None
    nodes: int | None = None
    size: int | None = None
    task: str | None = None  # the one consumer (reduce) or producer (distribute)


def replicas(readers: float, nodes: int | None, per: float) -> int:
    """Return the copies for `readers` readers: one per `per`, at least 2, at most one per node."""
    wanted = max(2, math.ceil(readers / per))
    return min(wanted, nodes) if nodes else wanted


def readers_of(formula: Formula, files: int, count: Callable[[str], int]) -> float | None:
    """Estimate the readers per file of a rule with `files` files from names; None: unknown."""
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
    """Replace each sequence of digits by one `#`."""
    return re.sub(rb"[0-9]+", b"#", text)


def group_name(formula: Formula, scale: Scale) -> str:
    """Return the name of the group that a file belongs to."""
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
    """Return the hint's value for a file of this scale; the learned value if it is unknown."""
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
READERS_PER_REPLICA = 3  # the WOSS paper: one replica per 2 to 3 concurrent readers


@dataclass(frozen=True)
class Need:
    """Inputs that determine the hint values; numbers are medians over the files of a rule."""

    is_input: bool = False
    readers: int = 2
    copies: int = 0  # chosen by the cost model; 0: unknown
    nodes: int = 2
    size: int = 0
    region: int = 0  # bytes
    starts: tuple[int, ...] = ()  # where regions begin
    group: str = ""  # task (one file) or prefix (a rule)
    captures: tuple[int, ...] = ()
    letters: bool = False  # digits of the captured text are ignored
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
    """Return (block size, blocks per region), so that no block contains parts of two regions.

    Regions that begin at multiples of some size of at least 64 KiB get blocks of that size (or a
    divisor up to MAX_BLOCK); for other offsets, small blocks limit the bytes that straddle.
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
    """Return the readers per copy that reproduce the copies chosen by the cost model, which assigns
    one copy per 2 or 3 concurrent readers."""
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


# hint kind of a pattern (analyzer/catalogue.py) -> function that makes the hints
_MADE: dict[str, Callable[[Need], tuple[Hint, ...]]] = {
    "local": _local,
    "collocation": _group_hints("collocation", "consumer"),
    "distribute": _group_hints("distribute", "producer"),
    "scatter": _scatter,
    "gather": _gather,
    "replication": _replication_hints,
}
# Patterns not listed have no hints.
PATTERN_HINTS = {p.name: _MADE[p.hint] for p in CATALOGUE if p.hint}


def hints_of(pattern: str, need: Need) -> tuple[Hint, ...]:
    """Return the placement hints of a pattern; empty if it has none or regions are unknown."""
    if pattern in ("scatter", "gather") and need.region <= 0:
        return ()
    make = PATTERN_HINTS.get(pattern)
    return make(need) if make else ()


REREAD = 1.5  # minimum bytes read per distinct byte for a cache to pay

Traits = tuple[tuple[str, Any], ...]


def advisory_hints(cells: Sequence[Traits], consumers: Sequence[str]) -> tuple[Hint, ...]:
    """Return lifetime, last reader, cache size and access order if all file groups agree."""
    rows = [dict(cell) for cell in cells]
    out: list[Hint] = []

    def advise(name: str, value: str) -> None:
        out.append(Hint(name, value, "any", CONSTANT, "advisory"))

    last = {row["last_reader"] for row in rows}
    reader = next(iter(last)) if len(last) == 1 and all(row["last_known"] for row in rows) else None
    # Only files that the run itself deleted are temporary; a remaining file may be a result,
    # regardless of its last reader.
    if all(row["role"] == "intermediate" and row["roles"] == 1 and row["deleted"] for row in rows):
        advise("Lifetime", f"temporary|{safe_name(reader)}" if reader else "temporary")
    if reader and len(consumers) > 1:
        advise("LastReader", safe_name(reader))
    if all(row["reread"] >= REREAD for row in rows) and max(row["size"] for row in rows):
        advise("CacheSize", str(max(row["size"] for row in rows)))
    if all(row["random"] for row in rows):
        advise("Access", "random")
    return tuple(out)
