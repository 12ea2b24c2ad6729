"""Rules for files that do not exist yet, learned from one or several runs.

    hint_file = learn([analysis])

The steps are in nodes.py (shapes, splitting, merging) and fallback.py (rungs
for other names); here nodes become rules, and every rule is tried on the names
it was learned from: what it must not catch is excluded, or the rule is dropped
and the refusal said.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tracehint import __version__
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.advice import advisory_hints
from tracehint.hintgen.facts import facts_of, nodes_of
from tracehint.hintgen.fallback import by_name, by_types
from tracehint.hintgen.mapping import Need, hints_of
from tracehint.hintgen.match import INPUT, Matcher
from tracehint.hintgen.model import Hint, HintFile, Refusal, Rule, Variant
from tracehint.hintgen.nodes import Cell, Node, cells_of, merge, nodes_of_shapes, split
from tracehint.hintgen.pathtext import to_text
from tracehint.hintgen.safety import Limits, restrain
from tracehint.hintgen.uses import BY_DEFINITION, USES

MAX_EXCLUDE = 16
FAN_USES = ("fan_in", "fan_out", "fan_both")


@dataclass(frozen=True)
class LearnOptions:
    """What the learner may do; the defaults are those of docs/reference/hints.md."""

    nodes: int | None = None  # None: the largest of the runs
    fallbacks: bool = True  # rungs for names that differ more
    limits: Limits = field(default_factory=Limits)


def learn(analyses: Sequence[Analysis], options: LearnOptions | None = None) -> HintFile:
    """Rules from runs of one workflow; what was refused is in `refused`."""
    import pyarrow as pa

    options = options or LearnOptions()
    nodes = options.nodes or max((nodes_of(a) for a in analyses), default=2)
    facts = [facts_of(analysis) for analysis in analyses]
    cells = cells_of(pa.concat_tables(_apart(facts))) if facts else []
    refused: list[Refusal] = []
    leaves: list[Node] = []
    for node in nodes_of_shapes(cells):
        good, mixed = split(node)
        leaves += good
        refused += [_mixed(part) for part in mixed]
    leaves = merge(leaves)
    candidates = [node for node in leaves if any(node.patterns)]
    if options.fallbacks:
        tasks = sum(analysis.tasks.num_rows for analysis in analyses)
        candidates += by_name(leaves) + by_types(cells, tasks)
    rules = [rule for node in candidates if (rule := _rule(node, nodes)) is not None]
    rules = _distinct(rules)
    rules, caught = _self_check(rules, leaves)
    rules, held_back = restrain(rules, options.limits, nodes)
    return HintFile(
        learned_from=tuple(_origin(a) for a in analyses),
        parameters={"program": f"tracehint {__version__}", "nodes": nodes,
                    **options.limits.as_json()},
        rules=tuple(rules),
        refused=tuple(sorted([*refused, *caught, *held_back],
                             key=lambda r: (-r.bytes, r.template, r.reason))),
    )  # fmt: skip


def _apart(facts: list[Any]) -> list[Any]:
    """Facts of several runs, with group numbers that do not collide."""
    import pyarrow.compute as pc

    out = []
    for number, table in enumerate(facts):
        at = table.schema.get_field_index("grp")
        out.append(table.set_column(at, "grp", pc.add(table["grp"], number << 40)))
    return out


def _origin(analysis: Analysis) -> dict[str, Any]:
    run = analysis.run
    return {
        "command": run.get("command", []), "started": run.get("started", ""),
        "collector": run.get("collector", ""), "tasks": analysis.tasks.num_rows,
        "files": analysis.files.num_rows, "nodes": run.get("nodes", 0),
        "completeness": (run.get("completeness") or {}).get("score", 1.0),
    }  # fmt: skip


def _mixed(node: Node) -> Refusal:
    names = ", ".join(sorted(pattern or "none" for pattern in node.patterns))
    return Refusal(
        template=node.template.text, pattern=names, reason="mixed",
        text=f"files of one name shape, type and use have different patterns ({names}): nothing "
        "known before a run tells them apart",
        files=node.files, bytes=node.size_sum,
    )  # fmt: skip


def _need(cells: list[Cell], node: Node, nodes: int, pattern: str) -> Need:
    """What the values of a pattern's hints follow from."""
    files = sum(cell.files for cell in cells)
    consumers = sorted({name for cell in cells for name in cell.consumers})
    producers = sorted({name for cell in cells for name in cell.producers})
    kinds = producers if pattern == "distribute" else consumers
    group = kinds[0] if len(kinds) == 1 else f"{pattern}-{zlib.crc32(repr(kinds).encode()):08x}"
    largest = max(cells, key=lambda cell: cell.files)
    return Need(
        is_input=not producers,
        readers=max(2, round(sum(cell.readers * cell.files for cell in cells) / files)),
        nodes=nodes, size=largest.size, region=largest.region,
        starts=tuple(start for cell in cells for start in cell.starts),
        group=group, captures=_captures(node, cells),
    )  # fmt: skip


def _captures(node: Node, cells: list[Cell]) -> tuple[int, ...]:
    """Placeholders that are the same within each group and tell the groups apart."""
    rows = [
        (node.template.match(path), group)
        for cell in cells
        for path, group in cell.samples
        if group is not None
    ]
    groups = {group for _, group in rows}
    if len(groups) < 2 or any(row is None for row, _ in rows):
        return ()
    width = len(rows[0][0] or ())
    steady = [
        hole
        for hole in range(width)
        if all(len({(row or ())[hole] for row, g in rows if g == group}) == 1 for group in groups)
    ]
    for hole in steady:
        if len({(row or ())[hole] for row, _ in rows}) == len(groups):
            return (hole,)
    told = {tuple((row or ())[hole] for hole in steady) for row, _ in rows}
    return tuple(steady) if len(told) == len(groups) else ()


