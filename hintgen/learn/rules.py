"""Rules for files that do not exist yet, learned from one or several runs.

    hint_file = learn([analysis])

The steps are in candidates.py (shapes, splitting, merging) and fallback.py (fallback levels
for other names); here candidates become rules, and every rule is tried on the names
it was learned from: what it must not catch is excluded, or the rule is dropped
and the refusal said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.execution.resources import Resources, cores
from tracehint.analyzer.execution.threads import beside
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.model import HintFile, Refusal, Rule
from tracehint.hintgen.learn.build import rule_of
from tracehint.hintgen.learn.candidates import Candidate, candidates_of_shapes, split
from tracehint.hintgen.learn.facts import GROUP_BITS, facts_of, files_per_pair, nodes_of
from tracehint.hintgen.learn.fallback import by_name, by_types
from tracehint.hintgen.learn.family import by_family, by_mark, looked_for
from tracehint.hintgen.learn.filegroups import FileGroup, Types, file_groups_of
from tracehint.hintgen.learn.makers import by_maker, makers_of
from tracehint.hintgen.learn.merge import merge
from tracehint.hintgen.learn.peeks import agreed, peeks_of
from tracehint.hintgen.learn.safety import Limits, restrain
from tracehint.hintgen.learn.scale import NO_SCALES, Scales, scales_of
from tracehint.hintgen.learn.selfcheck import self_check
from tracehint.hintgen.learn.shapes import with_shapes
from tracehint.hintgen.text.masks import shapes_of
from tracehint.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.hintgen.users import Users

LARGE = 1_000_000  # files: from here on steps are made one after the other, for memory


@dataclass(frozen=True)
class LearnOptions:
    """What the learner may do; the defaults are those of docs/reference/hints.md."""

    nodes: int | None = None  # None: the largest of the runs
    fallbacks: bool = True  # fallback levels for names that differ more
    limits: Limits = field(default_factory=Limits)


def learn(
    analyses: Sequence[Analysis],
    options: LearnOptions | None = None,
    facts: list[pa.Table] | None = None,
    users: Users | None = None,
) -> HintFile:
    """Rules from runs of one workflow; what was refused is in `refused`. `facts`: those of each
    run, as `facts_of` has them, where they are there already; `users`: those of a single run."""
    options = options or LearnOptions()
    nodes = options.nodes or max((nodes_of(a) for a in analyses), default=2)
    threads = Resources(cores())
    facts, joined = _with_shapes(analyses, facts, threads, users)
    give_back()
    large = joined is not None and joined.num_rows > LARGE
    counted = beside(partial(_counted, facts, joined), Resources(1) if large else threads)
    makers = makers_of(analyses)
    leaves, mixed = _leaves(file_groups_of(joined) if joined is not None else [])
    scales, per_pair = counted()
    leaves, rules, held_back = _within_limits(merge(leaves), options.limits, nodes, scales)
    if options.fallbacks:
        tasks = sum(analysis.tasks.num_rows for analysis in analyses)
        more = _wider(leaves + mixed, tasks, per_pair)
        more += by_maker(leaves + mixed, makers)
        made = (rule_of(candidate, nodes, scales) for candidate in more)
        rules += [rule for rule in made if rule is not None]
    rules, caught = self_check(_distinct(rules), leaves + mixed)
    return HintFile(
        learned_from=tuple(_origin(a) for a in analyses),
        parameters={
            "program": f"tracehint {__version__}",
            "nodes": nodes,
            "nodes_given": _given(options, analyses),
            "company": options.fallbacks and looked_for(leaves + mixed),
            **options.limits.as_json(),
        },
        rules=tuple(rules),
        peeks=agreed([peeks_of(analysis) for analysis in analyses]),
        refused=_sorted([*map(_mixed, mixed), *caught, *held_back]),
        makers=makers if any(rule.made_by for rule in rules) else (),
    )


def _with_shapes(
    analyses: Sequence[Analysis],
    facts: list[pa.Table] | None,
    threads: Resources,
    users: Users | None,
) -> tuple[list[pa.Table], pa.Table | None]:
    """The facts of each run, and all of them with their shapes; None: there is no run. The names
    of a single run are looked at beside the rest of its facts."""
    import pyarrow as pa

    if facts is None and len(analyses) == 1:
        begun: list[Callable[[], pa.Array]] = []
        facts = [
            facts_of(
                analyses[0], lambda p: begun.append(beside(partial(shapes_of, p), threads)), users
            )
        ]
        return facts, _apart(facts)[0].append_column("shape", begun[0]())
    facts = [facts_of(analysis) for analysis in analyses] if facts is None else facts
    return facts, with_shapes(pa.concat_tables(_apart(facts))) if facts else None


def _counted(
    facts: list[pa.Table], joined: pa.Table | None
) -> tuple[Scales, dict[tuple[Types, Types], int]]:
    """The scales of a single run: several have several, which their common value already says.
    And how many files each pair of types has between the same tasks."""
    single = joined is not None and len(facts) == 1
    return scales_of(joined) if single else NO_SCALES, _per_pair(facts)


def _wider(
    candidates: list[Candidate], tasks: int, per_pair: dict[tuple[Types, Types], int]
) -> list[Candidate]:
    """The fallback levels for other names."""
    kept = [group for candidate in candidates for group in candidate.file_groups]
    families, named = by_family(candidates), by_name(candidates)
    wide = by_types(kept, tasks, per_pair)
    return [*families, *named, *by_mark(families, named), *wide]


def _leaves(file_groups: list[FileGroup]) -> tuple[list[Candidate], list[Candidate]]:
    """The candidates that are of one kind, and those that cannot be divided into such."""
    leaves: list[Candidate] = []
    mixed: list[Candidate] = []
    for candidate in candidates_of_shapes(file_groups):
        good, bad = split(candidate)
        leaves += good
        mixed += bad
    return leaves, mixed


def _sorted(refused: list[Refusal]) -> tuple[Refusal, ...]:
    """The largest first."""
    return tuple(sorted(refused, key=lambda r: (-r.bytes, r.template, r.reason)))


def _given(options: LearnOptions, analyses: Sequence[Analysis]) -> bool:
    """Whether somebody said how many nodes there are: then no value asks for more."""
    asked = [analysis.run.get("nodes_from") == "given" for analysis in analyses]
    return options.nodes is not None or (bool(asked) and all(asked))


def _within_limits(
    leaves: list[Candidate], limits: Limits, nodes: int, scales: Scales
) -> tuple[list[Candidate], list[Rule], list[Refusal]]:
    """(leaves, their rules, refusals); leaves that were refused count as unhinted from here on."""
    made = [(leaf, rule_of(leaf, nodes, scales)) for leaf in leaves]
    numbered = [replace(rule, id=str(n)) for n, (_, rule) in enumerate(made) if rule is not None]
    rules, refused = restrain(numbered, limits, nodes)
    stay = {rule.id for rule in rules}
    for number, (leaf, rule) in enumerate(made):
        if rule is not None and str(number) not in stay:
            leaf.file_groups = [replace(file_group, pattern="") for file_group in leaf.file_groups]
    return leaves, rules, refused


def _per_pair(facts: list[Any]) -> dict[tuple[Types, Types], int]:
    """`files_per_pair` of several runs: what they agree on, or only one of them has."""
    found: dict[tuple[Types, Types], set[int]] = {}
    for table in facts:
        for types, most in files_per_pair(table).items():
            found.setdefault(types, set()).add(most)
    return {types: seen.pop() for types, seen in found.items() if len(seen) == 1}


def _apart(facts: list[Any]) -> list[Any]:
    """Facts of several runs with their number, and group numbers that do not collide."""
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


def _mixed(candidate: Candidate) -> Refusal:
    names = ", ".join(sorted(pattern or "none" for pattern in candidate.patterns))
    return Refusal(
        template=candidate.template.text,
        pattern=names,
        reason="mixed",
        text=f"files of one name shape, type and use have different patterns ({names}): nothing "
        "known before a run tells them apart",
        files=candidate.files,
        bytes=candidate.size_sum,
    )


def _distinct(rules: list[Rule]) -> list[Rule]:
    """One rule per (template, what it says and needs); ids in order of evidence."""
    seen: dict[tuple[Any, ...], Rule] = {}
    for rule in rules:
        key = (
            rule.template,
            repr(rule.hints),
            rule.uses,
            repr(rule.conditions),
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
