"""Files that engines assemble from the outputs of their jobs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.answers import ENGINES, answer
from tests.support.flow_cut import Case

Edges = dict[tuple[str, str, int, str], int]


def collected(
    sizes: list[int],
    *,
    order: tuple[int, ...] = (0, 1, 2),
    start: int = 0,
    slurp: bool = False,
    overlap: bool = False,
    less: int = 0,
) -> tuple[Case, Edges]:
    """Each job writes a file, the engine concatenates them, a reader reads the whole result."""
    case = Case()
    names = "abc"[: len(sizes)]
    files = []
    for name, size in zip(names, sizes, strict=True):
        job, file = case.task(name), case.run.file(f"/data/{name}", existed=False)
        case.run.write(job, file, 0, size, at=1)
        files.append(file)
    target, reader = case.run.file("/data/all", existed=False), case.task("r")
    if start:
        first = case.task("first")
        case.run.write(first, target, 0, start, at=1)
    at, place = 2.0, start
    for i in order[: len(sizes)]:
        until = 9.0 if overlap else at
        case.run.read(case.engine, files[i], 0, sizes[i] - less, at=at, until=until)
        case.run.write(case.engine, target, place, place + sizes[i], at=8 if slurp else at + 0.5)
        at, place = at + 1, place + sizes[i]
    case.run.read(reader, target, 0, place, at=20)
    return case, case.flow().edges


@pytest.mark.rule("F19")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("slurp", [False, True])
def test_several_whole_files_written_one_after_the_other(
    order: tuple[int, ...], slurp: bool
) -> None:
    case, edges = collected([100, 250, 70], order=order, slurp=slurp)
    assert edges == {("a", "all", 0, "r"): 100, ("b", "all", 0, "r"): 250, ("c", "all", 0, "r"): 70}
    rows = case.flow().producers["all", 0]
    place = 0
    for i in order:
        size = [100, 250, 70][i]
        assert rows["abc"[i]]["ranges"] == [[place, place + size]]
        assert rows["abc"[i]]["how"] == ["engine_copy"]
        place += size


@pytest.mark.rule("F19")
def test_a_whole_file_appended_by_an_engine() -> None:
    _, edges = collected([100], start=50)
    assert edges == {("a", "all", 0, "r"): 100, ("first", "all", 0, "r"): 50}


@pytest.mark.rule("F19")
def test_what_was_read_bit_by_bit_from_several_files_carries_nothing() -> None:
    assert collected([100, 250, 70], overlap=True)[1] == {}
    assert collected([100, 250], less=1)[1] == {}


@pytest.mark.parametrize("collector", ENGINES)
@pytest.mark.ebpf
@pytest.mark.slow
def test_output_that_gnu_parallel_collects_comes_from_its_jobs(
    tmp_path: Path, collector: str
) -> None:
    if not shutil.which("parallel"):
        pytest.skip("GNU parallel is not installed")
    script = "seq 3000 > in\nparallel -j2 -k 'sort -r < {}' ::: in in > all\nwc all > count\n"
    found = answer(tmp_path, script, collector, derive_roots=True)  # parallel's files are in /tmp
    job = "sort -r < in"
    assert sorted(found.edges) == sorted(
        [("seq 3000", "in", job, 13893)] * 2 + [(job, "all", "wc all", 13893)] * 2
    )
    assert found.file("all")["role"] == "intermediate"
    assert found.labels("all") == ["gather"]
