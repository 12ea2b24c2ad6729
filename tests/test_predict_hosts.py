"""Nodes that share the processors of one machine, against times computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.predicting import MB, Task, plain, run, workload
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Placement, law

COSTS = "client_cpu_ms_mb = 10\nserver_cpu_ms_mb = 10\nlink_cpu_ms_mb = 5"


def hosted(nodes: int, processors: float, *, store: str = "") -> Cluster:
    """Build a cluster of nodes with one core each on one machine."""
    machine = f'[[hosts]]\nname = "m"\nprocessors = {processors}\n'
    return plain(nodes, node='host = "m"', store=store, rest=machine)


def bound(files: int, *nodes: int) -> Placement:
    """Place file number n on node n, and bind each task to its entry in `nodes`."""
    place = Placement("bound", law=np.full(files, law("node"), np.int32), scheduler="plan")
    place.target = np.arange(files, dtype=np.int32)
    place.plan = np.array(nodes, np.int32)
    return place


def computing(tasks: int, seconds: float) -> list[Task]:
    return [Task(f"t{i}", [("compute", seconds)]) for i in range(tasks)]


def test_computing_shares_the_processors() -> None:
    found = run(workload(computing(4, 3), {}), hosted(4, 2), bound(0, 0, 1, 2, 3))
    assert found.seconds == pytest.approx(6)


def test_a_task_never_takes_more_than_its_own() -> None:
    assert run(workload(computing(2, 3), {}), hosted(4, 8), bound(0, 0, 1)).seconds == 3


def test_who_sleeps_takes_no_processor() -> None:
    work = workload(computing(4, 3), {})
    asleep = replace(work, busy=np.array([1.0, 0, 0, 0.5]))
    # demand is 1.5 processors, supply is one: the two busy tasks get half each
    found = run(asleep, hosted(4, 1), bound(0, 0, 1, 2, 3))
    assert found.tasks is not None
    assert found.tasks[:, 4] == pytest.approx([4.5, 3, 3, 3])


def test_moving_bytes_takes_processors_at_both_ends() -> None:
    # 25 ms of processor time per MB, of 0.1 processors: 4 MB/s, less than the link's 10
    work = workload([Task("a", [("read", "x")])], {"x": 40 * MB})
    assert run(work, hosted(2, 0.12, store=COSTS), bound(1, 1)).seconds == pytest.approx(10)
    assert run(work, hosted(2, 8, store=COSTS), bound(1, 1)).seconds == pytest.approx(4)


def test_what_stays_on_a_node_takes_processors_too() -> None:
    work = workload([Task("a", [("read", "x")])], {"x": 40 * MB})
    assert run(work, hosted(2, 0.1, store=COSTS), bound(1, 0)).seconds == pytest.approx(8)


def test_a_file_takes_processors_besides_its_calls() -> None:
    # calls of 2 ms, and 5 ms of one processor shared by four tasks: 20 ms for each
    work = workload(
        [Task(f"t{i}", [("read", f"f{i}")]) for i in range(4)], {f"f{i}": 0 for i in range(4)}
    )
    store = "open_ms = 2\nlookup_ms = 0\nfile_cpu_ms = 5\nlatency_ms = 0\nsmall_kb = 64"
    found = run(work, hosted(4, 1, store=store), bound(4, 0, 1, 2, 3))
    assert found.seconds == pytest.approx(0.020)
    assert run(work, plain(4, store=store), bound(4, 0, 1, 2, 3)).seconds == pytest.approx(0.008)


def test_stripes_over_all_servers_take_processors() -> None:
    store = f'{COSTS}\nlaw = "stripe"\nstripe_width = 20\nchunk_mb = 1\nwindow = 20'
    work = workload([Task("a", [("read", "x")])], {"x": 40 * MB})
    found = run(work, hosted(20, 0.1, store=store), Placement("default"))
    # 20 ms per MB in client and servers, and 10 ms on links for chunks of other nodes
    assert found.seconds == pytest.approx(40 * (0.020 + 0.010 * 19 / 20) / 0.1)


def test_computing_and_moving_are_equals() -> None:
    tasks = [Task("c", [("compute", 1)]), Task("m", [("read", "x")])]
    work = workload(tasks, {"x": 50 * MB})
    found = run(work, hosted(2, 1, store=COSTS), bound(1, 1, 0))
    # 20 ms per MB: each needs one second of a processor and gets half a processor
    assert found.tasks is not None
    assert found.tasks[:, 4] == pytest.approx([2, 2])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_without_a_shared_machine_nothing_changes(seed: int) -> None:
    tasks = [Task(f"t{i}", [("read", "x"), ("compute", 1), ("write", f"y{i}")]) for i in range(9)]
    work = workload(tasks, {"x": 70 * MB, **{f"y{i}": i * MB for i in range(9)}})
    free = run(work, plain(3, store=COSTS), seed=seed)
    assert run(work, plain(3), seed=seed).seconds == free.seconds
    wide = run(work, hosted(3, 60_000), seed=seed)
    assert wide.seconds == pytest.approx(free.seconds)
