"""Edges, versions and roles: each statement of docs/reference/flow.md on a small run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.flow_cut import Case


def both(case: Case, **options: Any) -> Any:
    """Return the flow by the short algorithm; check that the general one gives the same."""
    short, long = case.flow(**options), case.flow(general=True, **options)
    assert short.edges == long.edges
    assert short.roles == long.roles
    for name in ("producers", "consumers"):
        assert getattr(short, name) == getattr(long, name), name
    return short


@pytest.mark.rule("F11")
def test_an_edge_needs_one_byte_of_another_task(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 99, 100, at=2)
    case.run.read(c, f, 10, 40, at=2)
    case.run.read(c, f, 30, 60, at=3)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 1, ("a", "f", 0, "c"): 50}
    assert flow.consumers["f", 0]["c"]["bytes"] == 60  # all bytes read
    assert flow.consumers["f", 0]["c"]["unique_bytes"] == 50
    assert flow.consumers["f", 0]["c"]["ranges"] == [[10, 60]]
    assert flow.consumers["f", 0]["b"]["cover"] == 0.01
    assert flow.roles == {("f", 0): "intermediate"}


@pytest.mark.rule("F12")
def test_reading_back_is_no_edge(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(a, f, 0, 100, at=2)
    case.run.write(b, f, 100, 200, at=3)
    case.run.read(b, f, 100, 200, at=4)
    flow = both(case)
    assert flow.edges == {}
    assert flow.consumers == {}
    assert set(flow.producers["f", 0]) == {"a", "b"}


@pytest.mark.rule("F14")
def test_last_writer_wins_and_the_overwritten_is_superseded(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.write(b, f, 0, 100, at=2)
    case.run.read(c, f, 0, 100, at=3)
    flow = both(case)
    assert flow.edges == {("b", "f", 0, "c"): 100}
    assert flow.producers["f", 0]["a"]["superseded"]
    assert flow.producers["f", 0]["a"]["owned_bytes"] == 0
    assert not flow.producers["f", 0]["b"]["superseded"]


@pytest.mark.rule("F5", "F21")
def test_partial_overwrite_then_partial_reads(case: Case) -> None:
    a, b, c, d = case.chain("a", "b", "c", "d")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.write(b, f, 40, 60, at=2)
    case.run.read(c, f, 0, 50, at=3)
    case.run.read(d, f, 45, 55, at=3)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "c"): 40, ("b", "f", 0, "c"): 10, ("b", "f", 0, "d"): 10}
    assert flow.producers["f", 0]["a"]["owned_bytes"] == 80
    assert flow.producers["f", 0]["a"]["unique_bytes"] == 100


@pytest.mark.rule("F6")
def test_append_loop_chains_versions(case: Case) -> None:
    """a appends, b reads, a appends, b reads ...: new versions instead of a cycle from b to a."""
    a, b = case.chain("a", "b")
    f = case.run.file("/data/log", existed=False)
    for i in range(5):
        case.run.write(a, f, 10 * i, 10 * i + 10, at=2 * i)
        case.run.read(b, f, 0, 10 * i + 10, at=2 * i + 1)
    flow = both(case)
    assert flow.edges == {("a", "log", v, "b"): 10 * v + 10 for v in range(5)}
    assert [flow.file("log", v)["size_bytes"] for v in range(5)] == [10, 20, 30, 40, 50]
    later = flow.producers["log", 3]["a"]
    assert (later["bytes"], later["owned_bytes"], later["ranges"]) == (10, 40, [[30, 40]])


@pytest.mark.rule("F5")
def test_append_by_readers_keeps_the_owners_of_old_bytes(case: Case) -> None:
    """Each task reads the log and appends: one version each, read from all earlier writers."""
    tasks = case.chain("a", "b", "c", "d")
    f = case.run.file("/data/log", existed=False)
    for i, task in enumerate(tasks):
        if i:
            case.run.read(task, f, 0, 10 * i, at=2 * i)
        case.run.write(task, f, 10 * i, 10 * i + 10, at=2 * i + 1)
    flow = both(case)
    assert flow.edges == {(p, "log", v, c): 10 for v, c in enumerate("bcd") for p in "abc"[: v + 1]}
    carried = flow.producers["log", 2]
    assert {n: (r["bytes"], r["owned_bytes"], r["how"]) for n, r in carried.items()} == {
        "a": (0, 10, ["carried"]),
        "b": (0, 10, ["carried"]),
        "c": (10, 10, ["write"]),
    }
    assert carried["a"]["first_s"] is None
    assert flow.roles["log", 3] == "output"


@pytest.mark.rule("F6")
def test_in_place_updates_by_successive_tasks_chain(case: Case) -> None:
    tasks = case.chain("a", "b", "c", "d")
    f = case.run.file("/data/f", existed=False)
    case.run.write(tasks[0], f, 0, 100, at=0)
    for i, task in enumerate(tasks[1:], 1):  # read and rewritten block by block
        for block in range(4):
            case.run.read(task, f, 25 * block, 25 * block + 25, at=i + block / 10)
            case.run.write(task, f, 25 * block, 25 * block + 25, at=i + block / 10 + 0.05)
    flow = both(case)
    assert flow.edges == {("abcd"[v], "f", v, "bcd"[v]): 100 for v in range(3)}
    assert not any(f["concurrent"] for f in flow.files.values())


@pytest.mark.rule("F15")
def test_read_modify_write_by_long_runs(case: Case) -> None:
    """The recorder merges the reads into one run and the writes into another, at the same time."""
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 0, 100, at=2, until=3)
    case.run.write(b, f, 0, 100, at=2.01, until=3.01)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 100}
    assert set(flow.producers["f", 1]) == {"b"}
    assert not flow.producers["f", 0]["a"]["superseded"]


@pytest.mark.rule("F10")
def test_two_alternating_tasks_are_concurrently_shared(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/db", existed=False)
    g = case.run.file("/data/result", existed=False)
    for i in range(6):
        task = (a, b)[i % 2]
        if i:
            case.run.read(task, f, 0, 100, at=i)
        case.run.write(task, f, 0, 100, at=i + 0.5)
    case.run.write(b, g, 0, 10, at=8)
    case.run.read(c, g, 0, 10, at=9)
    flow = both(case)
    assert flow.edges == {
        ("a", "db", 0, "b"): 100,
        ("b", "db", 0, "a"): 100,
        ("b", "result", 0, "c"): 10,
    }
    assert flow.file("db")["concurrent"] and not flow.file("result")["concurrent"]
    assert flow.roles["db", 0] == "intermediate"


@pytest.mark.rule("F10")
def test_too_many_versions_are_one_concurrently_shared_entry(case: Case) -> None:
    a, b = case.chain("a", "b")
    f, g = (case.run.file(f"/data/{n}", existed=False) for n in "fg")
    for file, rounds in ((f, 70), (g, 64)):
        for i in range(rounds):
            case.run.write(a, file, 10 * i, 10 * i + 10, at=2 * i)
            case.run.read(b, file, 0, 10 * i + 10, at=2 * i + 1)
    flow = both(case)
    assert flow.file("f")["concurrent"] and flow.file("f")["size_bytes"] == 700
    assert flow.edges["a", "f", 0, "b"] == 700
    assert [v for p, v in flow.roles if p == "f"] == [0]
    assert [v for p, v in flow.roles if p == "g"] == list(range(64))


@pytest.mark.rule("F7")
def test_truncation_by_another_task_begins_a_version(case: Case) -> None:
    """A killed attempt and its retry: the killed one is superseded."""
    first = case.task("job", exit_status=137)
    second = case.task("again", attempt=2)
    c = case.task("c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(first, f, 0, 60, at=1)
    case.run.write(second, f, 0, 100, at=2, truncated=True)
    case.run.read(c, f, 0, 100, at=3)
    flow = both(case)
    assert flow.edges == {("again", "f", 1, "c"): 100}
    assert flow.producers["f", 0]["job"]["superseded"]
    assert flow.roles == {("f", 0): "scratch", ("f", 1): "intermediate"}


@pytest.mark.rule("F7")
def test_truncation_by_the_only_writer_that_nobody_read_is_no_version(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 60, at=1)
    case.run.write(a, f, 0, 20, at=2, truncated=True)
    case.run.read(b, f, 0, 20, at=3)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 20}
    assert flow.file("f")["size_bytes"] == 20
    assert not flow.producers["f", 0]["a"]["superseded"]


@pytest.mark.rule("F7")
def test_truncation_after_a_read_begins_a_version(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 60, at=1)
    case.run.read(b, f, 0, 60, at=2)
    case.run.truncate(a, f, 30, at=3)
    case.run.read(b, f, 0, 30, at=4)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 60, ("a", "f", 1, "b"): 30}
    assert flow.file("f", 1)["size_bytes"] == 30
    assert flow.producers["f", 1]["a"]["how"] == ["carried"]


@pytest.mark.parametrize("size", [60, 200])
@pytest.mark.rule("F9")
def test_truncation_that_removes_nothing_is_no_version(case: Case, size: int) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 60, at=1)
    case.run.read(b, f, 0, 60, at=2)
    case.run.truncate(c, f, size, at=3)
    case.run.read(c, f, 0, size, at=4)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 60, ("a", "f", 0, "c"): 60}
    assert flow.file("f")["size_bytes"] == size


@pytest.mark.rule("F9")
def test_truncation_of_an_empty_file_is_no_version(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.truncate(a, f, 0, at=0)
    case.run.truncate(b, f, 0, at=1)
    case.run.write(b, f, 0, 60, at=2)
    case.run.read(c, f, 0, 60, at=3)
    assert both(case).edges == {("b", "f", 0, "c"): 60}


@pytest.mark.rule("F9")
def test_old_content_is_a_version_only_if_read(case: Case) -> None:
    """A rerun in a directory that already has results begins at version 0."""
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=True, size=80)
    g = case.run.file("/data/g", existed=True, size=80)
    case.run.write(a, f, 0, 80, at=1, truncated=True)
    case.run.read(b, f, 0, 80, at=2)
    case.run.read(b, g, 0, 60, at=0)
    case.run.write(a, g, 0, 80, at=1, truncated=True)
    case.run.read(b, g, 0, 80, at=2)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 80, ("a", "g", 1, "b"): 80}
    assert flow.roles == {("f", 0): "intermediate", ("g", 0): "input", ("g", 1): "intermediate"}


def test_in_place_update_of_an_input(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=True, size=100)
    case.run.read(a, f, 0, 100, at=1)
    case.run.write(a, f, 10, 20, at=2)
    case.run.read(b, f, 0, 100, at=3)
    flow = both(case)
    assert flow.edges == {("a", "f", 1, "b"): 10}
    assert flow.roles == {("f", 0): "input", ("f", 1): "intermediate"}
    assert flow.consumers["f", 1]["b"]["unique_bytes"] == 100


@pytest.mark.rule("F13")
def test_sparse_files_have_no_writer_in_their_holes(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 10, at=1)
    case.run.write(a, f, 90, 100, at=1)
    case.run.read(b, f, 10, 90, at=2)
    case.run.read(c, f, 0, 100, at=2)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "c"): 20}
    assert flow.consumers["f", 0]["c"]["unique_bytes"] == 100
    assert flow.producers["f", 0]["a"]["ranges"] == [[0, 10], [90, 100]]


@pytest.mark.rule("F13")
def test_punched_holes_have_no_writer(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.access("deallocate", a, f, 20, 60, at=2, how="fallocate")
    case.run.read(b, f, 0, 100, at=3)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 60}
    assert flow.file("f")["size_bytes"] == 100


@pytest.mark.rule("F15")
def test_overlapping_runs_are_uncertain_and_the_write_comes_first(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1, until=3)
    case.run.read(b, f, 0, 100, at=2, until=4)
    case.run.read(c, f, 0, 100, at=3, until=4)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 100, ("a", "f", 0, "c"): 100}
    order = {k[3]: r["order"] for k, r in flow.edge_rows.items()}
    assert order == {"b": "uncertain", "c": "certain"}


@pytest.mark.rule("F15")
def test_an_overlap_in_time_without_common_bytes_is_certain(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 50, at=1)
    case.run.write(a, f, 50, 100, at=2, until=4)
    case.run.read(b, f, 0, 50, at=3)
    flow = both(case)
    assert [r["order"] for r in flow.edge_rows.values()] == ["certain"]


def test_gather_of_disjoint_writers(case: Case) -> None:
    workers = case.chain(*(f"w{i}" for i in range(8)))
    c = case.task("c")
    f = case.run.file("/data/f", existed=False)
    for i, w in enumerate(workers):
        case.run.write(w, f, 100 * i, 100 * i + 100, at=1, until=2)
    case.run.read(c, f, 0, 800, at=3)
    flow = both(case)
    assert flow.edges == {(f"w{i}", "f", 0, "c"): 100 for i in range(8)}
    assert flow.producers["f", 0]["w3"]["ranges"] == [[300, 400]]


def test_strided_ranges(case: Case) -> None:
    """Column-wise writers, row-wise readers; adjacent pieces are one range."""
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 10, at=1, stride=20, count=5)
    case.run.write(b, f, 10, 20, at=1, stride=20, count=5)
    case.run.read(c, f, 5, 15, at=2, stride=20, count=3)
    case.run.read(c, f, 60, 65, at=3, stride=5, count=8)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "c"): 35, ("b", "f", 0, "c"): 35}
    assert flow.producers["f", 0]["a"]["ranges"] == [[20 * i, 20 * i + 10] for i in range(5)]
    assert flow.consumers["f", 0]["c"]["ranges"] == [[5, 15], [25, 35], [45, 55], [60, 100]]
    assert flow.consumers["f", 0]["c"]["bytes"] == 70


def test_backward_strides(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 90, 95, at=2, stride=-20, count=4)
    flow = both(case)
    assert flow.consumers["f", 0]["b"]["ranges"] == [[30, 35], [50, 55], [70, 75], [90, 95]]


@pytest.mark.rule("F24")
def test_huge_strided_runs_become_one_inexact_range(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 1 << 22, at=1)
    case.run.read(b, f, 0, 1, at=2, stride=16, count=1 << 18)
    flow = both(case)
    assert flow.consumers["f", 0]["b"]["ranges"] == [[0, (1 << 22) - 15]]
    assert flow.file("f")["exact_share"] < 1
    assert any("65536" in n for n in flow.flow.notes)


@pytest.mark.rule("P56", "F22")
def test_mapped_ranges_end_at_the_size(case: Case) -> None:
    """Mappings are recorded in whole pages."""
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False, size=5000)
    case.run.truncate(a, f, 5000, at=0.5)
    case.run.write(a, f, 0, 8192, at=1, how="mmap", exact=False)
    case.run.read(b, f, 4096, 8192, at=2, how="mmap", exact=False)
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 904}
    assert flow.file("f")["size_bytes"] == 5000
    assert flow.file("f")["exact_share"] == 0
    assert flow.consumers["f", 0]["b"]["how"] == ["mmap"]


@pytest.mark.rule("F21")
def test_exact_share(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False, size=100)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 0, 100, at=2, exact=False)
    assert both(case).file("f")["exact_share"] == 0.5


@pytest.mark.parametrize(
    ("length", "size", "peek"),
    [
        (100, 10_000, True),
        (500, 10_000, False),
        (499, 10_000, True),
        (64 << 10, 1 << 30, False),
        ((64 << 10) - 1, 1 << 30, True),
    ],
)
@pytest.mark.rule("F27")
def test_peeks(case: Case, length: int, size: int, peek: bool) -> None:
    """Less than 5 % of the file and less than 64 KiB."""
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, size, at=1)
    case.run.read(b, f, 0, length, at=2)
    assert both(case).consumers["f", 0]["b"]["peek"] is peek


@pytest.mark.rule("F28", "F29", "F30", "F31")
def test_roles(case: Case) -> None:
    a, b = case.chain("a", "b")
    files = {
        n: case.run.file(f"/data/{n}", existed=n == "in", size=10, deleted=n in ("own", "unread"))
        for n in ("in", "mid", "out", "own", "unread", "back")
    }
    case.run.read(a, files["in"], 0, 10, at=1)
    for name in ("mid", "out", "own", "unread", "back"):
        case.run.write(a, files[name], 0, 10, at=2)
    for name in ("own", "back"):
        case.run.read(a, files[name], 0, 10, at=3)
    case.run.read(b, files["mid"], 0, 10, at=4)
    assert {p: r for (p, _), r in both(case).roles.items()} == {
        "in": "input",
        "mid": "intermediate",
        "out": "output",
        "own": "scratch",
        "unread": "scratch",
        "back": "output",
    }


@pytest.mark.rule("F32")
def test_software_is_listed_without_users(case: Case) -> None:
    a = case.task("a")
    lib = case.run.file("/usr/lib/libm.so", existed=True, size=1000)
    case.run.read(a, lib, 0, 1000, at=1)
    case.run.file("/usr/lib/never-read.so", existed=True, size=1000)
    flow = both(case)
    assert flow.roles == {("/usr/lib/libm.so", 0): "software"}
    assert flow.consumers == {}


@pytest.mark.rule("F33")
def test_empty_files_have_a_maker(case: Case) -> None:
    """Flag files have a producer but no bytes, and therefore no edge."""
    a, b = case.chain("a", "b")
    f = case.run.file("/data/done", existed=False, size=0)
    case.run.access("read", a, f, 0, 0, at=1)
    case.run.rows["opens"][-1]["created"] = True
    case.run.access("read", b, f, 0, 0, at=2)
    flow = both(case)
    assert flow.edges == {}
    assert {n: r["bytes"] for n, r in flow.producers["done", 0].items()} == {"a": 0}
    assert flow.roles == {("done", 0): "output"}


def test_damaged_records_are_left_out_and_counted(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 0, 100, at=2)
    for change in (
        {"start": -5},
        {"length": -1},
        {"start": 1 << 62},
        {"count": 1 << 62, "stride": 1 << 62},
        {"count": 0},
        {"op": "explode"},
        {"stride": -1 << 62, "count": 3},
        {"length": 1 << 62},
        {"length": 1 << 50, "count": 1 << 50, "stride": 1 << 50},
    ):
        case.run.read(b, f, 0, 10, at=3)
        case.run.rows["extents"][-1].update(change)
    case.run.read(77_777, f, 0, 10, at=3)  # an unknown process
    case.run.rows["extents"].append(case.run.rows["extents"][0] | {"file": 99_999})
    flow = both(case)
    assert flow.edges == {("a", "f", 0, "b"): 100}
    assert "9 damaged access records left out" in flow.flow.notes


def test_sizes_beyond_all_data_count_as_unknown(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False, size=7 << 60)  # as by `truncate -s 7E`
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 0, 100, at=2)
    flow = both(case)
    assert flow.flow.files.column("size_bytes").to_pylist() == [100]
    assert "1 file of more than 8 PiB: its size counts as unknown" in flow.flow.notes


def test_nothing_at_all(case: Case) -> None:
    flow = both(case)
    assert flow.flow.files.num_rows == flow.flow.edges.num_rows == 0


@pytest.mark.rule("F10")
def test_cycle_through_two_files(case: Case) -> None:
    """Two tasks that feed each other through different files: both files are marked."""
    a, b, c = case.chain("a", "b", "c")
    f, g, h = (case.run.file(f"/data/{n}", existed=False) for n in "fgh")
    case.run.write(a, f, 0, 10, at=1)
    case.run.read(b, f, 0, 10, at=2)
    case.run.write(b, g, 0, 10, at=3)
    case.run.read(a, g, 0, 10, at=4)
    case.run.write(a, h, 0, 10, at=5)
    case.run.read(c, h, 0, 10, at=6)
    flow = both(case)
    assert {f["key"][0]: f["concurrent"] for f in flow.files.values()} == {
        "f": True,
        "g": True,
        "h": False,
    }


def test_partitions_give_the_same(case: Case) -> None:
    tasks = case.chain(*(f"t{i}" for i in range(6)))
    for n in range(40):
        f = case.run.file(f"/data/{n}", existed=False)
        for i, task in enumerate(tasks[:-1]):
            case.run.write(task, f, 10 * i, 10 * i + 10, at=i)
            case.run.read(tasks[(i + 1 + n) % 6], f, 0, 10 * i + 10, at=i + 0.5)
    whole, parts = case.flow(), case.flow(rows=7)
    for name in ("files", "producers", "consumers", "edges"):
        assert getattr(whole.flow, name).to_pylist() == getattr(parts.flow, name).to_pylist()


def test_a_file_of_too_many_ranges_is_followed_roughly(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every task rewrites the file in place to another length, and the engine reads all of it."""
    from tracehint.analyzer.dataflow import version_flow

    coarsen = version_flow.coarsen
    tasks = case.chain(*(f"t{i}" for i in range(100)))
    f = case.run.file("/data/f", existed=False, size=1000)
    for i, task in enumerate(tasks):
        case.run.write(task, f, 0, 100 + 7 * i, at=2 * i)
        case.run.read(case.engine, f, 0, 100 + 7 * i, at=2 * i + 1)
    case.run.read(tasks[0], f, 0, 300, at=900)
    exact = case.flow(general=True)
    monkeypatch.setattr(version_flow, "coarsen", lambda events, notes: coarsen(events, notes, 2000))
    rough = case.flow(general=True)
    assert set(exact.edges) == set(rough.edges) == {("t99", "f", 0, "t0")}
    assert exact.file("f")["exact_share"] == 1
    assert rough.file("f")["exact_share"] == 0
    assert any("roughly" in n for n in rough.flow.notes)


