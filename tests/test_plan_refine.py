"""Single tasks in other parts: what ties them, what pays, and what it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from tests.support.predicting import MB, Task, need_engine, plain, workload
from tracehint.analyzer.arrays import Ints
from tracehint.analyzer.model import Analysis
from tracehint.analyzer.predict.model import law
from tracehint.hintgen.plan.anchors import settled, shifted, ties_of
from tracehint.hintgen.plan.climb import TRIALS, Climb
from tracehint.hintgen.plan.evaluate import Bench
from tracehint.hintgen.plan.improve import improve, polish
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.partition import cores_of
from tracehint.hintgen.plan.parts import pinned, with_placement
from tracehint.hintgen.plan.queues import Ran, of_queues
from tracehint.hintgen.plan.refine import refine
from tracehint.hintgen.plan.shifts import Shift
from tracehint.hintgen.plan.strategies import local
from tracehint.hintgen.plan.worth import Worth

CHAINS, NODES = 8, 4


def chains(computing: float = 1.0) -> Problem:
    """Chains of two tasks of the same types, 10 MB from one to the other."""
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
    """Two chains a node, but some of the second tasks on the node after their first one's."""
    first = np.arange(CHAINS) % NODES
    second = np.where(np.arange(CHAINS) < wrong, (first + 1) % NODES, first)
    part: Ints = np.concatenate([first, second])
    return pinned(problem, "crossed", part, NODES, "unplanned")


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
    found = shifted(draft, ties.anchor, np.array([0, CHAINS + 1]), np.array([3, 2]))
    assert found.part is not None and found.placement.target is not None
    changed = np.flatnonzero(found.placement.target != draft.placement.target)
    assert changed.tolist() == [0], "u1's output was on node 2 already; m0's went to 3"
    assert found.placement.target[0] == found.part[0] == 3
    assert found.placement.plan is not None and (found.placement.plan == found.part).all()


@pytest.mark.parametrize("wrong", [1, 3, CHAINS])
def test_single_tasks_find_their_data(wrong: int) -> None:
    need_engine()
    problem = chains()
    bench = Bench(problem)
    draft = crossed(problem, wrong)
    before = bench.run([draft], range(1))[0][0]
    assert before.network_bytes == pytest.approx(wrong * 10 * MB, rel=0.01)
    worth = Worth(before.network_bytes)
    value = np.array([worth.run(run) for run in bench.run([draft], TRIALS)[0]])
    climb = Climb(bench, draft, None, bench.spent + 500, worth, value)
    refine(climb)
    after = bench.run([climb.draft], range(1))[0][0]
    assert after.network_bytes < 1000 * CHAINS and after.seconds < before.seconds
    assert len(climb.done) == 1 and "in other part" in climb.done[0]


def test_the_budget_is_kept_and_the_answer_is_the_same_again() -> None:
    need_engine()
    found = []
    for budget in (0, 20, 60, 60):
        bench = Bench(chains())
        climb = improve(bench, crossed(bench.problem), None, budget, Worth(80.0 * MB))
        draft, done = climb.draft, climb.done
        assert bench.spent <= budget
        assert draft.placement.law is not None
        found.append((done, draft.part.tolist() if draft.part is not None else None))
    assert found[0][0] == [] and found[2] == found[3] and found[2][0]


def test_settled_tasks_are_bound_where_they_ran() -> None:
    need_engine()
    problem = chains()
    draft = local.first(problem)[0]
    node = Bench(problem).traced(draft, TRIALS[0])[:, 0].astype(np.int64)
    found = settled(problem, draft, node, "unplanned")
    assert found.part is not None and found.placement.law is not None
    assert (found.part == node).all() and found.parts == NODES
    assert (found.placement.law == law("local")).all() and found.placement.scheduler == "plan"
    again = Bench(problem).traced(found, TRIALS[0])[:, 0]
    assert (again == node).all()


def alone(lengths: Sequence[float], part: Sequence[int], nodes: int, slots: int) -> Climb:
    """The climb of tasks that share nothing, so many seconds each, each bound to its part."""
    tasks = [
        Task(f"t{i}", [("compute", seconds), ("write", f"o{i}")], "work")
        for i, seconds in enumerate(lengths)
    ]
    sizes = {f"o{i}": 1000 for i in range(len(lengths))}
    problem = Problem(cast(Analysis, None), workload(tasks, sizes), plain(nodes, slots))
    draft, bench = pinned(problem, "alone", np.array(part), nodes, "unplanned"), Bench(problem)
    worth = Worth(0.0)  # the time alone
    value = np.array([worth.run(run) for run in bench.run([draft], TRIALS)[0]])
    return Climb(bench, draft, None, bench.spent + 300, worth, value)


def shifts_of(climb: Climb) -> list[Shift]:
    """What the queues of a climb's draft say."""
    problem, draft = climb.bench.problem, climb.draft
    assert draft.part is not None
    rows = climb.bench.traced(draft, TRIALS[0])
    ties = ties_of(problem, draft)
    ran = Ran(rows, problem.work.cores.astype(np.int64), cores_of(problem.cluster))
    return list(of_queues(ran, draft.part.astype(np.int64), ties))


def test_a_full_node_gives_as_many_tasks_as_run_at_one_time() -> None:
    need_engine()
    climb = alone([1.0] * 4, [0] * 4, nodes=2, slots=2)
    found = shifts_of(climb)
    assert {s.parts for s in found if len(s.tasks) == 1} == {(1,)}
    assert any(len(s.tasks) == 2 for s in found), "one alone leaves the other where it waits"
    assert climb.mean == pytest.approx(2.0, rel=0.05)
    refine(climb)
    assert climb.mean == pytest.approx(1.0, rel=0.05)
    assert climb.draft.part is not None and sorted(climb.draft.part.tolist()) == [0, 0, 1, 1]


def test_a_node_that_is_never_full_gives_nothing() -> None:
    need_engine()
    assert not shifts_of(alone([1.0] * 4, [0, 0, 1, 1], nodes=2, slots=2))


def test_tasks_change_places_where_no_other_has_room() -> None:
    need_engine()
    climb = alone([3.0, 3.0, 2.0, 2.0], [0, 0, 1, 1], nodes=2, slots=1)
    refine(climb)
    assert climb.mean == pytest.approx(5.0, rel=0.02)
    assert climb.draft.part is not None and climb.draft.part[:2].tolist() in ([0, 1], [1, 0])


def test_kicks_never_lose_and_the_answer_is_the_same_again() -> None:
    need_engine()
    lengths = [1.0, 1.3, 1.7, 2.1, 2.9, 3.3, 0.7, 1.9, 2.3, 1.1, 0.9, 1.5]
    plain_one, *kicked = [alone(lengths, [0] * 12, nodes=3, slots=1) for _ in range(3)]
    refine(plain_one)
    for climb in kicked:
        refine(climb, kicks=5)
        assert climb.mean <= plain_one.mean and climb.bench.spent <= climb.until
    first, second = (climb.draft.part for climb in kicked)
    assert first is not None and second is not None and (first == second).all()


def test_what_is_left_goes_to_the_best_and_then_to_the_next() -> None:
    need_engine()
    bench = Bench(chains())
    bad, good = (
        improve(bench, crossed(bench.problem, wrong), None, 10, Worth(80.0 * MB))
        for wrong in (CHAINS, 1)
    )
    before = bad.mean, good.mean
    assert before[1] < before[0]
    polish([bad, good], bench.spent + 20)
    assert good.mean < before[1] and bad.mean == before[0], "the best alone"
    polish([bad, good], bench.spent + 5000)
    assert bad.mean < before[0], "the best can gain no more"
