"""Learn rules for files that do not exist yet from one or several runs.

    hint_file = learn([analysis])

Candidates come from candidates.py (shapes, splitting), groups.py (merging) and fallback.py
(fallback levels for other names). This module converts them to rules and tests each rule on the
names it was learned from: names of another pattern are excluded, or the rule is dropped and
reported as a refusal.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.catalogue import GROUPED
from tracehint.analyzer.execution.resources import Resources, cores, start_beside
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.model import Analysis, Options
from tracehint.hintgen.hints.mapping import Need, advisory_hints, hints_of
from tracehint.hintgen.hints.model import (
    INPUT,
    Conditions,
    Evidence,
    Hint,
    HintFile,
    Needs,
    Refusal,
    Rule,
    Variant,
)
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.uses import BY_DEFINITION, USES
from tracehint.hintgen.learn.candidates import Candidate, candidates_of_shapes, split, with_shapes
from tracehint.hintgen.learn.facts import (
    GROUP_BITS,
    facts_of,
    files_per_pair,
    find_agreed,
    nodes_of,
    peeks_of,
)
from tracehint.hintgen.learn.fallback import (
    by_family,
    by_maker,
    by_mark,
    by_name,
    by_types,
    has_few_names,
    makers_of,
)
from tracehint.hintgen.learn.filegroups import FileGroup, Types, file_groups_of
from tracehint.hintgen.learn.groups import Naming, merge
from tracehint.hintgen.learn.safety import Limits, restrain
from tracehint.hintgen.learn.scale import NO_SCALES, Scales, scales_of
from tracehint.hintgen.match.match import Matcher
from tracehint.hintgen.text.masks import shapes_of
from tracehint.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.hintgen.file_users import Users


# Conversion of a candidate to a rule.

CALL_COST = Options.call_cost_bytes  # minimum size of a file that repays a call
FAN_USES = ("fan_in", "fan_out", "fan_both")


def _need(
    file_groups: list[FileGroup], groups: Naming, nodes: int, pattern: str, scales: Scales
) -> Need:
    """Return the inputs that determine the values of a pattern's hints."""
    copied = [file_group for file_group in file_groups if file_group.copies]
    consumers = sorted({name for file_group in file_groups for name in file_group.consumers})
    producers = sorted({name for file_group in file_groups for name in file_group.producers})
    kinds = producers if pattern == "distribute" else consumers
    group = kinds[0] if len(kinds) == 1 else f"{pattern}-{zlib.crc32(repr(kinds).encode()):08x}"
    largest = max(file_groups, key=lambda file_group: file_group.files)
    captures, letters = (
        groups.captures(file_groups, pattern == "distribute") if pattern in GROUPED else ((), False)
    )
    return Need(
        is_input=not producers,
        readers=max(2, _mean(file_groups, [file_group.readers for file_group in file_groups])),
        copies=_mean(copied, [file_group.copies for file_group in copied]),
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


def _mean(file_groups: list[FileGroup], values: list[int]) -> int:
    """Return the rounded mean of `values`, weighted by files; 0 without a group."""
    files = [file_group.files for file_group in file_groups]
    total = sum(value * count for value, count in zip(values, files, strict=True))
    return round(total / sum(files)) if files else 0


def rule_of(candidate: Candidate, nodes: int, scales: Scales = NO_SCALES) -> Rule | None:
    """Return the rule of a candidate for `nodes` nodes, without an id; None if it has no hints."""
    by_pattern: dict[str, list[FileGroup]] = {}
    for file_group in candidate.file_groups:
        by_pattern.setdefault(file_group.pattern, []).append(file_group)
    groups = Naming(candidate)
    made = {
        pattern: hints_of(pattern, _need(file_groups, groups, nodes, pattern, scales))
        for pattern, file_groups in by_pattern.items()
    }
    hinted = [pattern for pattern in made if made[pattern]]
    if not hinted:
        return None
    main = max(hinted, key=lambda p: (sum(file_group.files for file_group in by_pattern[p]), p))
    file_groups = by_pattern[main]
    need: Needs = candidate.need or ("use" if len(candidate.patterns) > 1 else "")
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
        variants=_variants(candidate, groups, main, made, nodes),
        made_by=candidate.made_by,
    )


