"""Declared inputs and outputs: alone, and together with observed accesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.flow_cut import Case
from tracehint.analyzer.dataflow.declarations import _merge_paths, _normal
from tracehint.analyzer.path_rules import ODD


def declare(
    case: Case, task: int, ins: dict[str, int | None], outs: dict[str, int | None], **more: Any
) -> None:
    """Declare files of a task, with their sizes."""
    name = f"d{task}"
    case.declared.append((name, task))
    case.run.declared(name, **{"engine": "makeflow", **more})
    for direction, files in (("in", ins), ("out", outs)):
        for path, size in files.items():
            case.run.declared_file(name, direction, path.encode(), size)


def declared(case: Case, name: str) -> int:
    return case.task(name, process=False, source="declared")


@pytest.mark.rule("F20", "F25")
def test_declared_only_run(case: Case) -> None:
    a, b, c = (declared(case, n) for n in "abc")
    declare(case, a, {"in.dat": 50}, {"mid.dat": 100})
    declare(case, b, {"./mid.dat": None}, {"x/../out.dat": 10})
    declare(case, c, {"/data/mid.dat": 100}, {})
    flow = case.flow()
    assert flow.edges == {("a", "mid.dat", 0, "b"): 100, ("a", "mid.dat", 0, "c"): 100}
    assert {r["via"] for r in flow.edge_rows.values()} == {"declared"}
    assert flow.roles == {
        ("in.dat", 0): "input",
        ("mid.dat", 0): "intermediate",
        ("out.dat", 0): "output",
    }
    consumer = flow.consumers["mid.dat", 0]["b"]
    assert (consumer["ranges"], consumer["cover"], consumer["how"]) == (
        [[0, 100]],
        1.0,
        ["declared"],
    )
    assert flow.file("mid.dat")["exact_share"] == 0


def test_declared_but_not_done(case: Case) -> None:
    """b declares f and g, only its read of f is observed; a blind collector may have missed g."""
    case.run.manifest.blind_to = ["copy_file_range"]
    a, b = case.task("a", source="both"), case.task("b", source="both")
    f, g = (case.run.file(f"/data/{n}", existed=False) for n in "fg")
    for file in (f, g):
        case.run.write(a, file, 0, 100, at=1)
    case.run.read(b, f, 0, 40, at=2)
    declare(case, a, {}, {"f": None, "g": None})
    declare(case, b, {"f": None, "g": None, "never-there": None}, {})
    flow = case.flow()
    assert {k: (r["via"], r["bytes"]) for k, r in flow.edge_rows.items()} == {
        ("a", "f", 0, "b"): ("data", 40),
        ("a", "g", 0, "b"): ("declared", 100),
    }
    assert ("g", 0) not in flow.consumers
    assert flow.file("g")["exact_share"] == 1
    assert flow.roles == {("f", 0): "intermediate", ("g", 0): "intermediate"}


@pytest.mark.rule("F20")
def test_what_a_collector_that_sees_all_did_not_see_did_not_happen(case: Case) -> None:
    """b declares g and never reads it: no edge, and g is an output without readers."""
    a, b = case.task("a", source="both"), case.task("b", source="both")
    g = case.run.file("/data/g", existed=False)
    case.run.write(a, g, 0, 100, at=1)
    declare(case, a, {}, {"g": None})
    declare(case, b, {"g": None}, {})
    flow = case.flow()
    assert flow.edges == {}
    assert flow.roles == {("g", 0): "output"}


def test_observed_writer_declared_reader(case: Case) -> None:
    """The reader ran where nothing was recorded."""
    a, b = case.task("a", source="both"), declared(case, "b")
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    declare(case, a, {}, {"f": 100})
    declare(case, b, {"f": 100}, {})
    flow = case.flow()
    assert flow.edges == {("a", "f", 0, "b"): 100}
    assert set(flow.consumers["f", 0]) == {"b"}
    assert flow.file("f")["exact_share"] == 0.5
    assert flow.roles == {("f", 0): "intermediate"}


@pytest.mark.rule("F20")
def test_known_read_bytes_are_kept(case: Case) -> None:
    a, b = declared(case, "a"), declared(case, "b")
    declare(case, a, {}, {"f": 600, "g": 400})
    declare(case, b, {"f": 600, "g": 400}, {}, read_bytes=100)
    flow = case.flow()
    assert flow.consumers["f", 0]["b"]["bytes"] == 60
    assert flow.consumers["f", 0]["b"]["unique_bytes"] == 600


@pytest.mark.rule("F20")
def test_declared_parents_say_whose_version_is_read(case: Case) -> None:
    """b updates f in place: c, a child of b, reads b's version."""
    a, b, c = (declared(case, n) for n in "abc")
    declare(case, a, {}, {"f": 10})
    declare(case, b, {"f": 10}, {"f": 10}, parents=[f"d{a}"])
    declare(case, c, {"f": 10}, {}, parents=[f"d{b}"])
    flow = case.flow()
    assert set(flow.edges) == {("a", "f", 0, "b"), ("b", "f", 0, "c")}
    assert not flow.file("f")["concurrent"]


def test_declared_cycles_are_concurrently_shared(case: Case) -> None:
    a, b = declared(case, "a"), declared(case, "b")
    declare(case, a, {"f": 10}, {"f": 10})
    declare(case, b, {"f": 10}, {"f": 10})
    assert case.flow().file("f")["concurrent"]


def test_parts_of_one_declared_task_count_as_one(case: Case) -> None:
    """A recipe of two lines is observed as two tasks."""
    a, first, second = (case.task(n, source="both") for n in ("a", "first", "second"))
    f = case.run.file("/data/f", existed=False)
    case.run.write(a, f, 0, 100, at=1)
    case.run.read(second, f, 0, 100, at=2)
    declare(case, a, {}, {"f": 100})
    declare(case, first, {"f": 100}, {})
    case.declared.append((f"d{first}", second))
    assert case.flow().edges == {("a", "f", 0, "second"): 100}


def test_programs_that_are_declared_inputs_stay_software(case: Case) -> None:
    a, b = declared(case, "a"), declared(case, "b")
    declare(case, a, {"/usr/bin/sort": 100}, {"f": 1})
    declare(case, b, {"/usr/bin/sort": 100, "f": 1}, {})
    assert {p for p, _ in case.flow().roles} == {"f"}


def test_workdir_of_the_task(case: Case) -> None:
    a, b = declared(case, "a"), declared(case, "b")
    declare(case, a, {}, {"f": 1}, workdir=b"/data/w1")
    declare(case, b, {"../w1/f": 1}, {}, workdir=b"/data/w2")
    assert set(case.flow().edges) == {("a", "w1/f", 0, "b")}


@pytest.mark.parametrize(
    "names",
    [
        [b"/a", b"/b"],
        [b"/a", b"/b//c", b"/d"],
        [b"//a", b"/b", b"/a", b"/c/../b", b"/a/", b"/d"],
        [b"/c/./x", b"/b", b"/c//x", b"/e"],
    ],
)
def test_paths_of_one_shortest_form_are_one(names: list[bytes]) -> None:
    paths = pa.array(names, pa.binary())
    odd = pc.match_substring_regex(paths, ODD)
    rows = np.array([*range(len(names)), 0, len(names) - 1])
    number, distinct = _merge_paths(rows, paths, odd)
    known = _normal(paths, odd).dictionary_encode()
    assert distinct.to_pylist() == known.dictionary.to_pylist()
    assert number.tolist() == known.indices.take(pa.array(rows)).to_pylist()
