"""Task starts by engine and scheduler: measured from a recording, simulated, in a cluster file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.real.workflows.inputs import make
from tests.support.predicting import MB, Task, need_engine, on, plain, run, workload
from tracehint.analyzer.predict.cluster import MBIT, Cluster, Dispatch
from tracehint.analyzer.predict.cluster_file import read_cluster
from tracehint.analyzer.predict.model import NODE, SPENT, Placement, Workload, default
from tracehint.analyzer.predict.prediction import Configuration, link_of_waiting, predict
from tracehint.analyzer.predict.workload import dispatch_of, from_analysis
from tracehint.app.planning import QUICK_BUDGET_S, load_analysis, with_link
from tracehint.hintgen.learn.rules import learn
from tracehint.hintgen.plan.model import Problem
from tracehint.hintgen.plan.objective import Bench
from tracehint.hintgen.plan.planner import plan


def seconds(work: Workload, *, nodes: int = 2, cores: int = 2, scheduler: str = "") -> float:
    cluster = plain(nodes, cores, rest=scheduler)
    (found,) = predict(work, [Configuration("c", cluster, "default", default)], runs=1)
    return found.seconds


def computing(count: int, each: float) -> Workload:
    return workload([Task(f"t{i}", [("compute", each)]) for i in range(count)], {})


def simulated(delay: float, interval: float, count: int, slots: int, each: float) -> list[float]:
    """Return starts of equal tasks without inputs, all ready at 0, by an engine this slow."""
    starts: list[float] = []
    for i in range(count):
        turn = starts[-1] - delay if starts else 0.0
        free = 0.0 if i < slots else sorted(s + each for s in starts)[i - slots]
        starts.append(max(turn, free) + interval + delay)
    return starts


@pytest.mark.parametrize(
    ("delay", "interval", "slots", "each"),
    [(0.5, 0.1, 10, 5.0), (0.2, 0.02, 4, 1.0), (0.05, 1.0, 10, 2.5)],
)
def test_what_a_recording_says_is_what_the_engine_did(
    delay: float, interval: float, slots: int, each: float
) -> None:
    starts = np.array(simulated(delay, interval, 40, slots, each))
    none = np.zeros(41, np.int64), np.zeros(0, np.int32)
    found = dispatch_of(starts, starts + each, np.ones(40, bool), *none)
    assert found.interval_s == pytest.approx(interval, rel=0.1)
    assert found.source
    if each > slots * interval:  # else no task waits for a slot, and only the rate can be measured
        assert found.delay_s == pytest.approx(delay, rel=0.3)


def test_full_slots_are_no_slow_dispatch() -> None:
    """A hundred slots, always in use: tasks start as others end, ten per second."""
    rng, free, rows = np.random.default_rng(1), [0.0] * 100, list[tuple[float, float]]()
    for number in range(1000):
        slot = int(np.argmin(free))
        start = free[slot] + (0.01 * number if number < 100 else 0.05)
        free[slot] = start + rng.exponential(10)
        rows.append((start, free[slot]))
    start, end = np.array(sorted(rows)).T
    none = np.zeros(1001, np.int64), np.zeros(0, np.int32)
    found = dispatch_of(start, end, np.ones(1000, bool), *none)
    assert found.interval_s == pytest.approx(0.01, rel=0.3)


def test_what_nobody_saw_says_nothing() -> None:
    starts = np.arange(9) * 2.0
    none = np.zeros(10, np.int64), np.zeros(0, np.int32)
    assert dispatch_of(starts, starts + 1, np.zeros(9, bool), *none) == Dispatch()


def test_an_input_that_comes_late_is_no_dispatch() -> None:
    starts = np.array([0.0, 1.0, 2.0, 3.0, 4.0])  # a chain: each reads the previous output
    begin, dep = np.array([0, 1, 2, 3, 4, 4]), np.array([1, 2, 3, 4], np.int32)
    assert dispatch_of(starts, starts + 1, np.ones(5, bool), begin, dep) == Dispatch()


def test_starts_one_after_the_other_are_simulated() -> None:
    work = computing(4, 1.0)
    assert seconds(work) == pytest.approx(1)
    assert seconds(work, scheduler="dispatch_ms = 500") == pytest.approx(4 * 0.5 + 1)
    work.dispatch = Dispatch(delay_s=0.25, interval_s=0.5)
    assert seconds(work) == pytest.approx(4 * 0.5 + 0.25 + 1)
    # the slower of the two applies, not their sum
    assert seconds(work, scheduler="dispatch_ms = 2000") == pytest.approx(4 * 2 + 0.25 + 1)


def test_a_batch_system_fills_one_node_after_the_other() -> None:
    found = run(computing(5, 1.0), plain(5, 2, rest="fill = true"))
    assert found.tasks is not None
    assert found.tasks[:, NODE].tolist() == [0, 0, 1, 1, 2]


def test_jobs_queue_for_the_node_that_they_are_bound_to() -> None:
    tasks = [Task(f"t{i}", [("compute", 1.0)]) for i in range(6)]
    work = workload(tasks, {"x": MB})
    bound = on(*[0] * 6)
    bound.steal = "nothing"
    assert run(work, plain(5, 2), bound).seconds == pytest.approx(3)
    bound.steal = "any"
    assert run(work, plain(5, 2), bound).seconds == pytest.approx(1)


def filled(table: pa.Table, **columns: object) -> pa.Table:
    """Return the table with these values in all rows."""
    for name, value in columns.items():
        at = table.column_names.index(name)
        values = pa.array(np.broadcast_to(value, table.num_rows), table.schema.field(at).type)
        table = table.set_column(at, table.schema.field(at), values)
    return table


def test_a_link_is_known_by_how_long_tasks_waited_for_files() -> None:
    need_engine()
    made = [Task(f"make {i}", [("compute", 0.5), ("write", f"f{i}")]) for i in range(8)]
    used = [Task(f"use {i}", [("read", f"f{i}"), ("compute", 1.0)]) for i in range(8)]
    work = workload([*made, *used], {f"f{i}": 20 * MB for i in range(8)})
    cluster = plain(4, 2)  # 80 Mbit/s
    nodes = np.array([i % 3 for i in range(16)], np.int32)  # the fourth node ran no task

    def as_it_ran(work: Workload, cluster: Cluster) -> Placement:
        return replace(default(work, cluster), plan=nodes, scheduler="plan")

    slow = Configuration("c", cluster.with_link(30 * MBIT), "as it ran", as_it_ran)
    (found,) = predict(work, [slow], runs=1)
    waited = float(found.outcome.types[:, 3 + SPENT.index("network")].sum())
    assert link_of_waiting(work, cluster, waited, nodes) == pytest.approx(30 * MBIT, rel=0.03)
    assert link_of_waiting(work, cluster, 0.0, nodes) == 80 * MBIT
    assert link_of_waiting(work, cluster, 1e9, nodes) == pytest.approx(10 * MBIT, rel=0.03)


def test_the_link_is_the_clusters_where_waiting_is_not_known_of_all_tasks(tmp_path: Path) -> None:
    need_engine()
    (tmp_path / "a.makeflow").write_text("b: a\n\tcp a b\nc: b\n\tcp b c\n")
    run_ = load_analysis(tmp_path / "a.makeflow")
    tasks = filled(run_.tasks, start_s=[0.0, 40.0], end_s=[30.0, 70.0], io_wait_s=25.0)
    moved = {"unique_bytes": 100 * MB, "bytes": 100 * MB}
    tables = {name: filled(getattr(run_, name), **moved) for name in ("producers", "consumers")}
    run_ = replace(run_, tasks=tasks, files=filled(run_.files, size_bytes=100 * MB), **tables)
    cluster = read_cluster("moosefs").with_nodes(5)
    found, note = with_link(cluster, from_analysis(run_), run_, ())
    assert found.nodes[0]["link_mbit"] < cluster.nodes[0]["link_mbit"]
    assert note.endswith(" Mbit/s, by the time that tasks waited for files")
    at = tasks.column_names.index("io_wait_s")
    some = tasks.set_column(at, tasks.schema.field(at), pa.array([25.0, None]))
    unknown = replace(run_, tasks=some)
    assert with_link(cluster, from_analysis(unknown), unknown, ()) == (cluster, "")


@pytest.mark.slow
def test_a_plan_of_montage_keeps_the_slots_of_all_nodes_busy(tmp_path: Path) -> None:
    """102 tasks on five nodes of two slots, started by a scheduler at ten per second: no node gets
    more than two fifths of them, and none is idle."""
    need_engine()
    make("montage/make_workflow.py", tmp_path)
    run_ = load_analysis(tmp_path / "montage.makeflow")

    start = np.arange(run_.tasks.num_rows) * 0.01
    moved = {"unique_bytes": 2 * MB, "bytes": 2 * MB}
    run_ = replace(
        run_,
        tasks=filled(run_.tasks, start_s=start, end_s=start + 0.3),
        files=filled(run_.files, size_bytes=2 * MB),
        producers=filled(run_.producers, **moved),
        consumers=filled(run_.consumers, **moved),
    )
    work = from_analysis(run_)
    work.dispatch = Dispatch(0.3, 0.1)
    cluster = read_cluster("moosefs").with_nodes(5)
    part = cluster.nodes[0].with_number("cores", 2).with_number("link_mbit", 100 * MBIT)
    problem = Problem(run_, work, replace(cluster, nodes=(part,)), learn([run_]))
    planning = plan(problem, QUICK_BUDGET_S)
    chosen = planning.estimate(planning.chosen)
    assert chosen.seconds < 0.8 * planning.estimate("default").seconds
    nodes = Counter(Bench(problem).trace_tasks(chosen.draft, 1)[:, 0].astype(int).tolist())
    assert work.tasks == 102 and len(nodes) == 5
    assert max(nodes.values()) <= 0.4 * work.tasks and min(nodes.values()) >= 0.1 * work.tasks
