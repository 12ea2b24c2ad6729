"""Which rules by name go into the hint file: those that lose on no scheduler, by simulation.

A run whose graph nobody knows gets these rules alone. Several sets are tried, from what was
learned to none at all; what is slower than the store's default or moves more bytes, with tasks on
any node or with tasks where their input lies, is not taken; nor is what saves next to nothing,
for that loses as often as it gains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tracehint.hintgen.hints.model import INPUT, Hint, HintFile, Rule
from tracehint.hintgen.placed import hints_by_file, placement_of
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import blank, finished
from tracehint.hintgen.plan.strategies.per_file import MAX_FILES

RUNS = 3
NOT_WORSE = 1.005  # times the default's mean time
MORE_BYTES = 1.02  # times the default's mean bytes
LEAST_TIME, LEAST_BYTES = 0.01, 0.02  # of the default's: what a set must save, one of them
_COPIES = ("Replication", "ReplicationSemantics")
_LOCAL = Hint("DP", "local", "create")


def chosen_rules(problem: Problem) -> tuple[HintFile, str]:
    """The rules that save most and lose nowhere, and the name of their set."""
    rules = problem.rules or HintFile((), {}, ())
    if problem.work.files > MAX_FILES:
        return replace(rules, rules=()), "large"
    if not rules.rules:
        return rules, "none"
    bench = Bench(problem)
    base = [_means(bench, [{}] * problem.work.files, scheduler) for scheduler in _SCHEDULERS]
    best, gain = "none", 0.0
    for name, change in SETS.items():
        values = _values(problem, replace(rules, rules=change(rules.rules)))
        if not any(values):
            continue
        found = [_means(bench, values, scheduler) for scheduler in _SCHEDULERS]
        times, sizes = (np.array(found) / np.maximum(base, 1e-9)).T
        saved, fewer = 1.0 - float(times.mean()), 1.0 - float(sizes.mean())
        if saved < LEAST_TIME and fewer < LEAST_BYTES:
            continue
        if times.max() <= NOT_WORSE and sizes.max() <= MORE_BYTES and saved > gain:
            best, gain = name, saved
    kept = SETS[best](rules.rules) if best in SETS else ()
    return replace(rules, rules=kept, parameters={**rules.parameters, "rules": best}), best


_SCHEDULERS = (None, "most-input-bytes")


def _means(
    bench: Bench, values: list[dict[str, str]], scheduler: str | None
) -> tuple[float, float]:
    """Seconds and bytes of the runs with these hints by file, on average."""
    problem = bench.problem
    placement = (
        blank(problem, "rules") if not any(values) else placement_of(values, problem.work, "rules")
    )
    draft = Draft("rules", finished(problem, replace(placement, scheduler=scheduler)))
    runs = bench.run([draft], range(RUNS))[0]
    seconds = float(np.mean([run.seconds for run in runs]))
    return seconds, float(np.mean([run.network_bytes for run in runs]))


def _values(problem: Problem, rules: HintFile) -> list[dict[str, str]]:
    """Hints by file from names alone; inputs get none unless they are brought for this run."""
    count = problem.cluster.count
    values = hints_by_file(
        rules, problem.analysis, problem.work, count, graph=False, facts=problem.facts
    )
    if problem.staged:
        return values
    return [v if made else {} for v, made in zip(values, problem.work.produced, strict=True)]


def _without_copies(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    def kept(hints: tuple[Hint, ...]) -> tuple[Hint, ...]:
        return tuple(h for h in hints if h.name not in _COPIES)

    return tuple(
        replace(
            rule,
            hints=kept(rule.hints),
            variants=tuple(replace(v, hints=kept(v.hints)) for v in rule.variants),
            per_file={},
        )
        for rule in rules
        if kept(rule.hints)
    )


def _local(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """What a task writes stays where it is written, whatever it is used for.

    A rule that needs declared types says nothing about names, and is left out.
    """
    return tuple(
        replace(rule, hints=(_LOCAL,), variants=(), per_file={}, uses=(), conditions=_any_use(rule))
        for rule in rules
        if rule.producers
        and INPUT not in rule.producers
        and rule.conditions.get("needs") != "types"
    )


def _any_use(rule: Rule) -> dict[str, Any]:
    return {key: value for key, value in rule.conditions.items() if key != "needs"}


# name of a set -> what becomes of the learned rules
SETS: dict[str, Callable[[tuple[Rule, ...]], tuple[Rule, ...]]] = {
    "learned": tuple,
    "without-copies": _without_copies,
    "local": _local,
}
