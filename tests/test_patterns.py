"""The definitions of docs/patterns.md, sentence by sentence, and runs that mislead programs."""

from __future__ import annotations

import pytest

from tests.support.bundles import RunBuilder
from tests.support.flow_builder import FlowBuilder
from tests.support.flow_cut import bundle_of
from tests.support.flow_shapes import MB, gathered, in_parts, many_to_one, one_to_many
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.model import Options

KB = 1 << 10


# -- readers ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 8, 40])
@pytest.mark.rule("P9", "P11", "P21")
def test_whole_readers_are_a_broadcast(n: int) -> None:
    flow, file, _ = one_to_many([[(0, MB)]] * n, MB)
    labels = flow.labels()
    assert labels.of(file) == {"broadcast"}
    evidence = labels.evidence(file, "broadcast")
    assert (evidence["n"], evidence["m"], evidence["concurrent_readers"]) == (n, n, n)


@pytest.mark.rule("P11")
def test_broadcast_threshold_is_inclusive() -> None:
    """m >= 1 + 0.5 (n - 1): with three readers at m = 2 exactly."""
    flow, file, _ = one_to_many([[(0, 2 * MB)], [(0, 2 * MB)], [(2 * MB, 3 * MB)]], 3 * MB)
    assert flow.labels().of(file) == {"partly_shared"}  # m = 5/3
    flow, file, _ = one_to_many([[(0, 3 * MB)], [(0, 3 * MB)], []], 3 * MB)
    assert flow.labels().of(file) == {"broadcast"}
    flow, file, _ = one_to_many([[(0, 4 * MB)], [(0, 2 * MB)], [(2 * MB, 4 * MB)]], 4 * MB)
    labels = flow.labels()
    assert labels.of(file) == {"broadcast"}
    assert labels.get(file, "broadcast")["confidence"] == pytest.approx(0.5)


