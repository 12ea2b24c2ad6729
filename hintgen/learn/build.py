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
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.filegroups import FileGroup
from tracehint.hintgen.learn.groups import Told
from tracehint.hintgen.learn.scale import NO_SCALES, Scales

CALL_COST = Options.call_cost_bytes  # a file below it does not repay a call
FAN_USES = ("fan_in", "fan_out", "fan_both")


def _need(
    file_groups: list[FileGroup], told: Told, nodes: int, pattern: str, scales: Scales
) -> Need:
    """What the values of a pattern's hints follow from."""
    files = sum(file_group.files for file_group in file_groups)
    consumers = sorted({name for file_group in file_groups for name in file_group.consumers})
    producers = sorted({name for file_group in file_groups for name in file_group.producers})
    kinds = producers if pattern == "distribute" else consumers
    group = kinds[0] if len(kinds) == 1 else f"{pattern}-{zlib.crc32(repr(kinds).encode()):08x}"
    largest = max(file_groups, key=lambda file_group: file_group.files)
    captures, letters = (
        told.captures(file_groups, pattern == "distribute") if pattern in GROUPED else ((), False)
    )
    return Need(
        is_input=not producers,
        readers=max(
            2,
            round(sum(file_group.readers * file_group.files for file_group in file_groups) / files),
        ),
        nodes=nodes,
        size=largest.size,
        region=largest.region,
        starts=tuple(start for file_group in file_groups for start in file_group.starts),
        counts=scales.terms({file_group.shape for file_group in file_groups})
        if pattern == "broadcast"
        else (),
        group=group,
        captures=captures,
        letters=letters,
    )


def rule_of(candidate: Candidate, nodes: int, scales: Scales = NO_SCALES) -> Rule | None:
    """The rule of a node for `nodes` nodes, without an id; None where it has no hints."""
    by_pattern: dict[str, list[FileGroup]] = {}
    for file_group in candidate.file_groups:
        by_pattern.setdefault(file_group.pattern, []).append(file_group)
    told = Told(candidate)
    made = {
        pattern: hints_of(pattern, _need(file_groups, told, nodes, pattern, scales))
        for pattern, file_groups in by_pattern.items()
    }
    hinted = [pattern for pattern in made if made[pattern]]
    if not hinted:
        return None
    main = max(hinted, key=lambda p: (sum(file_group.files for file_group in by_pattern[p]), p))
    file_groups = by_pattern[main]
    need = candidate.need or ("use" if len(candidate.patterns) > 1 else "")
    producers = _types(file_group.producers or (INPUT,) for file_group in candidate.file_groups)
    producers = () if producers == (INPUT,) else producers
    consumers = _types(file_group.consumers for file_group in candidate.file_groups)
    return Rule(
        id="",
        template=candidate.template.text,
        regex=candidate.template.regex,
        directory=to_text(candidate.template.directory),
        producer=producers[0] if len(producers) == 1 else None,
        consumers=consumers,
        producers=producers,
        pattern=main,
        hints=(
            *made[main],
            *advisory_hints([file_group.traits for file_group in file_groups], consumers),
        ),
        confidence=_confidence(candidate, file_groups),
        evidence=_evidence(candidate, file_groups),
        conditions=_conditions(candidate, need, file_groups),
        examples=_examples(file_groups),
        uses=tuple(sorted({file_group.use for file_group in file_groups})),
        variants=_variants(candidate, told, main, made, nodes),
        made_by=candidate.made_by,
    )


def _types(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for some in names for name in some}))


def _examples(file_groups: list[FileGroup]) -> tuple[str, ...]:
    paths = sorted({path for file_group in file_groups for path, _ in file_group.samples[:5]})
    return tuple(to_text(path) for path in paths[:5])


def _confidence(candidate: Candidate, file_groups: list[FileGroup]) -> float:
    """That of the labels; less for few files and for wider templates."""
    files = sum(file_group.files for file_group in file_groups)
    surest = min(
        file_group.confidence for file_group in candidate.file_groups if file_group.pattern
    )
    return round(surest * files / (files + 1) * 0.8**candidate.level, 4)


def _evidence(candidate: Candidate, file_groups: list[FileGroup]) -> dict[str, Any]:
    return {
        "files": sum(file_group.files for file_group in file_groups),
        "bytes": sum(file_group.size_sum for file_group in file_groups),
        "saves_bytes": sum(file_group.saves_bytes for file_group in file_groups),
        "paying_files": sum(file_group.paying for file_group in file_groups),
        "largest_group_bytes": max(file_group.group_bytes for file_group in file_groups),
        "largest_file_bytes": max(file_group.size_max for file_group in file_groups),
        "min_readers": min(file_group.min_readers for file_group in file_groups),
        "max_readers": max(file_group.max_readers for file_group in file_groups),
        "label_confidence": min(file_group.confidence for file_group in file_groups),
        "level": candidate.level,
    }


def _conditions(candidate: Candidate, need: str, file_groups: list[FileGroup]) -> dict[str, Any]:
    found: dict[str, Any] = {"needs": need} if need else {}
    if min(file_group.size_min for file_group in file_groups) >= CALL_COST:
        found["min_size_bytes"] = CALL_COST
    if candidate.siblings:
        found["beside"] = list(candidate.siblings)
    if candidate.per_pair:
        found["per_pair"] = candidate.per_pair
    return found


def _variants(
    candidate: Candidate, told: Told, main: str, made: dict[str, tuple[Hint, ...]], nodes: int
) -> tuple[Variant, ...]:
    """Uses other than those of the main pattern: as seen, else by definition."""
    table = {use: next(iter(patterns)) for use, patterns in candidate.table.items()}
    inputs = {not file_group.producers for file_group in candidate.file_groups}
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
        need = _need(candidate.file_groups, told, nodes, pattern, NO_SCALES)
        out.append(Variant(use, pattern, hints_of(pattern, replace(need, readers=2)), False))
    return tuple(out)
