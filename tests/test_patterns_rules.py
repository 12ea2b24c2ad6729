"""Rules of docs/patterns.md without a test elsewhere: owners, full costs, choice, nodes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.support.bundles import RunBuilder
from tests.support.flow_builder import FlowBuilder, Labels
from tests.support.flow_cut import bundle_of
from tests.support.flow_shapes import MB, gathered, in_parts, many_to_one, one_to_many
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Options


def cost(labels: Labels, file: int, pattern: str) -> tuple[float, float]:
    """Return (network bytes, waiting bytes) of the placement that a label asks for."""
    numbers = labels.evidence(file, pattern)["cost"]
    return numbers["network"], numbers["wait"]


@pytest.mark.rule("P6")
def test_who_owns_no_byte_any_more_is_no_owner() -> None:
    """Another task overwrote all its bytes."""
    flow, file, _ = one_to_many([[(0, MB)]], MB)
    late = flow.task("late", start=6)
    flow.write(late, file, 0, MB)
    flow.tasks[0]["start_s"] = 0.0
    assert "gather" not in flow.labels().of(file)
    assert flow.labels().on_edge(late, file, 2) == ["pipeline"]


@pytest.mark.rule("P6")
def test_bytes_carried_over_make_owners() -> None:
    """A second task changes half of a file that a third one reads: two owners without overlap."""
    run = RunBuilder()
    root = run.process(["make"])
    one, two, three = (run.process([t], parent=root) for t in ("one", "two", "three"))
    file = run.file("/data/f", existed=False)
    run.write(one, file, 0, MB, at=1)
    run.read(two, file, 0, 10, at=2)
    run.write(two, file, MB // 2, MB, at=3)
    run.read(three, file, 0, MB, at=4)
    found = analyze(bundle_of(run), Options(nodes=4))
    (last,) = [f["file"] for f in found.files.to_pylist() if f["version"] == 1]
    labels = {p["pattern"] for p in found.patterns.to_pylist() if p["file"] == last}
    assert "gather" in labels
    rows = {p["task"]: p for p in found.producers.to_pylist() if p["file"] == last}
    assert sorted(p["owned_bytes"] for p in rows.values()) == [MB // 2, MB // 2]
    assert [p["how"] for p in rows.values()].count(["carried"]) == 1


@pytest.mark.rule("P21", "P57")
def test_who_runs_at_the_same_time_reads_at_the_same_time() -> None:
    """Instantaneous reads by tasks that overlap in pairs, each starting when its own input exists;
    the number of nodes has no influence."""
    flow, file, tasks = one_to_many([[(0, MB)]] * 4, MB)
    for k, task in enumerate(tasks):
        flow.tasks[task - 1].update(start_s=10.0 + 4 * k, end_s=16.0 + 4 * k)
        own = flow.file(f"own {k}", MB)
        flow.write(flow.task(f"maker {k}", start=0, end=10.0 + 4 * k), own, 0, MB)
        flow.read(task, own, 0, MB)
    for nodes in (2, 8):
        flow.nodes = nodes
        labels = flow.labels()
        assert labels.evidence(file, "broadcast")["concurrent_readers"] == 2


def waiting(readers: int, at_once: int) -> tuple[FlowBuilder, int, list[int]]:
    """Build readers of one file, 10 s each, on a machine that runs `at_once` of them at a time."""
    flow, file, tasks = one_to_many([[(0, MB)]] * readers, MB)
    for k, task in enumerate(tasks):
        start = 10.0 + 10 * (k // at_once)
        flow.tasks[task - 1].update(start_s=start, end_s=start + 10)
    return flow, file, tasks


@pytest.mark.parametrize("at_once", [1, 2, 3, 16])
@pytest.mark.rule("P21", "P60")
def test_readers_that_only_waited_for_a_processor_read_at_the_same_time(at_once: int) -> None:
    """16 copies pay on 16 nodes, however few processors the recorded machine had."""
    flow, file, _ = waiting(16, at_once)
    flow.nodes = 16
    labels = flow.labels()
    assert labels.evidence(file, "broadcast")["concurrent_readers"] == 16
    everywhere, same, _ = waiting(16, 16)
    everywhere.nodes = 16
    assert cost(labels, file, "broadcast") == cost(everywhere.labels(), same, "broadcast")


@pytest.mark.rule("P60")
def test_a_reader_that_needs_what_the_one_before_made_is_not_ready_with_it() -> None:
    """Tasks in a chain that all read one table: one at a time, however long each waited."""
    flow, file, tasks = waiting(6, 1)
    for one, two in pairwise(tasks):
        state = flow.file(f"state {one}", MB)
        flow.write(one, state, 0, MB)
        flow.read(two, state, 0, MB)
    # a task starts when the previous one ends, and both end points count: two
    assert flow.labels().evidence(file, "broadcast")["concurrent_readers"] == 2
    for k, task in enumerate(tasks):
        flow.tasks[task - 1].update(start_s=10.0 + 11 * k, end_s=20.0 + 11 * k)
    assert flow.labels().evidence(file, "broadcast")["concurrent_readers"] == 1


@pytest.mark.rule("P60")
def test_what_an_engine_wrote_is_complete_with_its_last_write() -> None:
    """The engine runs to the end and writes a list for each task, which is not ready before it."""
    flow, file, tasks = waiting(4, 1)
    engine = flow.task("engine", start=0, end=100, engine=True)
    for k, task in enumerate(tasks):
        listed = flow.file(f"list {k}", 100)
        flow.write(engine, listed, 0, 100, 10.0 + 10 * (k - k % 2) - 1, 10.0 + 10 * (k - k % 2))
        flow.read(task, listed, 0, 100)
    assert flow.labels().evidence(file, "broadcast")["concurrent_readers"] == 2


@pytest.mark.rule("P60")
def test_an_unknown_end_of_a_writer_leaves_the_reader_its_start() -> None:
    flow, file, tasks = waiting(3, 1)
    for k, task in enumerate(tasks):
        own = flow.file(f"own {k}", MB)
        flow.write(flow.task(f"maker {k}", start=0), own, 0, MB)
        flow.tasks[-1]["end_s"] = None
        flow.read(task, own, 0, MB)
        flow.tasks[task - 1].update(start_s=10.0 + 11 * k, end_s=20.0 + 11 * k)
    assert flow.labels().evidence(file, "broadcast")["concurrent_readers"] == 1


@pytest.mark.rule("P30")
def test_nodes_are_hosts_or_the_most_tasks_at_one_time() -> None:
    run = RunBuilder()
    root = run.process(["make"], start=0.0, end=100.0)
    file = run.file("/data/f", existed=True)
    for k in range(5):  # at most three at a time
        at = 10.0 * k
        run.read(run.process([f"t{k}"], parent=root, start=at, end=at + 25), file, 0, 9, at=at)
    assert analyze(bundle_of(run)).run["nodes"] == 3
    assert analyze(bundle_of(run), Options(nodes=7)).run["nodes"] == 7
    hosts = [RunBuilder(host=name).manifest.hosts[0] for name in ("a", "b", "c", "d")]
    for k, row in enumerate(run.rows["processes"]):
        row["host"] = "abcd"[k % 4]
    run.manifest.hosts = hosts
    assert analyze(bundle_of(run)).run["nodes"] == 4


@pytest.mark.rule("P35")
def test_an_input_is_staged_in_where_its_reader_runs() -> None:
    flow, file, _ = one_to_many([[(0, MB)]], MB, writer=False)
    labels = flow.labels()
    assert cost(labels, file, "stage_in") == (0, 0)
    row = labels.get(file, "stage_in")
    assert (row["placement"], row["saves_bytes"], row["saves_wait_bytes"]) == (
        "local",
        3 * MB // 2,
        MB,
    )


@pytest.mark.rule("P39", "P43")
def test_a_gather_with_one_reader_moves_all_but_what_is_there() -> None:
    """Four writers of a quarter each, N = 4 and N = 2: a quarter or half is already local."""
    flow, file = gathered(0)
    assert cost(flow.labels(), file, "gather") == (3 * MB, 0)
    flow.nodes = 2
    assert cost(flow.labels(), file, "gather") == (2 * MB, 0)


@pytest.mark.rule("P40")
def test_a_gather_with_several_readers_is_read_over_its_owners_links() -> None:
    flow, file = gathered(0)
    for k in range(7):
        flow.read(flow.task(f"more {k}", start=100), file, 0, 4 * MB)
    flow.nodes = 16
    s, n = 4 * MB, 8
    assert cost(flow.labels(), file, "gather") == (15 / 16 * n * s, n * s / 4)


@pytest.mark.rule("P42")
def test_a_reader_of_two_pipelines_runs_at_one_producer() -> None:
    """The larger producer's node holds three quarters of its bytes, which stay local."""
    flow, files, _ = many_to_one([3 * MB, MB])
    assert cost(flow.labels(), files[0], "pipeline")[0] == pytest.approx(3 * MB / 4)