def test_a_large_run_with_a_known_answer() -> None:
    """1,100 tasks: 33 edges and 12 files per unit of 11 tasks, and 3 inputs of the whole run."""
    import numpy as np
    import pyarrow as pa

    from tests.support.flow_cut import ROOTS
    from tracehint.analyzer import roots
    from tracehint.analyzer.dataflow.build import build_flow
    from tracehint.analyzer.execution.local import LocalExtents
    from tracehint.analyzer.model import PROC_TASK, TASKS, Options, Segmentation
    from tracehint.datasets import synthetic
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle
    from tracehint.schemas.tables import TABLES

    units = 100
    ids = np.arange(1, 11 * units + 2)
    alike = {"name": "t", "type": "t", "command": "c", "attempt": 1, "source": "observed"}
    ran = {"start_s": 0.0, "end_s": 1.0, "exit_status": 0}
    tasks = [{"task": int(i), "engine": i == 1, **alike, **ran} for i in ids]
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    bundle = Bundle(Path("x"), Manifest(cwd="/data"), tables | synthetic.tables(units))
    cut = Segmentation(pa.Table.from_pylist(tasks, TASKS), pa.table([ids, ids], schema=PROC_TASK))
    flow = build_flow(bundle, cut, ROOTS, Options(), roots, LocalExtents(bundle.tables["extents"]))
    assert flow.edges.num_rows == 33 * units
    assert sorted(flow.files.column("role").value_counts().to_pylist(), key=str) == [
        {"values": "input", "counts": 3},
        {"values": "intermediate", "counts": 12 * units},
    ]
    producers = flow.producers.group_by("file").aggregate([("task", "count")])
    assert sum(n == 8 for n in producers.column("task_count").to_pylist()) == units  # grids
