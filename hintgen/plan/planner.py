"""Plan a run: make drafts by every strategy, simulate them, improve the best, choose."""

from __future__ import annotations

from tracehint.hintgen.plan.errors import UnavailableError
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.judge import choose, estimate
from tracehint.hintgen.plan.model import Draft, Estimate, Planning, Problem, Strategy
from tracehint.hintgen.plan.strategies.registry import STRATEGIES

RUNS, FEW_RUNS, MANY_OPERATIONS = 5, 3, 100_000  # beyond so many operations fewer runs
NEAR = 1.5  # times the best: drafts that are simulated further


def plan(problem: Problem) -> Planning:
    """The estimates of all strategies and the choice. The same problem gives the same answer.

    Raises InputError for tasks that wait for each other, MissingDependencyError without engine.
    """
    made, left_out = _drafts(problem)
    bench = Bench(problem)
    total = RUNS if len(problem.work.op_kind) < MANY_OPERATIONS else FEW_RUNS
    estimates = _estimates(problem, bench, made, total)
    judged, chosen = choose(estimates, problem.cluster.model["error"])
    return Planning(
        problem=problem,
        estimates=tuple(judged),
        chosen=chosen,
        left_out=tuple(left_out),
        simulated=bench.spent,
    )


def _drafts(problem: Problem) -> tuple[list[tuple[Strategy, Draft]], list[tuple[str, str]]]:
    """All drafts with their strategy; strategies that have none, and why."""
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


def _estimates(
    problem: Problem, bench: Bench, made: list[tuple[Strategy, Draft]], total: int
) -> list[Estimate]:
    """The best draft of each strategy: all are run once, the near ones and the simple ones on."""
    outcomes = bench.run([draft for _, draft in made], range(1))
    first = [runs[0].seconds for runs in outcomes]
    near = [
        i for i, (strategy, _) in enumerate(made)
        if strategy.simple or first[i] <= NEAR * min(first)
    ]  # fmt: skip  # a table
    further = bench.run([made[i][1] for i in near], range(1, total))
    for i, runs in zip(near, further, strict=True):
        outcomes[i] += runs
    error = problem.cluster.model["error"]
    best: dict[str, Estimate] = {}
    for (strategy, draft), runs in zip(made, outcomes, strict=True):
        found = estimate(strategy, draft, runs, error)
        known = best.get(strategy.name)
        if known is None or (-len(found.runs), found.seconds) < (-len(known.runs), known.seconds):
            best[strategy.name] = found
    return list(best.values())
