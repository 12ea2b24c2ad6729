"""Engines and their copies, retried tasks, and files known only from being opened."""

from __future__ import annotations

import pytest

from tests.support.flow_cut import Case


def copy(
    case: Case, source: int, target: int, size: int, at: float, how: str | None = None
) -> None:
    """Let the engine copy a whole file to another, piece by piece."""
    half = size // 2
    for k, (start, end) in enumerate(((0, half), (half, size))):
        case.run.read(case.engine, source, start, end, at=at + k / 10, how=how)
        case.run.write(case.engine, target, start, end, at=at + k / 10 + 0.05, how=how)


@pytest.mark.rule("F18")
def test_engines_neither_produce_nor_consume(case: Case) -> None:
    a, b = case.chain("a", "b")
    f, g, h = (case.run.file(f"/data/{n}", existed=False) for n in "fgh")
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(case.engine, f, 0, 100, at=2)  # a checksum
    case.run.write(a, f, 0, 100, at=3)  # no new version: engines are no readers
    case.run.write(case.engine, g, 0, 50, at=1)
    case.run.read(b, g, 0, 50, at=2)
    case.run.write(case.engine, h, 0, 50, at=1)
    flow = case.flow()
    assert flow.edges == {}
    assert flow.roles == {("f", 0): "output", ("g", 0): "input"}
    assert set(flow.consumers["g", 0]) == {"b"}


@pytest.mark.parametrize("how", [None, "copy_file_range", "sendfile"])
@pytest.mark.rule("F19")
def test_complete_copy_carries_identity(case: Case, how: str | None) -> None:
    a, b, c = case.chain("a", "b", "c")
    f, g = case.run.file("/data/f", existed=False), case.run.file("/data/stage/f", existed=False)
    case.run.write(a, f, 0, 60, at=1)
    case.run.write(b, f, 60, 100, at=2)
    copy(case, f, g, 100, 3, how)
    case.run.read(c, g, 40, 100, at=4)
    flow = case.flow()
    assert flow.edges == {("a", "stage/f", 0, "c"): 20, ("b", "stage/f", 0, "c"): 40}
    assert {r["via"] for r in flow.edge_rows.values()} == {"engine_copy"}
    assert flow.producers["stage/f", 0]["a"]["how"] == ["engine_copy"]
    assert flow.producers["stage/f", 0]["a"]["bytes"] == 0
    assert flow.producers["stage/f", 0]["a"]["ranges"] == [[0, 60]]
    assert not flow.producers["f", 0]["a"]["superseded"]
    assert flow.roles == {("f", 0): "output", ("stage/f", 0): "intermediate"}


@pytest.mark.rule("F19")
def test_copies_of_copies(case: Case) -> None:
    """Out of one sandbox and into the next."""
    a, b = case.chain("a", "b")
    files = [case.run.file(f"/data/{n}/f", existed=False) for n in ("w1", "store", "w2")]
    case.run.write(a, files[0], 0, 100, at=1)
    copy(case, files[0], files[1], 100, 2)
    copy(case, files[1], files[2], 100, 3)
    case.run.read(b, files[2], 0, 100, at=4)
    assert case.flow().edges == {("a", "w2/f", 0, "b"): 100}


def test_copy_of_an_input_is_an_input(case: Case) -> None:
    (a,) = case.chain("a")
    f = case.run.file("/data/f", existed=True, size=100)
    g = case.run.file("/data/stage/f", existed=False)
    copy(case, f, g, 100, 1)
    case.run.read(a, g, 0, 100, at=2)
    flow = case.flow()
    assert flow.edges == {}
    assert flow.roles == {("stage/f", 0): "input"}


