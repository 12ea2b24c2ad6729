"""The engine against times computed by hand: links of 10 MB/s unless stated otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.predicting import MB, Task, on, plain, run, workload
from tracehint.analyzer.predict.model import READ, Placement, SimulatedRun, Workload, law


def placed(work: Workload, **files: int) -> Placement:
    """Store files by number on nodes: f0=1 places file 0 on node 1."""
    kinds, target = np.full(work.files, -1, np.int32), np.full(work.files, -1, np.int32)
    for name, node in files.items():
        kinds[int(name[1:])], target[int(name[1:])] = law("node"), node
    return Placement("placed", law=kinds, target=target, scheduler="plan")


def planned(placement: Placement, *nodes: int) -> Placement:
    placement.plan = np.array(nodes, np.int32)
    return placement


def test_one_transfer() -> None:
    work = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    found = run(work, plain(), planned(placed(work, f0=0), 1))
    assert found.seconds == pytest.approx(10) and found.network_bytes == 100 * MB
    assert found.hosts[0, 0] == found.hosts[1, 1] == 100 * MB


def test_a_local_read_moves_nothing() -> None:
    work = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    found = run(work, plain(node="local_mb_s = 50"), planned(placed(work, f0=0), 0))
    assert found.seconds == pytest.approx(2) and found.network_bytes == 0


def test_an_input_is_on_the_node_that_holds_it_unless_it_is_placed() -> None:
    tasks = [Task("a", [("read", "x"), ("write", "y")]), Task("b", [("read", "y")])]
    work = workload(tasks, {"x": 100 * MB, "y": 30 * MB})
    for node in range(4):
        work.held = np.array([node, node], np.int32)
        found = run(work, plain(4), on(2, 2))
        assert found.hosts[node, 0] >= 100 * MB * (node != 2)
        made = placed(work, f1=2)
        assert run(work, plain(4), planned(made, 2, 2)).network_bytes == 100 * MB * (node != 2)
        moved = planned(placed(work, f0=2, f1=2), 2, 2)
        assert run(work, plain(4), moved).network_bytes == 0


@pytest.mark.parametrize(
    ("megabytes", "overlap", "seconds"),
    [([100], 0, 24), ([100], 4, 20), ([100], 14, 14), ([100], 60, 14), ([300], 14, 30),
     ([100, 100], 14, 20), ([100, 100], 12, 22)],
)  # fmt: skip  # a table
def test_computing_that_overlaps_reads_takes_only_what_is_longer(
    megabytes: list[int], overlap: float, seconds: float
) -> None:
    sizes = {f"x{i}": size * MB for i, size in enumerate(megabytes)}
    work = workload([Task("a", [*(("read", name) for name in sizes), ("compute", 14)])], sizes)
    work.op_seconds[work.of_kind(READ)] = overlap
    found = run(work, plain(), planned(placed(work, **{f"f{i}": 0 for i in range(len(sizes))}), 1))
    assert found.seconds == pytest.approx(seconds)
    assert found.hosts[1, 3] == 14  # core seconds
    assert found.types[0, 3:].tolist() == pytest.approx([14, seconds - 14, 0, 0, 0, 0])


def test_two_transfers_share_a_link() -> None:
    tasks = [Task(str(i), [("read", f"x{i}")]) for i in range(2)]
    work = workload(tasks, {"x0": 100 * MB, "x1": 50 * MB})
    found = run(work, plain(3), planned(placed(work, f0=0, f1=0), 1, 2))
    # 5 MB/s each until the small one ends at 10 s; then the other's last 50 MB at 10 MB/s
    assert found.tasks is not None
    assert found.tasks[:, 4] == pytest.approx([15, 10])


def test_what_a_bottleneck_leaves_goes_to_the_others() -> None:
    # x0 and x1 leave node 0; x2 enters node 1 beside x0: 5 MB/s each; then x0 speeds up
    tasks = [Task(str(i), [("read", f"x{i}")]) for i in range(3)]
    work = workload(tasks, {"x0": 100 * MB, "x1": 100 * MB, "x2": 25 * MB})
    found = run(work, plain(4, 2), planned(placed(work, f0=0, f1=0, f2=3), 1, 2, 1))
    assert found.tasks is not None
    assert found.tasks[:, 4] == pytest.approx([20, 20, 5])


@pytest.mark.parametrize("readers", [1, 4, 19])
def test_broadcast_from_one_node(readers: int) -> None:
    tasks = [Task("w", [("write", "x")])]
    tasks += [Task(f"r{i}", [("read", "x")]) for i in range(readers)]
    work = workload(tasks, {"x": 100 * MB})
    nodes = [0, *range(1, readers + 1)]
    found = run(work, plain(readers + 1), planned(placed(work, f0=0), *nodes))
    assert found.seconds == pytest.approx(10 * readers)
    assert found.network_bytes == readers * 100 * MB


def test_copies_share_the_readers() -> None:
    tasks = [Task(f"r{i}", [("read", "x")]) for i in range(2)]
    work = workload(tasks, {"x": 100 * MB})
    place = planned(placed(work, f0=0), 0, 1)
    place.copies = np.array([2], np.int32)
    found = run(work, plain(2), place)
    assert found.seconds == pytest.approx(0) and found.network_bytes == 0


def test_a_write_goes_from_copy_to_copy() -> None:
    work = workload([Task("w", [("write", "x")])], {"x": 100 * MB})
    place = planned(placed(work, f0=0), 0)
    place.copies = np.array([3], np.int32)
    found = run(work, plain(4), place)
    assert found.seconds == pytest.approx(10) and found.network_bytes == 200 * MB


def test_a_pipeline_that_stays_moves_nothing() -> None:
    tasks = [
        Task("a", [("read", "x"), ("compute", 1), ("write", "y")]),
        Task("b", [("read", "y"), ("compute", 2), ("write", "z")]),
    ]
    work = workload(tasks, {"x": MB, "y": 500 * MB, "z": 500 * MB})
    found = run(work, plain(2), planned(placed(work, f0=0, f1=0, f2=0), 0, 0))
    assert found.seconds == pytest.approx(3) and found.network_bytes == 0


def test_a_reduce_is_bound_by_the_readers_link() -> None:
    tasks = [Task(f"w{i}", [("write", f"x{i}")]) for i in range(8)]
    tasks.append(Task("r", [("read", f"x{i}") for i in range(8)]))
    work = workload(tasks, {f"x{i}": 50 * MB for i in range(8)})
    at = {f"f{i}": i for i in range(8)}
    found = run(work, plain(9), planned(placed(work, **at), *range(8), 8))
    assert found.seconds == pytest.approx(8 * 5) and found.network_bytes == 400 * MB


def test_a_disk_bounds_a_cold_read_but_not_a_warm_one() -> None:
    node = "disk_read_mb_s = 5\nmemory_gb = 1"
    tasks = [Task("a", [("read", "x")]), Task("b", [("read", "x"), ("write", "y")])]
    tasks.append(Task("c", [("read", "y"), ("read", "x")]))
    work = workload(tasks, {"x": 100 * MB, "y": 0})
    found = run(work, plain(node=node), planned(placed(work, f0=0, f1=0), 1, 1, 1))
    assert found.tasks is not None  # in sequence: 20 s from the disk, then 10 s each
    assert found.seconds == pytest.approx(40)
    assert found.hosts[0, 2] == 100 * MB
    cold = run(
        work,
        plain(node="disk_read_mb_s = 5\nmemory_gb = 0"),
        planned(placed(work, f0=0, f1=0), 1, 1, 1),
    )
    assert cold.seconds == pytest.approx(60)


def test_writes_wait_for_the_disk_once_the_buffer_is_full() -> None:
    node = "disk_write_mb_s = 2\nwrite_buffer_gb = 0.1"
    work = workload([Task("a", [("write", "x"), ("write", "y")])], {"x": 100 * MB, "y": 100 * MB})
    found = run(work, plain(node=node), planned(placed(work, f0=1, f1=1), 0))
    assert found.seconds == pytest.approx(10 + 50)


@pytest.mark.parametrize("chunk", [1000, 1])
def test_nodes_that_share_processors_share_what_moves(chunk: int) -> None:
    """Four nodes read 100 MB each of their own files: together at most 50 MB/s."""
    tasks = [Task(f"t{i}", [("read", f"x{i}")]) for i in range(4)]
    work = workload(tasks, {f"x{i}": 100 * MB for i in range(4)})
    at = planned(placed(work, f0=0, f1=1, f2=2, f3=3), 0, 1, 2, 3)
    apart = plain(4, node="local_mb_s = 100", store=f"chunk_mb = {chunk}")
    assert run(work, apart, at).seconds == pytest.approx(1)
    shared = plain(4, node="local_mb_s = 100", store=f"chunk_mb = {chunk}\nshared_mb_s = 50")
    found = run(work, shared, at)
    assert found.seconds == pytest.approx(400 / 50) and found.network_bytes == 0
    alone = workload(tasks[:1], {"x0": 100 * MB})
    assert run(alone, shared, planned(placed(alone, f0=0), 0)).seconds == pytest.approx(2)
    enough = plain(4, node="local_mb_s = 100", store="shared_mb_s = 500")
    assert run(work, enough, at).seconds == pytest.approx(1)


@pytest.mark.parametrize("reading", [0, 50])
def test_disks_bound_a_file_on_many_servers_whatever_is_known_of_reading(reading: int) -> None:
    node = f"disk_read_mb_s = {reading}\ndisk_write_mb_s = 0.25\nwrite_buffer_gb = 0"
    work = workload([Task("w", [("write", "x")])], {"x": 100 * MB})
    found = run(work, plain(20, node=node, store="chunk_mb = 1"))
    assert found.seconds == pytest.approx(100 / (20 * 0.25))


def test_the_metadata_service_has_one_queue() -> None:
    tasks = [Task(f"t{i}", [("read", f"x{i}")]) for i in range(10)]
    work = workload(tasks, {f"x{i}": 0 for i in range(10)})
    found = run(work, plain(10, store="open_ms = 100"))
    assert found.seconds == pytest.approx(1.0)
    two = run(work, plain(10, store="open_ms = 100\nmetadata_servers = 2"))
    assert two.seconds == pytest.approx(0.5)


def test_small_files_are_requests() -> None:
    store = "small_kb = 64\nrequest_ms = 10\nlatency_ms = 5"
    work = workload([Task("a", [("read", "x")])], {"x": 10_000})
    found = run(work, plain(store=store), planned(placed(work, f0=0), 1))
    assert found.seconds == pytest.approx(0.010 + 0.005 + 0.001)
    assert found.network_bytes == 10_000


def test_a_stream_has_its_own_limit() -> None:
    work = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    found = run(work, plain(store="stream_mb_s = 4"), planned(placed(work, f0=0), 1))
    assert found.seconds == pytest.approx(25)


def test_stripes_use_several_links() -> None:
    work = workload([Task("w", [("write", "x")])], {"x": 100 * MB})
    rest = "[servers]\ncount = 4\nlink_mbit = 20\nlink_efficiency = 1"
    store = 'servers = "apart"\nlaw = "stripe"\nstripe_width = 4\nchunk_mb = 25\nwindow = 4'
    found = run(work, plain(1, store=store, rest=rest))
    assert found.seconds == pytest.approx(10)  # four readers at 2.5 MB/s
    one = run(work, plain(1, store=store.replace("width = 4", "width = 1"), rest=rest))
    assert one.seconds == pytest.approx(40)


def test_sites_share_a_link() -> None:
    sites = "\n".join(
        f'[[sites]]\nname = "{name}"\nup_mbit = 8\ndown_mbit = 800' for name in ("a", "b")
    )
    text = plain(2, node='site = "a"', rest=sites)
    far = text.nodes[0].words
    node_b = type(text.nodes[0])({**text.nodes[0].numbers}, {**far, "site": "b"})
    one = text.nodes[0].with_number("count", 1)
    cluster = replace(text, nodes=(one, node_b.with_number("count", 1)))
    work = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    found = run(work, cluster, planned(placed(work, f0=0), 1))
    assert found.seconds == pytest.approx(100)


def test_cores_are_a_queue() -> None:
    work = workload([Task(str(i), [("compute", 1)]) for i in range(10)], {})
    found = run(work, plain(1, 3))
    assert found.seconds == pytest.approx(4)
    assert found.hosts[0, 3] == pytest.approx(10)  # core seconds


def test_ranges_of_a_file_come_from_their_chunks() -> None:
    store = "chunk_mb = 50"
    tasks = [Task("w", [("write", "x")]), Task("a", [("read", ("x", 0, 50 * MB))])]
    tasks.append(Task("b", [("read", ("x", 50 * MB, 50 * MB))]))
    work = workload(tasks, {"x": 100 * MB})
    found = run(work, plain(2, 1, store=store), on(0, 0, 1))
    home = {round(found.hosts[i, 0] / MB) for i in (0, 1)}
    assert found.network_bytes in (50 * MB, 150 * MB) and home <= {0, 50, 100}


def test_bytes_are_conserved() -> None:
    random = np.random.default_rng(5)
    sizes = {f"x{i}": int(random.integers(1, 30)) * MB for i in range(60)}
    tasks = [
        Task(
            f"t{i}",
            [*(("read", f"x{k}") for k in random.integers(0, i + 1, 2)), ("write", f"x{i + 1}")],
        )
        for i in range(59)
    ]
    work = workload(tasks, sizes)
    for store in ("", "chunk_mb = 4", "chunk_mb = 1\nwindow = 8", 'law = "random"\ncopies = 3'):
        found = run(work, plain(40, 2, store=store))
        assert found.hosts[:, 0].sum() == pytest.approx(found.network_bytes)
        assert found.hosts[:, 1].sum() == pytest.approx(found.network_bytes)
        assert found.tasks is not None
        spent = found.tasks[:, 5:].sum(axis=1)
        assert spent == pytest.approx(found.tasks[:, 4] - found.tasks[:, 2], abs=1e-6)


def test_all_but_a_share_of_a_striped_file_is_remote() -> None:
    work = workload([Task("w", [("write", "x")])], {"x": 400 * MB})
    found = run(work, plain(40, store="chunk_mb = 1"))
    assert found.network_bytes == pytest.approx(400 * MB * 39 / 40)
    assert found.seconds == pytest.approx(39)


def test_the_same_seed_gives_the_same_answer() -> None:
    tasks = [Task(f"t{i}", [("read", f"x{i % 7}"), ("write", f"y{i}")]) for i in range(100)]
    sizes = {f"x{i}": (i + 1) * MB for i in range(7)} | {f"y{i}": i * MB for i in range(100)}
    work = workload(tasks, sizes)
    one, two, other = (run(work, plain(5, 2), seed=seed) for seed in (3, 3, 4))
    assert one.tasks is not None and two.tasks is not None
    assert one.seconds == two.seconds and np.array_equal(one.tasks, two.tasks)
    assert one.seconds != other.seconds


def test_a_faster_link_is_never_slower_on_chains() -> None:
    tasks, sizes = [], {"c0": MB}
    for i in range(12):
        tasks.append(Task(f"t{i}", [("read", f"c{i}"), ("compute", 0.5), ("write", f"c{i + 1}")]))
        sizes[f"c{i + 1}"] = (i + 1) * 3 * MB
    work = workload(tasks, sizes)
    times = [
        run(work, plain(4, node=f"link_mbit = {rate}")).seconds for rate in (8, 40, 80, 400, 4000)
    ]
    assert times == sorted(times, reverse=True)


def test_tasks_that_wait_for_each_other_are_an_error() -> None:
    from tracehint.errors import InputError

    work = workload(
        [Task("a", [("read", "x"), ("write", "y")]), Task("b", [("read", "y"), ("write", "x")])],
        {"x": MB, "y": MB},
    )
    with pytest.raises(InputError, match="2 of 2 tasks wait for each other"):
        run(work, plain())


def test_most_input_bytes_runs_where_the_input_is() -> None:
    tasks = [Task(f"t{i}", [("read", f"x{i}")]) for i in range(4)]
    work = workload(tasks, {f"x{i}": 10 * MB for i in range(4)})
    place = placed(work, f0=3, f1=2, f2=1, f3=0)
    place.scheduler = "most-input-bytes"
    found = run(work, plain(4), place)
    assert found.tasks is not None
    assert found.tasks[:, 0].tolist() == [3, 2, 1, 0] and found.network_bytes == 0


def test_an_idle_node_steals_unless_told_not_to() -> None:
    tasks = [Task(f"t{i}", [("read", f"x{i}"), ("compute", 10)]) for i in range(2)]
    work = workload(tasks, {"x0": MB, "x1": MB})
    place = placed(work, f0=0, f1=0)
    place.scheduler = "most-input-bytes"
    stolen = run(work, plain(2, rest="[scheduler]\nsteal = true"), place)
    assert stolen.seconds == pytest.approx(10.1)
    assert run(work, plain(2), place).seconds == pytest.approx(20)


def test_of_a_plan_only_the_tasks_without_a_node_are_stolen() -> None:
    """Two tasks are bound to node 0; the others only prefer it because it stores their input."""
    tasks = [Task(f"t{i}", [("read", f"x{i}"), ("compute", 10)]) for i in range(4)]
    work = workload(tasks, {f"x{i}": MB for i in range(4)})
    place = placed(work, f0=0, f1=0, f2=0, f3=0)
    place.plan = np.array([0, 0, -1, -1], np.int32)
    place.scheduler, place.steal = "plan", "unplanned"
    found = run(work, plain(2), place)
    assert found.tasks is not None
    assert found.tasks[:, 0].tolist() == [0, 0, 1, 1]
    place.steal = "nothing"
    assert run(work, plain(2), place).seconds == pytest.approx(40)


def joined(*steps: list[tuple[str, object]], cache: bool = False, ahead: float = 0) -> SimulatedRun:
    """Simulate tasks on node 1, all starting at once, that read data stored on node 0."""
    work = workload([Task(str(i), s) for i, s in enumerate(steps)], {"x": 100 * MB})
    store = f"client_cache = {str(cache).lower()}\nread_ahead_mb = {ahead}"
    return run(work, plain(2, 4, store=store), planned(placed(work, f0=0), *(1 for _ in steps)))


def test_readers_of_one_file_on_one_node_share_what_is_still_to_come() -> None:
    found = joined([("read", "x")], [("read", "x")], [("read", "x")])
    assert found.seconds == pytest.approx(10) and found.network_bytes == 100 * MB
    # the second starts after 40 MB and fetches these again, both at 5 MB/s until 12 s;
    # then the last 20 MB of the first arrive at 10 MB/s for both
    late = joined([("read", "x")], [("compute", 4), ("read", "x")])
    assert late.network_bytes == 140 * MB
    assert late.tasks is not None
    assert late.tasks[:, 4] == pytest.approx([14, 14])


def test_a_node_that_keeps_what_it_reads_fetches_nothing_twice() -> None:
    found = joined([("read", "x")], [("compute", 4), ("read", "x")], cache=True)
    assert found.network_bytes == 100 * MB
    assert found.tasks is not None
    assert found.tasks[:, 4] == pytest.approx([10, 10]), "the second waits for the first"


@pytest.mark.parametrize(("keeps", "moved"), [("true", 100), ("false", 200)])
def test_a_node_reads_from_its_memory_what_it_wrote_unless_the_store_forgets(
    keeps: str, moved: int
) -> None:
    steps = [("write", "x"), ("read", "x"), ("read", "x")]
    work = workload([Task(str(i), [step]) for i, step in enumerate(steps)], {"x": 100 * MB})
    store = f"client_cache = true\nclient_cache_writes = {keeps}"
    found = run(work, plain(2, store=store), planned(placed(work, f0=0), 1, 1, 1))
    assert found.network_bytes == moved * MB, "what was read stays in any case"


@pytest.mark.parametrize(("memory", "moved"), [(0.03, 140), (0.05, 100)])
def test_a_node_keeps_of_a_read_what_its_memory_holds(memory: float, moved: int) -> None:
    work = workload(
        [Task("a", [("read", "x")]), Task("b", [("compute", 4), ("read", "x")])], {"x": 100 * MB}
    )
    cluster = plain(2, 4, node=f"memory_gb = {memory}", store="client_cache = true")
    found = run(work, cluster, planned(placed(work, f0=0), 1, 1))
    assert found.network_bytes == moved * MB, "40 MB are there when the second begins"


@pytest.mark.parametrize(
    ("late", "cache", "ahead", "moved"),
    [
        (0, False, 10, 110),  # its client's read-ahead is transferred twice
        (4, False, 10, 150),  # as are the bytes transferred before it started
        (4, True, 10, 110),  # the node caches the earlier bytes
        (9.5, True, 10, 105),  # no more than the remaining bytes
        (0, False, 90, 133),  # a third of a short file
        (9, False, 20, 200),  # nothing remains to share: an independent transfer
    ],
)
def test_what_a_client_reads_ahead_comes_for_each_reader(
    late: float, cache: bool, ahead: float, moved: int
) -> None:
    second = [("compute", late)] if late else []
    found = joined([("read", "x")], [*second, ("read", "x")], cache=cache, ahead=ahead)
    assert found.network_bytes == pytest.approx(moved * MB, rel=0.01)


def test_a_call_of_the_metadata_service_has_bytes_of_its_own() -> None:
    work = workload([Task("a", [("read", "x"), ("write", "y")])], {"x": 0, "y": 0})
    found = run(work, plain(2, store="call_bytes = 250"), on(0))
    assert found.network_bytes == 250 * found.metadata_operations == 750


def test_a_part_of_a_file_joins_who_reads_all_of_it() -> None:
    # 50 MB have arrived at 5 s; of the part from 20 to 60 MB, 30 are fetched and the rest is shared
    part = ("read", ("x", 20 * MB, 40 * MB))
    found = joined([("read", "x")], [("compute", 5), part])
    assert found.network_bytes == 130 * MB
    # a reader that needs more than the earlier one does not join it
    apart = joined([part], [("read", "x")])
    assert apart.network_bytes == 140 * MB


def test_a_reader_that_goes_on_has_left_those_that_joined_it() -> None:
    steps = [("read", "x"), ("compute", 5), ("read", "x")]
    found = joined(steps, [("read", "x")])
    assert found.tasks is not None
    assert found.tasks[:, 4] == pytest.approx([25, 10])


@pytest.mark.parametrize(("shared", "moved"), [(0.0, 0), (0.25, 25)])
def test_a_copy_on_the_own_node_may_not_serve_all_of_a_read(shared: float, moved: int) -> None:
    work = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    place = planned(placed(work, f0=0), 0)
    place.copies = np.array([2], np.int32)
    found = run(work, plain(2, store=f"copies_shared = {shared}"), place)
    assert found.network_bytes == moved * MB
    many = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    striped = "law = 'stripe'\nstripe_width = 4\nchunk_mb = 1\ncopies = 4"
    pooled = run(many, plain(4, store=f"{striped}\ncopies_shared = {shared}"), on(0))
    assert pooled.network_bytes == pytest.approx(moved * MB)


@pytest.mark.parametrize(("first", "moved"), [("false", 0), ("true", 1)])
def test_readers_may_take_the_first_copy_whatever_their_node_holds(first: str, moved: int) -> None:
    store = f"small_kb = 1\ncopies_shared = 0\nfirst_copy_only = {first}"
    for size in (100 * MB, 1000):  # a transfer and a request
        work = workload([Task("a", [("read", "x")])], {"x": size})
        place = planned(placed(work, f0=0), 1)
        place.copies = np.array([2], np.int32)
        assert run(work, plain(2, store=store), place).network_bytes == moved * size
    many = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    striped = f"{store}\nlaw = 'stripe'\nstripe_width = 4\nchunk_mb = 1\ncopies = 4"
    pooled = run(many, plain(4, store=striped), on(0))
    assert pooled.network_bytes == pytest.approx(moved * 75 * MB)


@pytest.mark.parametrize(("node", "ends"), [(1, 3.0), (2, 2.0)])
def test_calls_and_small_requests_wait_behind_the_bytes_of_a_full_link(
    node: int, ends: float
) -> None:
    tasks = [Task("a", [("read", "x")]), Task("b", [("compute", 2), ("read", "y")])]
    work = workload(tasks, {"x": 100 * MB, "y": 100})
    cluster = plain(3, 2, store="small_kb = 1\nbusy_ms = 500")
    found = run(work, cluster, planned(placed(work, f0=0, f1=0), 1, node))
    assert found.tasks is not None
    assert found.tasks[1, 4] == pytest.approx(ends, abs=0.001)


def test_the_first_bytes_of_a_read_come_from_any_copy() -> None:
    work = workload([Task("a", [("read", "x")])], {"x": 100 * MB})
    place = planned(placed(work, f0=0), 0)
    place.copies = np.array([4], np.int32)
    store = "copies_shared = 0.25\ncopies_first_mb = 20"
    found = run(work, plain(4, store=store), place)
    assert found.network_bytes == pytest.approx((0.75 * 20 + 0.25 * 80) * MB, rel=0.01)
    small = workload([Task(str(i), [("read", "x")]) for i in range(400)], {"x": 1000})
    place = planned(placed(small, f0=0), *(0 for _ in range(400)))
    place.copies = np.array([4], np.int32)
    found = run(small, plain(4, store="small_kb = 1\ncopies_shared = 0.25"), place)
    assert found.network_bytes == pytest.approx(0.25 * 400 * 1000, rel=0.2)


def test_an_empty_file_takes_no_turn() -> None:
    names = ["e0", "x0", "e1", "x1"]
    tasks = [Task("a", [("read", n) for n in names])]
    sizes = {"e0": 0, "x0": 10 * MB, "e1": 0, "x1": 10 * MB}
    work = workload(tasks, sizes)
    # x0 and x1 are on the two nodes in turn: one of them is local, whatever the first node
    for seed in range(4):
        assert run(work, plain(2), on(0), seed).network_bytes == 10 * MB


def test_client_and_network_take_their_time_once_per_file() -> None:
    work = workload([Task("a", [("read", "x"), ("write", "y")])], {"x": 100, "y": 100})
    store = "small_kb = 1\nread_wait_ms = 200\nwrite_wait_ms = 300"
    found = run(work, plain(1, store=store))
    assert found.seconds == pytest.approx(0.5)
    alone = [Task(str(i), [("read", "x")]) for i in range(3)]
    together = run(workload(alone, {"x": 100}), plain(1, 3, store=store))
    assert together.seconds == pytest.approx(0.2), "nobody waits for the others"