def _types(names: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({name for some in names for name in some}))


def _examples(file_groups: list[FileGroup]) -> tuple[str, ...]:
    paths = sorted({path for file_group in file_groups for path, _ in file_group.samples[:5]})
    return tuple(to_text(path) for path in paths[:5])


def _confidence(candidate: Candidate, file_groups: list[FileGroup]) -> float:
    """Return the confidence of the labels, reduced for few files and for wider templates."""
    files = sum(file_group.files for file_group in file_groups)
    surest = min(
        file_group.confidence for file_group in candidate.file_groups if file_group.pattern
    )
    return round(surest * files / (files + 1) * 0.8**candidate.level, 4)


def _evidence(candidate: Candidate, file_groups: list[FileGroup]) -> Evidence:
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


def _conditions(candidate: Candidate, need: Needs, file_groups: list[FileGroup]) -> Conditions:
    smallest = min(file_group.size_min for file_group in file_groups)
    return Conditions(
        needs=need,
        min_size_bytes=CALL_COST if smallest >= CALL_COST else 0,
        per_pair=candidate.per_pair,
        beside=tuple(candidate.siblings),
    )


def _variants(
    candidate: Candidate, groups: Naming, main: str, made: dict[str, tuple[Hint, ...]], nodes: int
) -> tuple[Variant, ...]:
    """Return variants for uses of other patterns: as observed, otherwise by definition."""
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
        need = _need(candidate.file_groups, groups, nodes, pattern, NO_SCALES)
        out.append(
            Variant(use, pattern, hints_of(pattern, replace(need, readers=2, copies=0)), False)
        )
    return tuple(out)


MAX_EXCLUDE = 16


def self_check(rules: list[Rule], leaves: list[Candidate]) -> tuple[list[Rule], list[Refusal]]:
    """Exclude names of another pattern from rules that match them, or drop the rule."""
    refused: list[Refusal] = []
    for _ in range(3):
        wrong, ties = _conflicts(rules, leaves)
        if not wrong and not ties:
            break
        kept = []
        for rule in rules:
            others = wrong.get(rule.id, {})
            if rule.id in ties:
                refused.append(_refusal(rule, "conflict", _conflict(ties[rule.id])))
            elif not others:
                kept.append(rule)
            elif rule.template in others or len(rule.exclude) + len(others) > MAX_EXCLUDE:
                refused.append(_refusal(rule, "would_catch", _catches(others)))
            else:
                kept.append(replace(rule, exclude=(*rule.exclude, *sorted(others))))
        rules = kept
    return rules, refused


def _conflicts(
    rules: list[Rule], leaves: list[Candidate]
) -> tuple[dict[str, dict[str, Candidate]], dict[str, Rule]]:
    """Return rule id -> candidates wrongly matched, and rule id -> the rule that wins a tie."""
    matcher = Matcher(HintFile((), {}, tuple(rules)))
    by_id = {rule.id: rule for rule in rules}
    wrong: dict[str, dict[str, Candidate]] = {}
    ties: dict[str, Rule] = {}
    names = frozenset(
        path for leaf in leaves for file_group in leaf.file_groups for path, _ in file_group.samples
    )
    for leaf in leaves:
        samples = [
            (file_group, path)
            for file_group in leaf.file_groups
            for path, _ in file_group.samples[:3]
        ]
        found = matcher.match([path for _, path in samples], names=names, counted=False)
        for (file_group, _), match in zip(samples, found, strict=True):
            if match.rule is not None and match.pattern != file_group.pattern:
                wrong.setdefault(match.rule.id, {})[leaf.template.text] = leaf
            tied = [by_id[name] for name, why in match.candidates if why == "tie"]
            if tied:
                first, *rest = sorted(tied, key=lambda r: (-r.evidence["saves_bytes"], r.id))
                ties.update({rule.id: first for rule in rest})
    return wrong, ties


def _refusal(rule: Rule, reason: str, text: str) -> Refusal:
    files, size = rule.evidence["files"], rule.evidence["bytes"]
    return Refusal(rule.template, rule.pattern, reason, text, files, size)


def _catches(others: dict[str, Candidate]) -> str:
    some = ", ".join(sorted(others)[:3])
    return f"it would also catch {len(others)} kinds of files of another pattern or none: {some}"


