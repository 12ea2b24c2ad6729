"""Plan a run: make drafts by every strategy, simulate them, improve the best, choose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracehint.analyzer.predict.sampling import error_of
from tracehint.hintgen.plan.climb import TRIALS, Climb
from tracehint.hintgen.plan.errors import UnavailableError
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.improve import NAME, deepen, improve, polish
from tracehint.hintgen.plan.judge import choose, estimate, leanest, worth_among
from tracehint.hintgen.plan.model import Draft, Estimate, Planning, Problem, Strategy
from tracehint.hintgen.plan.strategies.registry import STRATEGIES
from tracehint.hintgen.plan.worth import GIVEN, HARDLY, Worth

SEARCH = "races"  # name of the search, told beside measured plans: other plans, another name
RUNS, FEW_RUNS, MANY_OPERATIONS = 5, 3, 100_000  # beyond so many operations fewer runs
NEAR = 1.5  # times the best: drafts that are simulated further
BUDGET, RATE = 20.0, 1_000_000  # seconds, simulated operations a second on two processors
PER_STRATEGY = 3  # of them at most
STARTS, START_NEAR = 5, 1.3  # drafts that are improved, no further from the best than so many times
# of the budget: for each of them, and for the best of these; the best one has the rest
SHARES, DEEPENED, ENOUGH = (0.05, 0.12), 3, 150  # and runs at least


def plan(problem: Problem, seconds: float = BUDGET) -> Planning:
    """The estimates of all strategies and the choice. The same problem gives the same answer.

    `seconds`: the budget of the local improvement, on a machine that simulates RATE operations a
    second; it is counted, not timed, so that every machine finds the same.
    Raises InputError for tasks that wait for each other, MissingDependencyError without engine.
    """
    made, left_out = _drafts(problem)
    bench = Bench(problem)
    total = RUNS if len(problem.work.op_kind) < MANY_OPERATIONS else FEW_RUNS
    estimates = _estimates(problem, bench, made, total)
    budget = int(seconds * RATE / max(1, len(problem.work.op_kind) + problem.work.tasks))
    estimates += _improved(problem, bench, estimates, budget, total)
    judged, chosen = choose(estimates, problem.cluster.model["error"])
    return Planning(
        problem=problem,
        estimates=tuple(judged),
        chosen=chosen,
        left_out=tuple(left_out),
        simulated=bench.spent,
        budget=budget,
    )


def _improved(
    problem: Problem, bench: Bench, estimates: list[Estimate], budget: int, total: int
) -> list[Estimate]:
    """The best estimates with the moves that pay, as one more; none where no move does.

    Each takes a share of the budget, and no less than gets it anywhere; the best what is left.
    """
    known = [e for e in estimates if len(e.runs) == total]
    bound = [
        e.draft.part for e in sorted(known, key=lambda e: e.seconds) if e.draft.part is not None
    ]
    cut = bound[0] if bound else None
    worth = _worth_in_trials(bench, known)
    error = error_of(problem.cluster, problem.work.guessed)
    until, climbs = bench.spent + budget, dict[str, Climb]()
    strict = replace(worth, power=HARDLY)
    starts = [(start.name, start, worth) for start in _starts(known)]
    starts += [(f"{s.name}, strict", s, strict) for _, s, _ in starts if s.draft.part is None][:1]
    for name, start, goal in starts:
        own = start.draft.part if start.draft.part is not None else cut
        share = _share(SHARES[0], budget, until - bench.spent)
        climbs[name] = improve(bench, start.draft, own, share, goal)
    for name in sorted(climbs, key=lambda name: climbs[name].mean)[:DEEPENED]:
        climbs[name] = deepen(climbs[name], _share(SHARES[1], budget, until - bench.spent))
    polish(list(climbs.values()), until)
    found = []
    for name, climb in climbs.items():
        if climb.done:
            strategy = Strategy(NAME, f"{name}; {', '.join(climb.done)}", lambda _: [])
            draft = replace(climb.draft, name=NAME)
            runs = bench.run([draft], range(total))[0]
            found.append(estimate(strategy, draft, runs, error))
    # what is slower than a simple strategy is refused anyhow, however few bytes it moves
    most = min(e.seconds for e in known if e.simple)
    quick = [e for e in found if e.seconds <= most] or found
    return [leanest(quick, estimates)] if quick else []


def _share(share: float, budget: int, left: int) -> int:
    """Runs: a share of the budget, no less than gets anywhere and no more than is left."""
    return max(0, min(left, max(ENOUGH, int(share * budget))))


def _worth_in_trials(bench: Bench, known: list[Estimate]) -> Worth:
    """What trial runs are worth: the same with the time that the quickest takes in these."""
    quickest = min((e for e in known if e.draft.part is None), key=lambda e: e.seconds)
    runs = bench.run([quickest.draft], TRIALS)[0]
    most = (1 + GIVEN) * float(np.mean([run.seconds for run in runs]))
    return replace(worth_among(known), most=most)


def _starts(known: list[Estimate]) -> list[Estimate]:
    """The leanest of those near the best, and then those of most worth."""
    worth = Worth(known[0].network_bytes)
    best = leanest(known, known)
    rest = [e for e in known if e is not best]
    rest = [e for e in rest if e.seconds <= START_NEAR * best.seconds]
    return [best, *sorted(rest, key=lambda e: worth.of(e.seconds, e.network_bytes))][:STARTS]


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
    """The best draft of each strategy: all are run once, simple and promising ones further."""
    outcomes = bench.run([draft for _, draft in made], range(1))
    further = _promising(made, [runs[0].seconds for runs in outcomes])
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


def _promising(made: list[tuple[Strategy, Draft]], first: list[float]) -> list[int]:
    """Drafts of simple strategies, and the quickest of each other one unless far behind."""
    by_strategy: dict[str, list[int]] = {}
    for i, (strategy, _) in enumerate(made):
        by_strategy.setdefault(strategy.name, []).append(i)
    found = []
    for rows in by_strategy.values():
        simple = made[rows[0]][0].simple
        quick = sorted(rows, key=lambda i: (first[i], i))[:PER_STRATEGY]
        found += rows if simple else [i for i in quick if first[i] <= NEAR * min(first)]
    return sorted(found)
