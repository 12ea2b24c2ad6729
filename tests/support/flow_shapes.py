"""Small flows of common shapes, for the tests of the patterns."""

from __future__ import annotations

from tests.support.flow_builder import FlowBuilder

MB = 1 << 20


def one_to_many(
    readers: list[list[tuple[int, int]]], size: int, *, writer: bool = True
) -> tuple[FlowBuilder, int, list[int]]:
    """Return a file of `size` bytes by one task, and concurrent readers of these ranges."""
    flow = FlowBuilder()
    maker = flow.task("make", start=0, end=5)
    file = flow.file("data", size)
    if writer:
        flow.write(maker, file, 0, size)
    tasks = [flow.task(f"read {k}", start=10, end=20) for k in range(len(readers))]
    for task, ranges in zip(tasks, readers, strict=True):
        for a, b in ranges:
            flow.read(task, file, a, b, 11, 19)
    return flow, file, tasks


def many_to_one(sizes: list[int]) -> tuple[FlowBuilder, list[int], int]:
    """Return one file per producer, all read by one task."""
    flow = FlowBuilder()
    makers = [flow.task(f"make {k}", start=0, end=5) for k in range(len(sizes))]
    sink = flow.task("merge", start=10)
    files = [flow.file(f"part{k}", size) for k, size in enumerate(sizes)]
    for maker, file, size in zip(makers, files, sizes, strict=True):
        flow.write(maker, file, 0, size)
        flow.read(sink, file, 0, size)
    return flow, files, sink


def gathered(overlap: int, *, in_turn: bool = False) -> tuple[FlowBuilder, int]:
    """Return a file of four writers, each overlapping the next by `overlap` bytes; one reader."""
    flow = FlowBuilder()
    file = flow.file("out", 4 * MB)
    for k in range(4):
        at = float(k * 10) if in_turn else 1.0
        writer = flow.task(f"write {k}", start=at, end=at + 9)
        flow.write(writer, file, k * MB, min(4 * MB, (k + 1) * MB + overlap), at, at + 8)
    reader = flow.task("read", start=100)
    flow.read(reader, file, 0, 4 * MB)
    return flow, file


def in_parts(parts: int, *, nodes: int = 4) -> tuple[FlowBuilder, int]:
    """Return a file that some tasks write in parts and as many others read in the same parts."""
    flow = FlowBuilder(nodes=nodes)
    file = flow.file("field", parts * MB)
    for k in range(parts):
        flow.write(flow.task(f"w {k}", start=0), file, k * MB, (k + 1) * MB)
    for k in range(parts):
        flow.read(flow.task(f"r {k}", start=20), file, k * MB, (k + 1) * MB)
    return flow, file