def _rule(node: Node, nodes: int) -> Rule | None:
    by_pattern: dict[str, list[Cell]] = {}
    for cell in node.cells:
        by_pattern.setdefault(cell.pattern, []).append(cell)
    made = {
        pattern: hints_of(pattern, _need(cells, node, nodes, pattern))
        for pattern, cells in by_pattern.items()
    }
    hinted = [pattern for pattern in made if made[pattern]]
    if not hinted:
        return None
    main = max(hinted, key=lambda p: (sum(cell.files for cell in by_pattern[p]), p))
    cells = by_pattern[main]
    uses = tuple(sorted({cell.use for cell in cells}))
    need = node.need or ("use" if len(node.patterns) > 1 else "")
    producers = tuple(
        sorted({name for cell in node.cells for name in (cell.producers or (INPUT,))})
    )
    if producers == (INPUT,):
        producers = ()
    consumers = tuple(sorted({name for cell in node.cells for name in cell.consumers}))
    known = [cell for cell in node.cells if cell.pattern]
    examples = sorted({path for cell in cells for path, _ in cell.samples[:5]})[:5]
    files = sum(cell.files for cell in cells)
    return Rule(
        id="", template=node.template.text, regex=node.template.regex,
        directory=to_text(node.template.directory),
        producer=producers[0] if len(producers) == 1 else None,
        consumers=consumers, producers=producers, pattern=main,
        hints=(*made[main], *advisory_hints([cell.traits for cell in cells], consumers)),
        confidence=round(
            min(cell.confidence for cell in known) * files / (files + 1) * 0.8**node.level, 4
        ),
        evidence={
            "files": files, "bytes": sum(cell.size_sum for cell in cells),
            "saves_bytes": sum(cell.saves_bytes for cell in cells),
            "min_readers": min(cell.min_readers for cell in cells),
            "max_readers": max(cell.max_readers for cell in cells),
            "level": node.level,
        },
        conditions={"needs": need} if need else {},
        examples=tuple(to_text(path) for path in examples),
        uses=uses, variants=_variants(node, main, made, nodes),
    )  # fmt: skip


def _variants(
    node: Node, main: str, made: dict[str, tuple[Hint, ...]], nodes: int
) -> tuple[Variant, ...]:
    """Uses other than those of the main pattern: as seen, else by definition."""
    table = {use: next(iter(patterns)) for use, patterns in node.table.items()}
    inputs = {not cell.producers for cell in node.cells}
    odd_fan = any(use in FAN_USES and BY_DEFINITION[use] != table[use]
                  and not (use == "fan_both" and table[use] == "distribute")
                  for use in table)  # fmt: skip
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
        need = _need(node.cells, node, nodes, pattern)
        out.append(Variant(use, pattern, hints_of(pattern, replace(need, readers=2)), False))
    return tuple(out)


def _distinct(rules: list[Rule]) -> list[Rule]:
    """One rule per (template, what it says and needs); ids in order of evidence."""
    seen: dict[tuple[Any, ...], Rule] = {}
    for rule in rules:
        key = (rule.template, repr(rule.hints), rule.uses, rule.conditions.get("needs"),
               rule.producers, rule.consumers)  # fmt: skip
        seen.setdefault(key, rule)
    order = sorted(
        seen.values(),
        key=lambda r: (r.evidence["level"], -r.evidence["bytes"], r.template, r.consumers),
    )
    return [replace(rule, id=f"r{number}") for number, rule in enumerate(order, 1)]


def _self_check(rules: list[Rule], leaves: list[Node]) -> tuple[list[Rule], list[Refusal]]:
    """Exclude, or drop, where a rule would catch a file of another pattern by its name alone."""
    refused: list[Refusal] = []
    for _ in range(3):
        matcher = Matcher(HintFile((), {}, tuple(rules)))
        wrong: dict[str, dict[str, Node]] = {}
        for leaf in leaves:
            samples = [(cell, path) for cell in leaf.cells for path, _ in cell.samples[:3]]
            found = matcher.match([path for _, path in samples])
            for (cell, _), match in zip(samples, found, strict=True):
                if match.rule is not None and match.pattern != cell.pattern:
                    wrong.setdefault(match.rule.id, {})[leaf.template.text] = leaf
        if not wrong:
            break
        kept = []
        for rule in rules:
            others = wrong.get(rule.id)
            if others is None:
                kept.append(rule)
            elif rule.template in others or len(rule.exclude) + len(others) > MAX_EXCLUDE:
                refused.append(_catches(rule, others))
            else:
                kept.append(replace(rule, exclude=(*rule.exclude, *sorted(others))))
        rules = kept
    return rules, refused


def _catches(rule: Rule, others: dict[str, Node]) -> Refusal:
    some = ", ".join(sorted(others)[:3])
    return Refusal(
        template=rule.template, pattern=rule.pattern, reason="would_catch",
        text=f"it would also catch {len(others)} kinds of files of another pattern or none: {some}",
        files=rule.evidence["files"], bytes=rule.evidence["bytes"],
    )  # fmt: skip