@pytest.mark.rule("F19")
def test_parts_and_mixtures_carry_nothing(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    partial, larger = (case.run.file(f"/data/{n}", existed=False) for n in ("part", "more"))
    case.run.read(case.engine, f, 0, 99, at=2)
    case.run.write(case.engine, partial, 0, 99, at=2.1)
    case.run.read(b, partial, 0, 99, at=3)
    case.run.write(case.engine, larger, 0, 150, at=4)
    case.run.read(b, larger, 0, 150, at=5)
    assert case.flow().edges == {}


@pytest.mark.rule("F19")
def test_copies_of_equal_size_are_told_apart(case: Case) -> None:
    tasks = case.chain("a", "b", "c")
    sources = [case.run.file(f"/data/{n}.dat", existed=False) for n in "xyz"]
    targets = [case.run.file(f"/data/stage/{n}.dat", existed=False) for n in "xyz"]
    reader = case.task("r")
    for i in range(3):
        case.run.write(tasks[i], sources[i], 0, 100, at=1)
    for i in (2, 0, 1):
        copy(case, sources[i], targets[i], 100, 2 + i)
        case.run.read(reader, targets[i], 0, 100, at=9)
    assert case.flow().edges == {("abc"[i], f"stage/{'xyz'[i]}.dat", 0, "r"): 100 for i in range(3)}


@pytest.mark.rule("F19")
def test_a_copy_by_a_task_is_reading_and_writing(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f, g = (case.run.file(f"/data/{n}", existed=False) for n in "fg")
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(b, f, 0, 100, at=2, how="clone")
    case.run.write(b, g, 0, 100, at=2, how="clone")
    case.run.read(c, g, 0, 100, at=3)
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "b"): 100, ("b", "g", 0, "c"): 100}
    assert {r["via"] for r in flow.edge_rows.values()} == {"data"}


@pytest.mark.rule("F17")
def test_a_retried_reader_is_one_consumer(case: Case) -> None:
    a = case.task("a")
    one = case.task("job", exit_status=1)
    two = case.task("job", attempt=2)
    three = case.task("job", attempt=3, exit_status=1)
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    for i, task in enumerate((one, two, three)):
        case.run.read(task, f, 0, 100 - i, at=2 + i)
    case.tasks = [t | {"start_s": float(t["task"])} for t in case.tasks]
    flow = case.flow()
    assert flow.flow.consumers.column("task").to_pylist() == [two]
    assert flow.flow.edges.column("consumer").to_pylist() == [two]


@pytest.mark.rule("F17")
def test_equal_tasks_that_are_no_retries_are_two_consumers(case: Case) -> None:
    a, one, two = case.chain("a", "job", "job")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(one, f, 0, 100, at=2)
    case.run.read(two, f, 0, 100, at=2)
    assert case.flow().flow.consumers.num_rows == 2


def open_only(case: Case, task: int, file: int, flags: int, at: float, **more: object) -> None:
    case.run.access("read", task, file, 0, 0, at=at)
    case.run.rows["extents"].pop()
    case.run.rows["opens"][-1].update(
        {"flags": flags, "first_ns": None, "last_ns": None, "read_ops": 0, "write_ops": 0} | more
    )


@pytest.mark.rule("F23")
def test_light_traces_give_whole_files_as_upper_bounds(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    case.run.manifest.blind_to = ["bytes"]
    f = case.run.file("/data/f", existed=False, size=1000)
    unknown = case.run.file("/data/u", existed=False)
    empty = case.run.file("/data/e", existed=False, size=0)
    for file in (f, unknown, empty):
        open_only(case, a, file, 0o1101, 1)
        open_only(case, b, file, 0, 2)
    open_only(case, c, f, 2, 3)
    flow = case.flow()
    assert flow.edges[("a", "f", 0, "b")] == 1000
    assert flow.edges[("a", "u", 0, "b")] == 0  # it read something, an unknown amount
    assert not any(k[1] == "e" for k in flow.edges)
    assert flow.edges[("a", "f", 0, "c")] == 1000
    assert flow.file("f")["exact_share"] == 0
    assert flow.file("u")["size_bytes"] is None
    assert flow.consumers["u", 0]["b"]["cover"] is None
    assert flow.consumers["u", 0]["b"]["ranges"] == []
    assert any("upper bound" in n for n in flow.flow.notes)


def test_a_bare_open_is_no_access_where_bytes_are_seen(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False, size=100)
    case.run.write(a, f, 0, 100, at=1)
    open_only(case, b, f, 0, 2)
    assert case.flow().edges == {}


@pytest.mark.rule("F23")
def test_counters_without_ranges(case: Case) -> None:
    a, b = case.chain("a", "b")
    f = case.run.file("/data/f", existed=False, size=100)
    case.run.write(a, f, 0, 100, at=1)
    open_only(case, b, f, 0, 2, read_ops=3, read_bytes=30)
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "b"): 100}
    assert flow.consumers["f", 0]["b"]["bytes"] == 30
    assert flow.file("f")["exact_share"] == pytest.approx(100 / 130)