def _conflict(winner: Rule) -> str:
    return (
        f"it fits the same names as {winner.template} ({winner.pattern}), which saves more, and "
        "has other hints"
    )


LARGE = 1_000_000  # files; larger runs use one step at a time, to limit memory


@dataclass(frozen=True)
class LearnOptions:
    """Options of the learner; docs/reference/hints.md lists the defaults."""

    nodes: int | None = None  # None: the largest number of the runs
    fallbacks: bool = True  # whether to add fallback levels for other names
    limits: Limits = field(default_factory=Limits)


def learn(
    analyses: Sequence[Analysis],
    options: LearnOptions | None = None,
    facts: list[pa.Table] | None = None,
    users: Users | None = None,
) -> HintFile:
    """Learn rules from runs of one workflow; `refused` lists the rules held back. `facts`: those of
    each run (`facts_of`), if already computed; `users`: those of a single run."""
    options = options or LearnOptions()
    nodes = options.nodes or max((nodes_of(a) for a in analyses), default=2)
    threads = Resources(cores())
    facts, joined = _with_shapes(analyses, facts, threads, users)
    give_back()
    large = joined is not None and joined.num_rows > LARGE
    counted = start_beside(
        partial(_scales_of_run, facts, joined), Resources(1) if large else threads
    )
    makers = makers_of(analyses)
    leaves, mixed = _split_by_use(file_groups_of(joined) if joined is not None else [])
    scales, per_pair = counted()
    leaves, rules, held_back = _apply_limits(merge(leaves), options.limits, nodes, scales)
    if options.fallbacks:
        tasks = sum(analysis.tasks.num_rows for analysis in analyses)
        more = _make_fallbacks(leaves + mixed, tasks, per_pair)
        more += by_maker(leaves + mixed, makers)
        made = (rule_of(candidate, nodes, scales) for candidate in more)
        rules += [rule for rule in made if rule is not None]
    rules, caught = self_check(_distinct(rules), leaves + mixed)
    return HintFile(
        learned_from=tuple(_origin(a) for a in analyses),
        parameters={
            "program": f"tracehint {__version__}",
            "nodes": nodes,
            "nodes_given": _nodes_were_given(options, analyses),
            "company": options.fallbacks and has_few_names(leaves + mixed),
            **options.limits.as_json(),
        },
        rules=tuple(rules),
        peeks=find_agreed([peeks_of(analysis) for analysis in analyses]),
        refused=_sort_refusals([*map(_refuse_mixed_patterns, mixed), *caught, *held_back]),
        makers=makers if any(rule.made_by for rule in rules) else (),
    )


def _with_shapes(
    analyses: Sequence[Analysis],
    facts: list[pa.Table] | None,
    threads: Resources,
    users: Users | None,
) -> tuple[list[pa.Table], pa.Table | None]:
    """Return the facts of each run, and all joined with their shapes (None: no run). For a single
    run, the shapes are computed in parallel with the other facts."""
    import pyarrow as pa

    if facts is None and len(analyses) == 1:
        begun: list[Callable[[], pa.Array]] = []
        facts = [
            facts_of(
                analyses[0],
                lambda p: begun.append(start_beside(partial(shapes_of, p), threads)),
                users,
            )
        ]
        return facts, _number_runs(facts)[0].append_column("shape", begun[0]())
    facts = [facts_of(analysis) for analysis in analyses] if facts is None else facts
    return facts, with_shapes(pa.concat_tables(_number_runs(facts))) if facts else None


def _scales_of_run(
    facts: list[pa.Table], joined: pa.Table | None
) -> tuple[Scales, dict[tuple[Types, Types], int]]:
    """Return the scales of a single run (none for several: their pooled value covers several
    scales), and the number of files that each pair of types has per pair of tasks."""
    single = joined is not None and len(facts) == 1
    return scales_of(joined) if single else NO_SCALES, _per_pair(facts)


def _make_fallbacks(
    candidates: list[Candidate], tasks: int, per_pair: dict[tuple[Types, Types], int]
) -> list[Candidate]:
    """Return the candidates of the fallback levels for other names."""
    kept = [group for candidate in candidates for group in candidate.file_groups]
    families, named = by_family(candidates), by_name(candidates)
    wide = by_types(kept, tasks, per_pair)
    return [*families, *named, *by_mark(families, named), *wide]


