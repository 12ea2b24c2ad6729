"""Moving single tasks to other parts: their ties, the gains, and the limits of cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest

from tests.support.predicting import MB, Task, need_engine, plain, workload
from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.model import Analysis
from tracehint.analyzer.predict.model import law, local
from tracehint.hintgen.plan.drafts import (
    blank,
    local_first,
    local_together,
    pin_tasks,
    with_placement,
)
from tracehint.hintgen.plan.model import Draft, Estimate, Problem
from tracehint.hintgen.plan.neighbours import (
    bind_where_run,
    moves_of_kinds,
    moves_of_tasks,
    shift_tasks,
    ties_of,
)
from tracehint.hintgen.plan.objective import (
    BYTES_EXPONENT,
    Bench,
    Objective,
    bound_ahead,
    choose,
    leanest,
)
from tracehint.hintgen.plan.search import TRIALS, ChangedDraft, LocalSearch

CHAINS, NODES = 8, 4


def chains(computing: float = 1.0) -> Problem:
    """Build chains of two tasks of the same types, with 10 MB between them."""
    tasks = [
        Task(f"m{i}", [("compute", computing), ("write", f"a{i}")], "make") for i in range(CHAINS)
    ]
    tasks += [
        Task(f"u{i}", [("read", f"a{i}"), ("compute", computing), ("write", f"o{i}")], "use")
        for i in range(CHAINS)
    ]
    sizes = {f"a{i}": 10 * MB for i in range(CHAINS)} | {f"o{i}": 1000 for i in range(CHAINS)}
    return Problem(cast(Analysis, None), workload(tasks, sizes), plain(NODES, 2))


def crossed(problem: Problem, wrong: int = CHAINS) -> Draft:
    """Two chains per node, but the first `wrong` second tasks are on the next node."""
    first = np.arange(CHAINS) % NODES
    second = np.where(np.arange(CHAINS) < wrong, (first + 1) % NODES, first)
    part: Ints = np.concatenate([first, second])
    return pin_tasks(problem, "crossed", part, NODES, "unplanned")


def test_ties_are_the_bytes_with_each_part() -> None:
    problem = chains()
    ties = ties_of(problem, crossed(problem))
    assert ties.anchor.tolist() == [*range(2 * CHAINS)], "each file lies with its writer"
    for i in range(CHAINS):
        assert ties.pull[i].tolist() == [10 * MB * (k == (i + 1) % NODES) for k in range(NODES)]
        assert ties.pull[CHAINS + i].tolist() == [10 * MB * (k == i % NODES) for k in range(NODES)]
        assert ties.other[ties.begin[i] : ties.begin[i + 1]].tolist() == [CHAINS + i]


def test_a_file_with_its_reader_holds_its_writer_and_copies_hold_nobody() -> None:
    problem = chains()
    draft = crossed(problem)
    assert draft.part is not None and draft.placement.target is not None
    target = draft.placement.target.copy()
    target[0] = draft.part[CHAINS]
    early = with_placement(draft, target=target)
    ties = ties_of(problem, early)
    assert ties.anchor[0] == CHAINS
    assert ties.pull[0].tolist() == [0, 10 * MB, 0, 0]
    copies = np.full(problem.work.files, NODES, np.int32)
    assert not ties_of(problem, with_placement(draft, copies=copies)).pull.any()


def test_files_go_along_with_the_task_that_they_lie_with() -> None:
    problem = chains()
    draft = crossed(problem)
    ties = ties_of(problem, draft)
    found = shift_tasks(ties.anchor, (0, CHAINS + 1), (3, 2), draft)
    assert found.part is not None and found.placement.target is not None
    changed = np.flatnonzero(found.placement.target != draft.placement.target)
    assert changed.tolist() == [0], "u1's output was on node 2 already; m0's went to 3"
    assert found.placement.target[0] == found.part[0] == 3
    assert found.placement.plan is not None and (found.placement.plan == found.part).all()


@pytest.mark.parametrize("wrong", [1, 3, CHAINS])
def test_single_tasks_find_their_data(wrong: int) -> None:
    need_engine()
    bench = Bench(chains())
    draft = crossed(bench.problem, wrong)
    before = bench.run([draft], range(1))[0][0]
    assert before.network_bytes == pytest.approx(wrong * 10 * MB, rel=0.01)
    search = LocalSearch(bench, Objective(before.network_bytes), until=bench.spent + 500)
    found = search.climb(search.start(draft))
    after = bench.run([found.draft], range(1))[0][0]
    assert after.network_bytes < 1000 * CHAINS and after.seconds < before.seconds
    assert found.changes.endswith("in other parts")


def test_the_budget_is_kept_and_the_answer_is_the_same_again() -> None:
    need_engine()
    found = []
    for budget in (0, 20, 400, 400):
        bench = Bench(chains())
        search = LocalSearch(bench, Objective(80.0 * MB))
        states = search.best_of({"crossed": crossed(bench.problem)}, budget)
        assert bench.spent <= budget
        parts = {name: cast(Ints, s.draft.part).tolist() for name, s in states.items()}
        found.append(({name: s.changes for name, s in states.items()}, parts))
    assert not any(found[0][0].values()) and found[2] == found[3]
    assert any(found[2][0].values())


def test_a_move_of_a_kind_is_made_on_what_the_draft_is_by_then() -> None:
    """Of several moves that pay, each is applied to the draft that has the earlier ones."""
    problem = chains()
    draft, cut = crossed(problem), np.zeros(2 * CHAINS, np.int32)
    moves = {move.text: move for move in moves_of_kinds(problem, draft, cut)}
    state = ChangedDraft(draft, np.ones(3)).apply([moves["make bound"], moves["use released"]])
    assert state.draft.part is not None and state.draft.placement.target is not None
    assert state.draft.part.tolist() == [0] * CHAINS + [-1] * CHAINS
    assert (state.draft.placement.target[:CHAINS] == 0).all()
    assert state.changes == "make bound, use released"


def test_tasks_are_bound_where_they_ran() -> None:
    need_engine()
    problem = chains()
    draft = local_first(problem)[0]
    node = Bench(problem).trace_tasks(draft, TRIALS[0])[:, 0].astype(np.int64)
    found = bind_where_run(problem, draft, node, "unplanned")
    assert found.part is not None and found.placement.law is not None
    assert (found.part == node).all() and found.parts == NODES
    assert (found.placement.law == law("local")).all() and found.placement.scheduler == "plan"
    again = Bench(problem).trace_tasks(found, TRIALS[0])[:, 0]
    assert (again == node).all()


def alone(
    lengths: Sequence[float], part: Sequence[int], nodes: int, slots: int
) -> tuple[LocalSearch, ChangedDraft]:
    """Return a search over independent tasks of these lengths (seconds), each bound to its part."""
    tasks = [
        Task(f"t{i}", [("compute", seconds), ("write", f"o{i}")], "work")
        for i, seconds in enumerate(lengths)
    ]
    sizes = {f"o{i}": 1000 for i in range(len(lengths))}
    problem = Problem(cast(Analysis, None), workload(tasks, sizes), plain(nodes, slots))
    search = LocalSearch(Bench(problem), Objective(0.0), until=300)  # the objective is time only
    return search, search.start(pin_tasks(problem, "alone", np.array(part), nodes, "unplanned"))


def test_a_full_node_gives_as_many_tasks_as_run_at_one_time() -> None:
    need_engine()
    search, state = alone([1.0] * 4, [0] * 4, nodes=2, slots=2)
    rows = search.bench.trace_tasks(state.draft, TRIALS[0])
    found = list(moves_of_tasks(search.bench.problem, state.draft, rows))
    assert any(len(move.tasks) == 1 for move in found)
    two = [move for move in found if len(move.tasks) == 2]
    assert two, "one leaves the other where it waits"
    assert state.mean == pytest.approx(2.0, rel=0.05)
    moved = search.start(two[0].change(state.draft))
    assert moved.mean == pytest.approx(1.0, rel=0.05)
    assert search.climb(state).mean == pytest.approx(1.0, rel=0.05)
    assert moved.draft.part is not None and sorted(moved.draft.part.tolist()) == [0, 0, 1, 1]


def test_a_node_that_is_never_full_gives_nothing() -> None:
    need_engine()
    search, state = alone([1.0] * 4, [0, 0, 1, 1], nodes=2, slots=2)
    rows = search.bench.trace_tasks(state.draft, TRIALS[0])
    assert not list(moves_of_tasks(search.bench.problem, state.draft, rows))


def test_tasks_change_places_where_no_other_has_room() -> None:
    need_engine()
    search, state = alone([3.0, 3.0, 2.0, 2.0], [0, 0, 1, 1], nodes=2, slots=1)
    state = search.climb(state)
    assert state.mean == pytest.approx(5.0, rel=0.02)
    assert state.draft.part is not None and state.draft.part[:2].tolist() in ([0, 1], [1, 0])


def test_kicks_never_lose_and_the_answer_is_the_same_again() -> None:
    need_engine()
    lengths = [1.0, 1.3, 1.7, 2.1, 2.9, 3.3, 0.7, 1.9, 2.3, 1.1, 0.9, 1.5]
    (search, start), *kicked = [alone(lengths, [0] * 12, nodes=3, slots=1) for _ in range(3)]
    found = search.climb(start)
    again = [one.climb(state, kicks=5) for one, state in kicked]
    for (one, _), state in zip(kicked, again, strict=True):
        assert state.mean <= found.mean and one.bench.spent <= one.until
    first, second = (cast(Ints, state.draft.part) for state in again)
    assert (first == second).all()


def test_the_best_of_several_drafts_is_found_and_those_that_come_to_the_same_are_one() -> None:
    need_engine()
    bench = Bench(chains())
    drafts = {str(wrong): crossed(bench.problem, wrong) for wrong in (CHAINS, 3, 1)}
    found = LocalSearch(bench, Objective(80.0 * MB)).best_of(drafts, 5000)
    means = [state.mean for state in found.values()]
    lone = LocalSearch(Bench(chains()), Objective(80.0 * MB), until=500)
    assert min(means) <= lone.climb(lone.start(drafts["1"])).mean
    assert len({round(mean, 9) for mean in means}) == len(means)


# -- Local-first with grouped inputs and copies of inputs, and the strategies that it must beat


def problem(*, staged: bool) -> Problem:
    """Eight makers read one input; each pair of their outputs is joined by two tasks."""
    tasks = [Task(f"m{i}", [("read", "in"), ("write", f"a{i}")]) for i in range(8)]
    for i in range(4):
        both = [("read", f"a{2 * i}"), ("read", f"a{2 * i + 1}")]
        tasks += [Task(f"j{i}{k}", [*both, ("write", f"o{i}{k}")]) for k in "xy"]
    sizes = {"in": 50 * MB, **{f"a{i}": 10 * MB for i in range(8)}}
    sizes |= {f"o{i}{k}": MB for i in range(4) for k in "xy"}
    nothing = cast(Analysis, None)
    return Problem(nothing, workload(tasks, sizes), plain(4, 2), staged=staged)


def test_what_a_task_reads_together_lies_together() -> None:
    draft = local_together(problem(staged=False))[0].placement
    assert draft.law is not None and draft.target is not None and draft.copies is not None
    made = np.arange(1, 9)
    assert (draft.law[made] == law("group")).all()
    groups = draft.target[made].reshape(4, 2)
    assert (groups[:, 0] == groups[:, 1]).all() and len(set(groups[:, 0])) == draft.groups == 4
    assert (draft.law[9:] == law("local")).all() and draft.law[0] == -1
    assert not draft.copies.any(), "inputs lie where they are"


def test_inputs_that_are_brought_get_copies() -> None:
    found = [d.placement.copies for d in local_together(problem(staged=True))]
    assert {int(c[0]) for c in found if c is not None} == {0, 2, 4}
    assert all(not c[1:].any() for c in found if c is not None)


@pytest.mark.parametrize(
    ("scheduler", "share", "chosen"),
    [("most-input-bytes", 0.9, "other"), ("most-input-bytes", 0.97, "simple"),
     ("plan", 0.9, "simple"), ("plan", 0.8, "other")],
)  # fmt: skip  # a table
def test_of_equal_times_the_leaner_one_counts(scheduler: str, share: float, chosen: str) -> None:
    of = problem(staged=False)

    def estimate(name: str, seconds: float, moved: float, how: str | None) -> Estimate:
        draft = Draft(name, blank(of, name, how))
        return Estimate(name, "", seconds, 0, 99, moved, 0, (seconds,) * 5, draft, name != "other")

    every = [
        estimate("default", 20, 2000, None),
        estimate("simple", 10, 1000, "most-input-bytes"),
        estimate("other", 10, 1000 * share, scheduler),
    ]
    assert choose(every, 0.17)[1] == chosen


@pytest.mark.parametrize(
    ("scheduler", "chosen"), [(None, "other"), ("most-input-bytes", "default")]
)
def test_fewer_bytes_are_no_reason_to_bind_tasks_where_that_may_lose(
    scheduler: str | None, chosen: str
) -> None:
    of = problem(staged=False)

    def estimate(name: str, seconds: float, moved: float, how: str | None) -> Estimate:
        draft = Draft(name, blank(of, name, how))
        simple = name == "default"
        return Estimate(name, "", seconds, 0, 99, moved, 0, (seconds,) * 5, draft, simple)

    every = [estimate("default", 20, 2000, None), estimate("other", 19, 200, scheduler)]
    assert choose(every, 0.17)[1] == chosen


@pytest.mark.parametrize(("seconds", "ahead"), [(28, "planned"), (38, None)])
def test_a_scheduler_that_lets_tasks_wait_for_full_nodes_gets_a_plan(
    seconds: float, ahead: str | None
) -> None:
    """Placing tasks near their data is that quick only if they may leave a full node."""
    of = problem(staged=False)

    def estimate(name: str, seconds: float, how: str | None) -> Estimate:
        draft = Draft(name, blank(of, name, how))
        draft = replace(draft, part=np.zeros(1, np.int32) if how == "plan" else None)
        return Estimate(name, "", seconds, 0, 99, 100, 0, (seconds,) * 5, draft, how != "plan")

    every = [
        estimate("default", 40, None),
        estimate("follow", 30, "most-input-bytes"),
        estimate("planned", seconds, "plan"),
    ]
    judged, chosen = choose(every, 0.3)
    assert chosen == "follow"
    found = bound_ahead(judged, 0.3)
    assert (found.name if found else None) == ahead


# -- Of strategies with similar times, the one with the lowest objective value is chosen


def estimate(name: str, seconds: float, moved: float, *, simple: bool = False) -> Estimate:
    work = workload([Task("a", [("read", "x")])], {"x": MB})
    draft = Draft(name, local(work, plain(2)))
    return Estimate(
        name, name, seconds, seconds, seconds, moved * MB, 0.0, (seconds,) * 5, draft, simple
    )


def bound(e: Estimate) -> Estimate:
    """Return the estimate with its tasks bound to parts."""
    return replace(e, draft=replace(e.draft, part=np.zeros(1, np.int32)))


def test_a_tenth_of_the_bytes_is_as_good_as_a_hundredth_of_the_time() -> None:
    goal = Objective(1000.0)
    more, less = goal.value(10.0, 1000.0), goal.value(10.0, 900.0)
    assert less / more == pytest.approx(0.9**BYTES_EXPONENT, rel=0.001)
    assert goal.value(10.0, 0.0) > 0.5 * more, "nothing moved is not everything"
    assert Objective(0.0).value(3.0, 7.0) == 3.0, "nothing to compare with"


def test_of_near_times_the_leanest_is_chosen_and_never_a_slow_one() -> None:
    default = estimate("default", 10.0, 100, simple=True)
    quick, lean = bound(estimate("quick", 6.25, 12)), bound(estimate("lean", 6.55, 4))
    every = [default, quick, lean, bound(estimate("slow", 6.9, 0))]
    slow = every[-1]
    assert leanest(every, every).name == "lean"
    assert choose([default, quick, lean, slow], 0.1)[1] == "lean"
    assert choose([default, quick, replace(lean, seconds=6.7, runs=(6.7,) * 5)], 0.1)[1] == "quick"


def test_a_plan_gives_little_of_the_time_of_what_needs_none() -> None:
    default = estimate("default", 10.0, 100, simple=True)
    every = [default, estimate("quick", 6.0, 30), bound(estimate("lean", 6.3, 4))]
    assert leanest(every, every).name == "quick"
    assert leanest([default, every[2]], every).name == "lean", "nothing else is left"
    every[2] = bound(estimate("lean", 6.1, 4))
    assert leanest(every, every).name == "lean"


def test_time_beyond_the_most_weighs_more_than_any_bytes() -> None:
    goal = Objective(1000.0, max_time=10.0)
    assert goal.value(10.0, 500.0) == Objective(1000.0).value(10.0, 500.0)
    assert goal.value(11.0, 100.0) > goal.value(10.0, 500.0)


def test_of_equal_times_the_one_that_chance_moves_less_counts() -> None:
    default = estimate("default", 10.0, 100, simple=True)
    loose = replace(estimate("loose", 6.0, 8), runs=(5.4, 6.0, 6.0, 6.0, 6.6))
    every = [default, loose, bound(estimate("sure", 6.1, 7))]
    assert every[2].mean_plus_std == pytest.approx(6.1) and loose.mean_plus_std > 6.3
    assert leanest(every, every).name == "sure"
    every[1] = replace(loose, runs=(6.0,) * 5)
    every[2] = bound(estimate("sure", 6.2, 7))
    assert leanest(every, every).name == "loose"


def test_bytes_beyond_those_of_what_needs_no_plan_weigh_more() -> None:
    goal = Objective(1000.0, max_bytes=200.0)
    assert goal.value(10.0, 150.0) == Objective(1000.0).value(10.0, 150.0)
    assert goal.value(9.4, 300.0) > goal.value(10.0, 200.0) > Objective(1000.0).value(9.4, 300.0)
