"""Rules of docs/reference/flow.md that no other test names."""

from __future__ import annotations

import pytest

from tests.support.flow_cut import Case


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