def _split_by_use(file_groups: list[FileGroup]) -> tuple[list[Candidate], list[Candidate]]:
    """Return candidates whose use determines the pattern, and those that cannot be split so."""
    leaves: list[Candidate] = []
    mixed: list[Candidate] = []
    for candidate in candidates_of_shapes(file_groups):
        good, bad = split(candidate)
        leaves += good
        mixed += bad
    return leaves, mixed


def _sort_refusals(refused: list[Refusal]) -> tuple[Refusal, ...]:
    """Sort refusals by bytes, largest first."""
    return tuple(sorted(refused, key=lambda r: (-r.bytes, r.template, r.reason)))


def _nodes_were_given(options: LearnOptions, analyses: Sequence[Analysis]) -> bool:
    """Whether the number of nodes was given, and not derived from the run."""
    asked = [analysis.run.get("nodes_from") == "given" for analysis in analyses]
    return options.nodes is not None or (bool(asked) and all(asked))


def _apply_limits(
    leaves: list[Candidate], limits: Limits, nodes: int, scales: Scales
) -> tuple[list[Candidate], list[Rule], list[Refusal]]:
    """Return the leaves, their rules and the refusals; refused leaves become unhinted in place."""
    made = [(leaf, rule_of(leaf, nodes, scales)) for leaf in leaves]
    numbered = [replace(rule, id=str(n)) for n, (_, rule) in enumerate(made) if rule is not None]
    rules, refused = restrain(numbered, limits, nodes)
    stay = {rule.id for rule in rules}
    for number, (leaf, rule) in enumerate(made):
        if rule is not None and str(number) not in stay:
            leaf.file_groups = [replace(file_group, pattern="") for file_group in leaf.file_groups]
    return leaves, rules, refused


def _per_pair(facts: list[Any]) -> dict[tuple[Types, Types], int]:
    """Merge `files_per_pair` of several runs: pairs with one number in all runs that have them."""
    found: dict[tuple[Types, Types], set[int]] = {}
    for table in facts:
        for types, most in files_per_pair(table).items():
            found.setdefault(types, set()).add(most)
    return {types: seen.pop() for types, seen in found.items() if len(seen) == 1}


def _number_runs(facts: list[Any]) -> list[Any]:
    """Add the run number to the facts of several runs, and make group numbers unique."""
    import pyarrow as pa
    import pyarrow.compute as pc

    out = []
    for number, table in enumerate(facts):
        at = table.schema.get_field_index("grp")
        table = table.set_column(at, "grp", pc.add(table["grp"], number << GROUP_BITS))
        out.append(table.append_column("run", pa.array([number] * table.num_rows, pa.int32())))
    return out


def _origin(analysis: Analysis) -> dict[str, Any]:
    run = analysis.run
    return {
        "command": run.get("command", []),
        "started": run.get("started", ""),
        "collector": run.get("collector", ""),
        "tasks": analysis.tasks.num_rows,
        "files": analysis.files.num_rows,
        "nodes": run.get("nodes", 0),
        "completeness": (run.get("completeness") or {}).get("score", 1.0),
    }


def _refuse_mixed_patterns(candidate: Candidate) -> Refusal:
    names = ", ".join(sorted(pattern or "none" for pattern in candidate.patterns))
    return Refusal(
        template=candidate.template.text,
        pattern=names,
        reason="mixed",
        text=f"files of one name shape, type and use have different patterns ({names}): nothing "
        "known before a run distinguishes them",
        files=candidate.files,
        bytes=candidate.size_sum,
    )


def _distinct(rules: list[Rule]) -> list[Rule]:
    """Remove duplicate rules (same template, hints and conditions) and number them by evidence."""
    seen: dict[tuple[Any, ...], Rule] = {}
    for rule in rules:
        key = (
            rule.template,
            rule.hints,
            rule.uses,
            rule.conditions,
            rule.producers,
            rule.consumers,
            rule.made_by,
        )
        seen.setdefault(key, rule)
    order = sorted(
        seen.values(),
        key=lambda r: (r.evidence["level"], -r.evidence["bytes"], r.template, r.consumers),
    )
    return [replace(rule, id=f"r{number}") for number, rule in enumerate(order, 1)]
