"""Labels at the limits of their definitions."""

from __future__ import annotations

import pytest

from tests.support.flow_builder import FlowBuilder


@pytest.mark.rule("P16")
def test_versions_of_one_file_are_no_distribute() -> None:
    """A file that grows while tasks read it one after the other is a pipeline."""
    flow = FlowBuilder()
    p, c, d = flow.task("p"), flow.task("c"), flow.task("d")
    first = flow.file("x", 1 << 20, lineage=77)
    second = flow.file("x", 2 << 20, version=1, lineage=77)
    for file, reader in ((first, c), (second, d)):
        flow.write(p, file, 0, 1 << 20)
        flow.read(reader, file, 0, 1 << 20)
    labels = flow.labels()
    assert [labels.of(f) for f in (first, second)] == [{"pipeline"}, {"pipeline"}]
    assert labels.groups == []
    third = flow.file("y", 1 << 20)
    flow.write(p, third, 0, 1 << 20)
    flow.read(d, third, 0, 1 << 20)
    assert flow.labels().of(first) == {"pipeline", "distribute"}


@pytest.mark.rule("P15")
def test_versions_of_one_file_are_no_reduce() -> None:
    flow = FlowBuilder()
    a, b, c = flow.task("a"), flow.task("b"), flow.task("c")
    files = [flow.file("x", 1 << 20, version=v, lineage=77) for v in (0, 1)]
    for file, writer in zip(files, (a, b), strict=True):
        flow.write(writer, file, 0, 1 << 20)
        flow.read(c, file, 0, 1 << 20)
    assert [flow.labels().of(f) for f in files] == [{"pipeline"}, {"pipeline"}]


@pytest.mark.rule("P22")
@pytest.mark.parametrize(
    ("starts", "mode", "together"),
    [
        ((0, 0, 0), "concurrent", 3),
        ((0, 2, 6), "concurrent", 2),
        ((0, 3, 6), "appended in turn", 1),
    ],
)
def test_writers_are_concurrent_when_their_tasks_ran_together(
    starts: tuple[int, ...], mode: str, together: int
) -> None:
    """The writes are instantaneous and never overlap; only the tasks may."""
    flow = FlowBuilder()
    file = flow.file("x", 3 << 20)
    for k, start in enumerate(starts):
        writer = flow.task(f"w {k}", start=start, end=start + 3)
        flow.write(writer, file, k << 20, (k + 1) << 20, at=start + 0.1 * k, until=start + 0.1 * k)
    flow.read(flow.task("r", start=20), file, 0, 3 << 20, at=21)
    evidence = flow.labels().evidence(file, "gather")
    assert (evidence["mode"], evidence["concurrent_writers"]) == (mode, together)
