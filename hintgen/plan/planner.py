"""Plan a run: make drafts with each strategy, simulate them, improve the best, choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from msgspec import structs

from tracehint.analyzer.predict.prediction import error_of
from tracehint.hintgen.hints.model import INPUT, Hint, HintFile, Rule
from tracehint.hintgen.placed import hints_by_file, placement_of
from tracehint.hintgen.plan.drafts import (
    MAX_FILES,
    STRATEGIES,
    blank,
    finish_placement,
    unplace_tasks,
)
from tracehint.hintgen.plan.model import Draft, Estimate, Planning, Problem, Strategy
from tracehint.hintgen.plan.objective import (
    MAX_LOSS,
    Bench,
    Objective,
    choose,
    estimate,
    leanest,
    make_objective,
)
from tracehint.hintgen.plan.partition import UnavailableError
from tracehint.hintgen.plan.search import TRIALS, LocalSearch

NAME = "improved"
SEARCH = "neighbours"  # stored with measured plans; rename it when the search finds other plans
RUNS, FEW_RUNS, MANY_OPERATIONS = 5, 3, 100_000  # few runs from this number of operations
NEAR_BEST = 1.5  # drafts with up to this multiple of the best time are simulated further
BUDGET, RATE = 20.0, 1_000_000  # seconds; simulated operations per second on two processors
PER_STRATEGY = 3  # maximum number of drafts of a strategy that are simulated further
STARTS, START_NEAR = 5, 1.3  # improved drafts: maximum number, maximum multiple of the best time


def plan(problem: Problem, seconds: float = BUDGET) -> Planning:
    """Return the estimates of all strategies and the choice. The result is deterministic.

    `seconds`: budget of the local search on a machine that simulates RATE operations per second;
    it is converted to a number of runs, so that all machines get the same result.
    Raises InputError for cyclic dependencies, MissingDependencyError without engine.
    """
    made, left_out = _make_drafts(problem)
    bench = Bench(problem)
    total = RUNS if len(problem.work.op_kind) < MANY_OPERATIONS else FEW_RUNS
    estimates = _estimate_strategies(problem, bench, made, total)
    budget = int(seconds * RATE / max(1, len(problem.work.op_kind) + problem.work.tasks))
    estimates += _improve_best(problem, bench, estimates, budget, total)
    judged, chosen = choose(estimates, problem.cluster.model["error"])
    return Planning(
        problem=problem,
        estimates=tuple(judged),
        chosen=chosen,
        left_out=tuple(left_out),
        simulated=bench.spent,
        budget=budget,
    )


def _improve_best(
    problem: Problem, bench: Bench, estimates: list[Estimate], budget: int, total: int
) -> list[Estimate]:
    """Return the estimate of the best improved draft, if any draft could be improved."""
    known = [e for e in estimates if len(e.runs) == total]
    bound = [
        e.draft.part for e in sorted(known, key=lambda e: e.seconds) if e.draft.part is not None
    ]
    until = bench.spent + budget
    search = LocalSearch(bench, _make_trial_objective(bench, known), bound[0] if bound else None)
    starts = {start.name: start.draft for start in _select_starts(known)}
    error = error_of(problem.cluster, problem.work.guessed)
    found = []
    for name, state in search.best_of(starts, until - bench.spent).items():
        if state.changes:
            strategy = Strategy(NAME, f"{name}; {state.changes}", lambda _: [])
            draft = replace(state.draft, name=NAME)
            runs = bench.run([draft], range(total))[0]
            found.append(estimate(strategy, draft, runs, error))
    # choose() refuses anything slower than a simple strategy, regardless of its bytes
    most = min(e.seconds for e in known if e.simple)
    quick = [e for e in found if e.seconds <= most] or found
    return [leanest(quick, estimates)] if quick else []


def _make_trial_objective(bench: Bench, known: list[Estimate]) -> Objective:
    """Return the objective with its time limit taken from trial runs of the quickest draft."""
    quickest = min((e for e in known if e.draft.part is None), key=lambda e: e.seconds)
    runs = bench.run([quickest.draft], TRIALS)[0]
    most = (1 + MAX_LOSS) * float(np.mean([run.seconds for run in runs]))
    return replace(make_objective(known), max_time=most)


def _select_starts(known: list[Estimate]) -> list[Estimate]:
    """Return the drafts to improve: the leanest near the best, then by objective value."""
    objective = Objective(known[0].network_bytes)
    best = leanest(known, known)
    rest = [e for e in known if e is not best]
    rest = [e for e in rest if e.seconds <= START_NEAR * best.seconds]
    return [best, *sorted(rest, key=lambda e: objective.value(e.seconds, e.network_bytes))][:STARTS]


def _make_drafts(problem: Problem) -> tuple[list[tuple[Strategy, Draft]], list[tuple[str, str]]]:
    """Return all drafts with their strategy, and the strategies without one with the reason."""
    made: list[tuple[Strategy, Draft]] = []
    left_out = []
    assert problem.graph.tasks
    for strategy in STRATEGIES:
        try:
            drafts = strategy.make(problem)
        except UnavailableError as error:
            left_out.append((strategy.name, str(error)))
            continue
        made += [(strategy, draft) for draft in drafts]
        if not drafts:
            left_out.append((strategy.name, "nothing to do here"))
    return made, left_out


def _estimate_strategies(
    problem: Problem, bench: Bench, made: list[tuple[Strategy, Draft]], total: int
) -> list[Estimate]:
    """Estimate the best draft of each strategy: all run once, simple and promising ones `total`."""
    outcomes = bench.run([draft for _, draft in made], range(1))
    further = _select_promising(made, [runs[0].seconds for runs in outcomes])
    more = bench.run([made[i][1] for i in further], range(1, total))
    for i, runs in zip(further, more, strict=True):
        outcomes[i] += runs
    error = error_of(problem.cluster, problem.work.guessed)
    best: dict[str, Estimate] = {}
    for (strategy, draft), runs in zip(made, outcomes, strict=True):
        found = estimate(strategy, draft, runs, error)
        known = best.get(strategy.name)
        if known is None or (-len(found.runs), found.seconds) < (-len(known.runs), known.seconds):
            best[strategy.name] = found
    return list(best.values())


def _select_promising(made: list[tuple[Strategy, Draft]], first: list[float]) -> list[int]:
    """Select all drafts of simple strategies, the quickest others within NEAR_BEST."""
    by_strategy: dict[str, list[int]] = {}
    for i, (strategy, _) in enumerate(made):
        by_strategy.setdefault(strategy.name, []).append(i)
    found = []
    for rows in by_strategy.values():
        simple = made[rows[0]][0].simple
        quick = sorted(rows, key=lambda i: (first[i], i))[:PER_STRATEGY]
        found += rows if simple else [i for i in quick if first[i] <= NEAR_BEST * min(first)]
    return sorted(found)


RULE_RUNS = 3  # simulated runs per set of rules and scheduler
NOT_WORSE = 1.005  # maximum time, as a multiple of the default's mean
MORE_BYTES = 1.02  # maximum bytes, as a multiple of the default's mean
LEAST_TIME, LEAST_BYTES = 0.01, 0.02  # shares of the default's; a set must save one of them
_COPIES = ("Replication", "ReplicationSemantics")
_LOCAL = Hint("DP", "local", "create")


def chosen_rules(problem: Problem) -> tuple[HintFile, str]:
    """Return the rules of the set that saves most time without a loss, and the set's name."""
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
    """Return the mean seconds and network bytes of simulated runs with these hints by file."""
    problem = bench.problem
    placement = (
        blank(problem, "rules") if not any(values) else placement_of(values, problem.work, "rules")
    )
    placement = finish_placement(problem, replace(placement, scheduler=scheduler))
    draft = Draft("rules", placement if scheduler else unplace_tasks(problem, placement))
    runs = bench.run([draft], range(RULE_RUNS))[0]
    seconds = float(np.mean([run.seconds for run in runs]))
    return seconds, float(np.mean([run.network_bytes for run in runs]))


def _values(problem: Problem, rules: HintFile) -> list[dict[str, str]]:
    """Return hints by file from names alone; inputs have none unless staged for this run."""
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


def _use_local_only(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Replace all hints by local placement of written files, regardless of their use.

    Rules that need declared types do not match by name and are left out.
    """
    return tuple(
        replace(
            rule,
            hints=(_LOCAL,),
            variants=(),
            per_file={},
            uses=(),
            conditions=structs.replace(rule.conditions, needs=""),
        )
        for rule in rules
        if rule.producers and INPUT not in rule.producers and rule.conditions.needs != "types"
    )


# name of a set -> conversion of the learned rules
SETS: dict[str, Callable[[tuple[Rule, ...]], tuple[Rule, ...]]] = {
    "learned": tuple,
    "without-copies": _without_copies,
    "local": _use_local_only,
}