@pytest.mark.rule("P9", "P11")
def test_broadcast_with_one_reader_stopping_early() -> None:
    flow, file, _ = one_to_many([*[[(0, MB)]] * 5, [(0, MB // 2)]], MB)
    labels = flow.labels()
    assert labels.of(file) == {"broadcast"}
    # The first 10 % are a header that all read: 40 % read by six and 50 % read by five remain.
    assert labels.evidence(file, "broadcast")["m"] == pytest.approx(
        (0.4 * 6 + 0.5 * 5) / 0.9, abs=1e-3
    )


@pytest.mark.rule("P9", "P12", "P24")
def test_disjoint_readers_are_a_scatter() -> None:
    flow, file, _ = one_to_many([[(k * MB, (k + 1) * MB)] for k in range(4)], 4 * MB)
    labels = flow.labels()
    assert labels.of(file) == {"scatter"}
    evidence = labels.evidence(file, "scatter")
    assert evidence["m"] == 1
    assert (evidence["regions"], evidence["region_bytes"], evidence["stride"]) == (4, MB, MB)
    assert (evidence["regular"], evidence["alignment"], evidence["gaps"]) == (True, MB, 0)


@pytest.mark.rule("P12", "P51")
def test_over_reads_of_23_percent_are_still_a_scatter() -> None:
    """`split -n` reads past the end of its chunk."""
    part = 1000 * KB
    ranges = [[(k * part, min(8 * part, (k + 1) * part + 230 * KB))] for k in range(8)]
    flow, file, _ = one_to_many(ranges, 8 * part)
    labels = flow.labels()
    assert labels.of(file) == {"scatter"}
    assert 1.19 < labels.evidence(file, "scatter")["m"] < 1.23
    assert 0.5 < labels.get(file, "scatter")["confidence"] < 0.65


@pytest.mark.rule("P12", "P24")
def test_strided_readers_are_a_scatter() -> None:
    block = 64 * KB
    ranges = [[(k * block, (k + 1) * block) for k in range(r, 64, 4)] for r in range(4)]
    flow, file, _ = one_to_many(ranges, 64 * block)
    evidence = flow.labels().evidence(file, "scatter")
    assert (evidence["regions"], evidence["region_bytes"], evidence["stride"]) == (64, block, block)
    assert evidence["alignment"] == block


@pytest.mark.rule("P12")
def test_scatter_with_gaps_states_them() -> None:
    flow, file, _ = one_to_many([[(0, MB)], [(2 * MB, 3 * MB)], [(4 * MB, 5 * MB)]], 5 * MB)
    evidence = flow.labels().evidence(file, "scatter")
    assert (evidence["gaps"], evidence["gap_bytes"]) == (2, 2 * MB)
    assert (evidence["region_bytes"], evidence["stride"]) == (MB, 2 * MB)


def parted(shares: list[tuple[int, int]]) -> set[str]:
    """Return the labels of a file of 1,000 KiB with one reader for each of these ranges."""
    flow, file, _ = one_to_many([[(a * KB, b * KB)] for a, b in shares], 1000 * KB)
    return set(flow.labels().of(file))


@pytest.mark.rule("P12", "P13", "P61")
def test_a_whole_reader_beside_readers_of_some_parts_is_no_scatter() -> None:
    """However few bytes the others read, only one reader has a region of its own."""
    assert parted([(0, 1000), (500, 600)]) == {"partly_shared"}
    assert parted([(0, 1000), (300, 370), (500, 570), (800, 900)]) == {"partly_shared"}
    assert parted([(0, 1000), (850, 1000)]) == {"partly_shared"}
    assert parted([(0, 990), (900, 1000)]) == {"partly_shared"}  # mostly read by another reader
    assert parted([(0, 850), (840, 1000)]) == {"scatter"}


@pytest.mark.rule("P13", "P51")
def test_partly_shared_for_want_of_regions_is_far_from_the_threshold_of_scatter() -> None:
    flow, file, _ = one_to_many([[(0, 1000 * KB)], [(500 * KB, 600 * KB)]], 1000 * KB)
    labels = flow.labels()
    assert labels.get(file, "partly_shared")["confidence"] == 1
    assert labels.evidence(file, "partly_shared")["own_regions"] == 1


@pytest.mark.rule("P13")
def test_between_the_two_is_partly_shared_and_never_rounded() -> None:
    flow, file, _ = one_to_many([[(k * MB, (k + 2) * MB)] for k in range(5)], 6 * MB)
    labels = flow.labels()
    assert labels.of(file) == {"partly_shared"}
    evidence = labels.evidence(file, "partly_shared")
    assert evidence["m"] == pytest.approx(10 / 6, abs=1e-4)
    assert evidence["shared_ranges"] == [[MB, 5 * MB]]
    assert evidence["shared_bytes"] == 4 * MB


@pytest.mark.rule("P10")
def test_a_shared_header_is_set_aside() -> None:
    """All read the first 64 KiB, then each its own part: a scatter, header in evidence."""
    head = 64 * KB
    ranges = [[(0, head), (head + k * MB, head + (k + 1) * MB)] for k in range(8)]
    flow, file, _ = one_to_many(ranges, head + 8 * MB)
    evidence = flow.labels().evidence(file, "scatter")
    assert (evidence["m"], evidence["header_bytes"]) == (1, head)
    assert (evidence["regions"], evidence["region_bytes"]) == (8, MB)


@pytest.mark.rule("P10")
def test_bytes_that_fewer_than_90_percent_read_are_no_header() -> None:
    head = 64 * KB
    ranges = [[(0, head), (head + k * MB, head + (k + 1) * MB)] for k in range(8)]
    ranges[0], ranges[1] = ranges[0][1:], ranges[1][1:]
    flow, file, _ = one_to_many(ranges, head + 8 * MB)
    assert flow.labels().evidence(file, "scatter")["header_bytes"] == 0


@pytest.mark.rule("P10")
def test_a_header_is_at_most_10_percent_of_the_file() -> None:
    size = 400 * KB
    ranges = [[(0, 100 * KB), (k * 100 * KB, (k + 1) * 100 * KB)] for k in range(1, 4)]
    flow, file, _ = one_to_many(ranges, size)
    labels = flow.labels()
    assert labels.of(file) == {"partly_shared"}
    assert labels.evidence(file, "partly_shared")["header_bytes"] == 40 * KB


@pytest.mark.rule("P10")
def test_readers_of_nothing_but_the_header_are_judged_on_all_bytes() -> None:
    flow, file, _ = one_to_many([[(0, 100 * KB)]] * 4, 10 * MB)
    labels = flow.labels()
    assert labels.of(file) == {"broadcast"}
    assert labels.evidence(file, "broadcast")["header_bytes"] == 0


@pytest.mark.parametrize(("size", "heads"), [(100 * KB, 2), (MB, 1), (120 * KB, 5)])
@pytest.mark.rule("P10", "P17")
def test_a_whole_reader_beside_header_readers_is_a_pipeline(size: int, heads: int) -> None:
    """`head` reads 8 KiB of a file that one task reads completely."""
    flow, file, tasks = one_to_many([[(0, size)], *[[(0, 8 * KB)]] * heads], size)
    labels = flow.labels()
    assert labels.of(file) == {"pipeline"}
    assert labels.evidence(file, "pipeline")["peeks"] == heads
    assert labels.on_edge(1, file, tasks[0]) == ["pipeline"]
    assert labels.on_edge(1, file, tasks[-1]) == []


@pytest.mark.rule("P10", "P18")
def test_header_readers_of_an_input_leave_its_stage_in() -> None:
    flow, file, _ = one_to_many([[(0, 100 * KB)], [(0, 8 * KB)]], 100 * KB, writer=False)
    assert flow.labels().of(file) == {"stage_in"}


@pytest.mark.rule("P10", "P11")
def test_header_readers_beside_several_whole_readers_leave_their_broadcast() -> None:
    size = 100 * KB
    flow, file, _ = one_to_many([[(0, size)], [(0, size)], *[[(0, 8 * KB)]] * 8], size)
    labels = flow.labels()
    assert labels.of(file) == {"broadcast"}
    assert (labels.evidence(file, "broadcast")["n"], labels.evidence(file, "broadcast")["m"]) == (
        2,
        2,
    )


@pytest.mark.rule("P10")
def test_readers_show_which_of_them_read_the_header_only() -> None:
    """Learning, drawing and checking rely on the rows of the readers."""
    run = RunBuilder()
    root = run.process(["sh", "run"])
    make, use, *heads = (run.process([t], parent=root) for t in ("one", "use", "head", "head"))
    file = run.file("/data/f", existed=False)
    run.write(make, file, 0, 100 * KB, at=1)
    run.read(use, file, 0, 100 * KB, at=2)
    for at, head in enumerate(heads, 3):
        run.read(head, file, 0, 8 * KB, at=at)
    found = analyze(bundle_of(run), Options(nodes=4))
    names = dict(found.tasks.select(["task", "type"]).to_pandas().to_numpy().tolist())
    rows = [(names[r["task"]], r["peek"]) for r in found.consumers.to_pylist()]
    assert sorted(rows) == [("head", True), ("head", True), ("use", False)]
    assert {p["pattern"] for p in found.patterns.to_pylist() if p["edge"] is None} == {"pipeline"}


# -- peeks --------------------------------------------------------------------------------


@pytest.mark.rule("P7", "P29")
def test_a_peek_keeps_its_edge_but_decides_nothing() -> None:
    flow, file, tasks = one_to_many([[(0, 10 * MB)], [(0, 4 * KB)]], 10 * MB)
    labels = flow.labels()
    assert labels.of(file) == {"pipeline"}
    assert labels.evidence(file, "pipeline")["peeks"] == 1
    assert labels.on_edge(1, file, tasks[0]) == ["pipeline"]
    assert labels.on_edge(1, file, tasks[1]) == []


@pytest.mark.rule("P8")
def test_when_all_are_peeks_they_decide() -> None:
    flow, file, _ = one_to_many([[(0, 4 * KB)]] * 3, 10 * MB)
    labels = flow.labels()
    assert labels.of(file) == {"broadcast"}
    assert labels.evidence(file, "broadcast")["peeks_decide"] is True


@pytest.mark.parametrize(
    ("size", "read", "peek"),
    [(10 * MB, 64 * KB, False), (10 * MB, 64 * KB - 1, True), (100, 5, False), (100, 4, True)],
)
@pytest.mark.rule("P7")
def test_peek_thresholds(size: int, read: int, peek: bool) -> None:
    """Under 5 % and under 64 KiB, anywhere in the file."""
    flow, file, _ = one_to_many([[(0, size)], [(size - read, size)]], size)
    assert ("pipeline" in flow.labels().of(file)) is peek


@pytest.mark.rule("P8")
def test_an_uneven_scatter_with_a_straggler_region_is_a_scatter() -> None:
    """39 of 40 readers read 2 % each, one reads a fifth: the small reads are not peeks."""
    part = 20 * KB
    ranges = [[(k * part, (k + 1) * part)] for k in range(39)] + [[(39 * part, 49 * part)]]
    flow, file, tasks = one_to_many(ranges, 49 * part)
    labels = flow.labels()
    assert labels.of(file) == {"scatter"}
    assert labels.evidence(file, "scatter")["n"] == 40
    assert labels.on_edge(1, file, tasks[0]) == ["scatter"]


@pytest.mark.rule("P8")
def test_bytes_that_nobody_read_do_not_make_peeks_readers() -> None:
    """One reader of the first and the last bytes, three that read only the header."""
    size = 100 * MB
    ranges = [[(0, 40 * KB), (size - 60 * KB, size)], *[[(0, 40 * KB)]] * 3]
    flow, file, _ = one_to_many(ranges, size)
    assert flow.labels().of(file) == {"pipeline"}


@pytest.mark.rule("P7", "P15")
def test_header_peeks_make_no_reduce() -> None:
    """A task that reads only the headers of all images does not reduce them."""
    flow = FlowBuilder()
    makers = [flow.task(f"project {k}") for k in range(6)]
    table, add = flow.task("table", start=20), flow.task("add", start=30)
    files = [flow.file(f"p{k}", 4 * MB) for k in range(6)]
    for maker, file in zip(makers, files, strict=True):
        flow.write(maker, file, 0, 4 * MB)
        flow.read(table, file, 0, 3 * KB)
        flow.read(add, file, 0, 4 * MB)
    labels = flow.labels()
    assert [g["task"] for g in labels.groups] == [add]
    assert all(labels.of(f) == {"pipeline", "reduce"} for f in files)


# -- writers ------------------------------------------------------------------------------


@pytest.mark.rule("P14", "P22")
def test_disjoint_writers_are_a_gather() -> None:
    flow, file = gathered(0)
    labels = flow.labels()
    assert labels.of(file) == {"gather"}
    evidence = labels.evidence(file, "gather")
    assert (evidence["writers"], evidence["mode"], evidence["concurrent_writers"]) == (
        4,
        "concurrent",
        4,
    )
    assert labels.on_edge(1, file, 5) == ["gather"]


@pytest.mark.rule("P14", "P22")
def test_appends_in_turn_are_a_gather_too() -> None:
    flow, file = gathered(0, in_turn=True)
    evidence = flow.labels().evidence(file, "gather")
    assert (evidence["mode"], evidence["concurrent_writers"]) == ("appended in turn", 1)


@pytest.mark.parametrize(("overlap", "gather"), [(100 * KB, True), (200 * KB, False)])
@pytest.mark.rule("P14")
def test_at_most_10_percent_may_be_written_twice(overlap: int, gather: bool) -> None:
    flow, file = gathered(overlap)
    assert ("gather" in flow.labels().of(file)) is gather


@pytest.mark.rule("P14", "P61")
def test_a_whole_writer_and_one_that_corrects_some_bytes_are_no_gather() -> None:
    flow = FlowBuilder()
    make, correct, use = (flow.task(name, start=k) for k, name in enumerate(("a", "b", "c")))
    file = flow.file("x", MB)
    flow.write(make, file, 0, MB, at=1)
    flow.write(correct, file, 0, 50 * KB, at=2)
    flow.read(use, file, 0, MB, at=3)
    assert "gather" not in flow.labels().of(file)


@pytest.mark.rule("P3")
def test_superseded_writers_do_not_count() -> None:
    """A retry overwrote the bytes of a killed attempt: one producer, a pipeline."""
    flow = FlowBuilder()
    first = flow.task("make", start=0)
    again = flow.task("make", start=5, attempt=2)
    use = flow.task("use", start=20)
    file = flow.file("x", MB)
    flow.write(first, file, 0, MB // 2)
    flow.write(again, file, 0, MB)
    flow.read(use, file, 0, MB)
    assert flow.labels().of(file) == {"pipeline"}


@pytest.mark.rule("P2")
def test_attempts_of_one_task_are_one_writer_and_one_reader() -> None:
    flow = FlowBuilder()
    make = flow.task("make", start=0)
    file = flow.file("x", MB)
    flow.write(make, file, 0, MB)
    for attempt, start in ((1, 10), (2, 20)):
        use = flow.task("use", start=start, attempt=attempt)
        flow.read(use, file, 0, MB // (3 - attempt), at=start)
    labels = flow.labels()
    assert labels.of(file) == {"pipeline"}
    assert labels.on_edge(make, file, 2) == ["pipeline"]
    assert labels.on_edge(make, file, 3) == ["pipeline"]


@pytest.mark.rule("P29")
def test_gather_and_scatter_of_one_file_keep_both_labels() -> None:
    flow, file = in_parts(4)
    labels = flow.labels()
    assert labels.of(file) == {"gather", "scatter"}
    assert labels.primary(file) == "scatter"


# -- groups -------------------------------------------------------------------------------


@pytest.mark.rule("P15")
def test_files_of_many_tasks_into_one_are_a_reduce() -> None:
    flow, files, sink = many_to_one([MB] * 5)
    labels = flow.labels()
    (group,) = labels.groups
    assert (group["pattern"], group["task"], group["files"]) == ("reduce", sink, files)
    assert group["bytes"] == 5 * MB
    assert group["primary"] is True
    assert all(labels.of(f) == {"pipeline", "reduce"} for f in files)
    assert {labels.primary(f) for f in files} == {"reduce"}


@pytest.mark.rule("P15")
def test_many_files_of_one_producer_are_no_reduce() -> None:
    flow = FlowBuilder()
    make, use = flow.task("make"), flow.task("use", start=10)
    files = [flow.file(f"f{k}", MB) for k in range(10)]
    for file in files:
        flow.write(make, file, 0, MB)
        flow.read(use, file, 0, MB)
    labels = flow.labels()
    assert labels.groups == []
    assert all(labels.of(f) == {"pipeline"} for f in files)


@pytest.mark.parametrize(("other", "reduce"), [(5 * MB, True), (7 * MB, False)])
@pytest.mark.rule("P15")
def test_a_reduce_is_a_quarter_of_what_the_task_reads(other: int, reduce: bool) -> None:
    flow, files, sink = many_to_one([MB, MB])
    source, peer = flow.task("table", start=0), flow.task("peer", start=10)
    table = flow.file("table", other)
    flow.write(source, table, 0, other)
    flow.read(sink, table, 0, other)
    flow.read(peer, table, 0, other)
    labels = flow.labels()
    assert ("reduce" in labels.of(files[0])) is reduce
    assert "reduce" not in labels.of(table), "a broadcast file never joins"


@pytest.mark.rule("P26")
def test_a_table_that_every_worker_reads_makes_no_reducers() -> None:
    flow = FlowBuilder()
    one, two = flow.task("one"), flow.task("two")
    tables = [flow.file("a", MB), flow.file("b", MB)]
    flow.write(one, tables[0], 0, MB)
    flow.write(two, tables[1], 0, MB)
    for k in range(4):
        worker = flow.task(f"work {k}", start=10)
        for table in tables:
            flow.read(worker, table, 0, MB)
    assert flow.labels().groups == []


@pytest.mark.rule("P16")
def test_files_of_one_task_for_several_are_a_distribute() -> None:
    flow = FlowBuilder()
    split = flow.task("split")
    files = []
    for k, size in enumerate([MB, MB, 2 * MB]):
        files.append(flow.file(f"c{k}", size))
        flow.write(split, files[-1], 0, size)
        flow.read(flow.task(f"use {k}", start=10), files[-1], 0, size)
    labels = flow.labels()
    (group,) = labels.groups
    assert (group["pattern"], group["task"], group["files"]) == ("distribute", split, files)
    assert {labels.primary(f) for f in files} == {"distribute"}
    evidence = labels.evidence(files[0], "distribute")
    assert (evidence["fan_out"], evidence["consumers"]) == (3, 3)
    assert evidence["balance_cov"] == pytest.approx(0.3536, abs=1e-4)


@pytest.mark.rule("P28", "P47")
def test_a_shuffle_is_reduce_and_distribute_and_the_larger_saving_wins() -> None:
    flow = FlowBuilder(nodes=16)
    maps = [flow.task(f"map {k}", start=0) for k in range(8)]
    folds = [flow.task(f"fold {k}", start=10) for k in range(2)]
    files = []
    for m in maps:
        for f in folds:
            files.append(flow.file(f"{m}-{f}", MB))
            flow.write(m, files[-1], 0, MB)
            flow.read(f, files[-1], 0, MB)
    labels = flow.labels()
    kinds = sorted(g["pattern"] for g in labels.groups)
    assert kinds == ["distribute"] * 8 + ["reduce"] * 2
    assert all(labels.of(f) == {"pipeline", "reduce", "distribute"} for f in files)
    assert {labels.primary(f) for f in files} == {"reduce"}
    assert [g["primary"] for g in labels.groups] == [
        g["pattern"] == "reduce" for g in labels.groups
    ]


@pytest.mark.rule("P23")
def test_a_shuffle_through_regioned_files_is_all_to_all() -> None:
    flow = FlowBuilder()
    maps = [flow.task(f"map {k}", start=0) for k in range(3)]
    folds = [flow.task(f"fold {k}", start=10) for k in range(4)]
    files = [flow.file(f"m{k}", 4 * MB) for k in range(3)]
    for m, file in zip(maps, files, strict=True):
        flow.write(m, file, 0, 4 * MB)
        for k, f in enumerate(folds):
            flow.read(f, file, k * MB, (k + 1) * MB)
    evidence = flow.labels().evidence(files[0], "scatter")
    assert (evidence["all_to_all"], evidence["all_to_all_files"]) == (True, 3)


@pytest.mark.rule("P26")
def test_a_gather_read_by_one_task_joins_its_reduce() -> None:
    flow, files, sink = many_to_one([MB, MB])
    shared = flow.file("shared", 2 * MB)
    for k in range(2):
        flow.write(flow.task(f"w {k}", start=0), shared, k * MB, (k + 1) * MB)
    flow.read(sink, shared, 0, 2 * MB)
    labels = flow.labels()
    assert labels.of(shared) == {"gather", "reduce"}
    assert labels.groups[0]["files"] == [*files, shared]


# -- pipelines, roles, versions -------------------------------------------------------------


def chain(length: int) -> tuple[FlowBuilder, list[int]]:
    flow = FlowBuilder()
    tasks = [flow.task(f"step {k}") for k in range(length + 1)]
    files = [flow.file(f"s{k}", MB) for k in range(length)]
    for k, file in enumerate(files):
        flow.write(tasks[k], file, 0, MB)
        flow.read(tasks[k + 1], file, 0, MB)
    return flow, files


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.rule("P17", "P25")
def test_chain_position_and_length(length: int) -> None:
    flow, files = chain(length)
    labels = flow.labels()
    found = [labels.evidence(f, "pipeline") for f in files]
    assert [e["position"] for e in found] == list(range(1, length + 1))
    assert {e["length"] for e in found} == {length}


@pytest.mark.rule("P25")
def test_two_files_side_by_side_are_one_step_of_a_chain() -> None:
    flow, files = chain(3)
    twin = flow.file("twin", MB)
    flow.write(2, twin, 0, MB)
    flow.read(3, twin, 0, MB)
    labels = flow.labels()
    assert labels.evidence(twin, "pipeline") == labels.evidence(files[1], "pipeline")
    assert labels.evidence(twin, "pipeline")["length"] == 3


@pytest.mark.rule("P18", "P19")
def test_inputs_and_outputs() -> None:
    flow = FlowBuilder()
    task = flow.task("only")
    source, result = flow.file("in", MB), flow.file("out", MB)
    flow.read(task, source, 0, MB)
    flow.write(task, result, 0, MB)
    labels = flow.labels()
    assert labels.of(source) == {"stage_in"}
    assert labels.of(result) == {"stage_out"}
    assert labels.get(result, "stage_out")["placement"] == "default"


@pytest.mark.rule("P27")
def test_scratch_and_software_get_no_label() -> None:
    flow = FlowBuilder()
    task, other = flow.task("only"), flow.task("other")
    scratch, tool = flow.file("tmp", MB), flow.file("tool", MB, role="software")
    flow.write(task, scratch, 0, MB)
    flow.read(task, scratch, 0, MB)
    flow.read(task, tool, 0, MB)
    flow.read(other, tool, 0, MB)
    assert flow.labels().patterns == []


def test_readers_of_one_file_in_a_chain_of_versions_are_no_broadcast() -> None:
    flow = FlowBuilder()
    tasks = [flow.task(f"update {k}", start=k * 10) for k in range(5)]
    files = [flow.file("state", MB, version=k, lineage=1) for k in range(4)]
    for k, file in enumerate(files):
        flow.write(tasks[k], file, 0, MB)
        flow.read(tasks[k + 1], file, 0, MB)
    labels = flow.labels()
    assert all(labels.of(f) == {"pipeline"} for f in files)
    assert labels.evidence(files[-1], "pipeline")["length"] == 4


@pytest.mark.rule("P20", "P27")
def test_tasks_that_feed_each_other_both_ways_get_no_hint() -> None:
    flow, files = chain(2)
    back = flow.file("back", MB)
    flow.write(3, back, 0, MB)
    flow.read(1, back, 0, MB)
    labels = flow.labels()
    for file in (*files, back):
        row = labels.get(file, "concurrently_shared")
        assert labels.of(file) == {"concurrently_shared"}
        assert (row["placement"], row["saves_bytes"]) == ("default", 0)
    assert labels.evidence(back, "concurrently_shared") | {"factors": 0, "cost": 0} == {
        "tasks": 3,
        "reason": "cycle",
        "factors": 0,
        "cost": 0,
    }


@pytest.mark.rule("P20")
def test_too_many_versions_are_concurrently_shared() -> None:
    flow = FlowBuilder()
    tasks = [flow.task(f"t {k}") for k in range(6)]
    files = [flow.file("db", MB, version=k, lineage=1) for k in range(5)]
    for k, file in enumerate(files):
        flow.write(tasks[k], file, 0, MB)
        flow.read(tasks[k + 1], file, 0, MB)
    assert flow.labels(max_versions=5).of(files[0]) == {"pipeline"}
    labels = flow.labels(max_versions=4)
    assert all(labels.of(f) == {"concurrently_shared"} for f in files)


@pytest.mark.rule("P1")
def test_engines_neither_produce_nor_consume() -> None:
    flow, file, _ = one_to_many([[(0, MB)]], MB)
    engine = flow.task("makeflow", engine=True)
    flow.read(engine, file, 0, MB)
    assert flow.labels().of(file) == {"pipeline"}


@pytest.mark.rule("P5")
def test_an_engine_copy_keeps_the_chain_visible() -> None:
    flow = FlowBuilder()
    make, use = flow.task("make"), flow.task("use", start=10)
    file = flow.file("x", MB)
    flow.write(make, file, 0, MB)
    flow.files[0]["role"] = "intermediate"
    flow.extra_edges.append((make, file, use, MB))
    labels = flow.labels()
    assert labels.of(file) == {"pipeline"}
    assert labels.on_edge(make, file, use) == ["pipeline"]


@pytest.mark.rule("P4")
def test_a_task_that_only_reads_back_its_own_bytes_is_no_reader() -> None:
    flow, file, _ = one_to_many([[(0, MB)]], MB)
    flow.read(1, file, 0, MB)
    assert flow.labels().of(file) == {"pipeline"}


def test_an_empty_run() -> None:
    labels = FlowBuilder().labels()
    assert (labels.patterns, labels.groups) == ([], [])
