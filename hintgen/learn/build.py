"""From a node (a template and what it covers) to a rule."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tracehint.analyzer.catalogue import GROUPED
from tracehint.analyzer.model import Options
from tracehint.hintgen.hints.advice import advisory_hints
from tracehint.hintgen.hints.mapping import Need, hints_of
from tracehint.hintgen.hints.model import INPUT, Hint, Rule, Variant
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.uses import BY_DEFINITION, USES
from tracehint.hintgen.learn.cells import Cell
from tracehint.hintgen.learn.groups import captures_of
from tracehint.hintgen.learn.nodes import Node
from tracehint.hintgen.learn.scale import NO_SCALES, Scales

CALL_COST = Options.call_cost_bytes  # a file below it does not repay a call
FAN_USES = ("fan_in", "fan_out", "fan_both")


def _need(cells: list[Cell], node: Node, nodes: int, pattern: str, scales: Scales) -> Need:
    """What the values of a pattern's hints follow from."""
    files = sum(cell.files for cell in cells)
    consumers = sorted({name for cell in cells for name in cell.consumers})
    producers = sorted({name for cell in cells for name in cell.producers})
    kinds = producers if pattern == "distribute" else consumers
    group = kinds[0] if len(kinds) == 1 else f"{pattern}-{zlib.crc32(repr(kinds).encode()):08x}"
    largest = max(cells, key=lambda cell: cell.files)
    captures, letters = (
        captures_of(node, cells, pattern == "distribute") if pattern in GROUPED else ((), False)
    )
    return Need(
        is_input=not producers,
        readers=max(2, round(sum(cell.readers * cell.files for cell in cells) / files)),
        nodes=nodes,
        size=largest.size,
        region=largest.region,
        starts=tuple(start for cell in cells for start in cell.starts),
        counts=scales.terms({cell.shape for cell in cells}) if pattern == "broadcast" else (),
        group=group,
        captures=captures,
        letters=letters,
    )


def rule_of(node: Node, nodes: int, scales: Scales = NO_SCALES) -> Rule | None:
    """The rule of a node for `nodes` nodes, without an id; None where it has no hints."""
    by_pattern: dict[str, list[Cell]] = {}
    for cell in node.cells:
        by_pattern.setdefault(cell.pattern, []).append(cell)
    made = {
        pattern: hints_of(pattern, _need(cells, node, nodes, pattern, scales))
        for pattern, cells in by_pattern.items()
    }
    hinted = [pattern for pattern in made if made[pattern]]
    if not hinted:
        return None
    main = max(hinted, key=lambda p: (sum(cell.files for cell in by_pattern[p]), p))
    cells = by_pattern[main]
    need = node.need or ("use" if len(node.patterns) > 1 else "")
    producers = _types(cell.producers or (INPUT,) for cell in node.cells)
    if producers == (INPUT,):
        producers = ()
    consumers = _types(cell.consumers for cell in node.cells)
    return Rule(
        id="",
        template=node.template.text,
        regex=node.template.regex,
        directory=to_text(node.template.directory),
        producer=producers[0] if len(producers) == 1 else None,
        consumers=consumers,
        producers=producers,
        pattern=main,
        hints=(*made[main], *advisory_hints([cell.traits for cell in cells], consumers)),
        confidence=_confidence(node, cells),
        evidence=_evidence(node, cells),
        conditions=_conditions(node, need, cells),
        examples=_examples(cells),
        uses=tuple(sorted({cell.use for cell in cells})),
        variants=_variants(node, main, made, nodes),
    )


def _types(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for some in names for name in some}))


def _examples(cells: list[Cell]) -> tuple[str, ...]:
    paths = sorted({path for cell in cells for path, _ in cell.samples[:5]})
    return tuple(to_text(path) for path in paths[:5])


def _confidence(node: Node, cells: list[Cell]) -> float:
    """That of the labels; less for few files and for wider templates."""
    files = sum(cell.files for cell in cells)
    surest = min(cell.confidence for cell in node.cells if cell.pattern)
    return round(surest * files / (files + 1) * 0.8**node.level, 4)


def _evidence(node: Node, cells: list[Cell]) -> dict[str, Any]:
    return {
        "files": sum(cell.files for cell in cells),
        "bytes": sum(cell.size_sum for cell in cells),
        "saves_bytes": sum(cell.saves_bytes for cell in cells),
        "paying_files": sum(cell.paying for cell in cells),
        "largest_group_bytes": max(cell.group_bytes for cell in cells),
        "largest_file_bytes": max(cell.size_max for cell in cells),
        "min_readers": min(cell.min_readers for cell in cells),
        "max_readers": max(cell.max_readers for cell in cells),
        "label_confidence": min(cell.confidence for cell in cells),
        "level": node.level,
    }


def _conditions(node: Node, need: str, cells: list[Cell]) -> dict[str, Any]:
    found: dict[str, Any] = {"needs": need} if need else {}
    if min(cell.size_min for cell in cells) >= CALL_COST:
        found["min_size_bytes"] = CALL_COST
    if node.siblings:
        found["beside"] = list(node.siblings)
    if node.per_pair:
        found["per_pair"] = node.per_pair
    return found


def _variants(
    node: Node, main: str, made: dict[str, tuple[Hint, ...]], nodes: int
) -> tuple[Variant, ...]:
    """Uses other than those of the main pattern: as seen, else by definition."""
    table = {use: next(iter(patterns)) for use, patterns in node.table.items()}
    inputs = {not cell.producers for cell in node.cells}
    odd_fan = any(
        use in FAN_USES
        and BY_DEFINITION[use] != table[use]
        and not (use == "fan_both" and table[use] == "distribute")
        for use in table
    )
    out = []
    for use in USES[1:]:
        if use in table:
            if table[use] != main:
                out.append(Variant(use, table[use], made[table[use]], True))
            continue
        fits = use == "shared" or (use == "input_once") in inputs
        if not fits or (odd_fan and use in FAN_USES):
            continue
        pattern = BY_DEFINITION[use]
        need = _need(node.cells, node, nodes, pattern, NO_SCALES)
        out.append(Variant(use, pattern, hints_of(pattern, replace(need, readers=2)), False))
    return tuple(out)