def test_truncation_known_from_the_open_alone(case: Case) -> None:
    a, b, c = case.chain("a", "b", "c")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.write(b, f, 0, 50, at=2)
    case.run.rows["opens"][-1]["truncated"] = True
    case.run.read(c, f, 0, 50, at=3)
    flow = case.flow()
    assert flow.edges == {("b", "f", 1, "c"): 50}
    assert flow.producers["f", 0]["a"]["superseded"]


@pytest.mark.rule("F26")
def test_upper_bounds_do_not_hide_other_writers(case: Case) -> None:
    """A gather in a light trace: each task wrote some part of the file, unknown which."""
    a, b, c, d = case.chain("a", "b", "c", "d")
    case.run.manifest.blind_to = ["bytes"]
    f = case.run.file("/data/f", existed=False, size=1000)
    for at, task in enumerate((a, b, c), 1):
        open_only(case, task, f, 1, at)
    open_only(case, d, f, 0, 9)
    flow = case.flow()
    assert set(flow.edges) == {(p, "f", 0, "d") for p in "abc"}
    assert not any(r["superseded"] for r in flow.producers["f", 0].values())


def test_a_truncation_in_a_light_trace_removes_all(case: Case) -> None:
    a, b, d = case.chain("a", "b", "d")
    case.run.manifest.blind_to = ["bytes"]
    f = case.run.file("/data/f", existed=False, size=1000)
    open_only(case, a, f, 1, 1)
    open_only(case, b, f, 0o1001, 2, truncated=True)
    open_only(case, d, f, 0, 9)
    flow = case.flow()
    assert set(flow.edges) == {("b", "f", 1, "d")}
    assert flow.producers["f", 0]["a"]["superseded"]


# -- Rules of docs/reference/flow.md that no other test covers


@pytest.mark.rule("F4")
def test_size_is_what_was_seen_last_and_at_least_what_was_written() -> None:
    case = Case()
    a, b, c = (case.task(name) for name in "abc")
    seen = case.run.file("/data/seen", existed=False, size=500)
    case.run.write(a, seen, 0, 300, at=1)
    short = case.run.file("/data/short", existed=False, size=100)
    case.run.write(a, short, 0, 300, at=1)
    old = case.run.file("/data/old", existed=True)
    case.run.read(b, old, 0, 10, at=2)
    two = case.run.file("/data/two", existed=False, size=80)
    case.run.write(a, two, 0, 50, at=1)
    case.run.read(b, two, 0, 50, at=2)
    case.run.write(c, two, 50, 80, at=3)
    flow = case.flow()
    assert flow.file("seen")["size_bytes"] == 500
    assert flow.file("short")["size_bytes"] == 300
    assert flow.file("old")["size_bytes"] is None
    assert [flow.file("two", v)["size_bytes"] for v in (0, 1)] == [50, 80]


@pytest.mark.rule("F33")
def test_what_its_writer_reads_back_is_a_result() -> None:
    case = Case()
    a = case.task("a")
    kept, gone = (
        case.run.file(f"/data/{n}", existed=False, deleted=n == "gone") for n in ("kept", "gone")
    )
    for file in (kept, gone):
        case.run.write(a, file, 0, 50, at=1)
        case.run.read(a, file, 0, 50, at=2)
    case.run.name(gone, "unlink", "/data/gone", at=3, proc=a)
    flow = case.flow()
    assert flow.file("kept")["role"] == "output"
    assert flow.file("gone")["role"] == "scratch"