@pytest.mark.rule("P46")
def test_waiting_counts_before_traffic_and_may_cost_some() -> None:
    """Two nodes, four readers: a second copy costs one transfer and halves the waiting."""
    flow, file, _ = one_to_many([[(0, 10 * MB)]] * 4, 10 * MB)
    flow.nodes = 2
    row = flow.labels(default_placement="one-node").get(file, "broadcast")
    assert row["placement"] == "replicas=2"
    assert row["saves_wait_bytes"] == 2 * 10 * MB - 10 * MB
    numbers = flow.labels().evidence(file, "broadcast")["cost"]
    assert row["saves_bytes"] == round(numbers["default_network"] - numbers["network"])


@pytest.mark.rule("P46")
def test_the_runner_up_is_the_best_other_placement() -> None:
    flow, file, _ = one_to_many([[(k * MB, (k + 1) * MB)] for k in range(4)], 4 * MB)
    row = flow.labels().get(file, "scatter")
    assert (row["placement"], row["runner_up"], row["runner_up_saves_bytes"]) == (
        "scatter",
        "default",
        0,
    )


@pytest.mark.rule("P47")
def test_equal_costs_go_by_the_order_of_the_page() -> None:
    """On one node all costs are zero: scatter precedes gather."""
    flow, file = in_parts(2, nodes=1)
    labels = flow.labels()
    assert labels.of(file) == {"gather", "scatter"}
    assert labels.primary(file) == "scatter"


@pytest.mark.rule("P48")
def test_without_a_measured_store_there_are_no_seconds() -> None:
    flow, file, _ = one_to_many([[(0, MB)]], MB)
    row = flow.labels().get(file, "pipeline")
    assert isinstance(row["saves_bytes"], int)
    assert not [name for name in row if name.endswith(("_s", "_seconds"))]
    assert "seconds" not in row["evidence"]
