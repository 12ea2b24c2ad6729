"""Random flows: labels equal those of the slow reference and do not depend on names or order."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.flow_builder import Flow, FlowBuilder
from tests.support.pattern_reference import Reference
from tests.support.reference_flow import Expected
from tracehint.analyzer.model import Options
from tracehint.analyzer.patterns.run_labels import label

# Small thresholds for small files, so that random ranges fall on both sides of them.
OPTIONS = Options(peek_bytes=30, header_bytes=20, call_cost_bytes=60, max_versions=3)
QUICK = settings(max_examples=6, deadline=None, suppress_health_check=[*HealthCheck])
THOROUGH = settings(max_examples=120, deadline=None, suppress_health_check=[*HealthCheck])


@st.composite
def flows(draw: st.DrawFn, most_tasks: int = 9) -> FlowBuilder:
    """Draw tasks in stages with typical and with unusual accesses."""
    flow = FlowBuilder(options=OPTIONS, nodes=draw(st.integers(1, 6)))
    count = draw(st.integers(2, most_tasks))
    for k in range(count):
        engine = draw(st.integers(0, 9)) == 0
        flow.task(f"step{k % 3} {k}", start=float(draw(st.integers(0, 20))), engine=engine)
    if draw(st.booleans()):
        again = flow.tasks[draw(st.integers(0, count - 1))]
        if not again["engine"]:
            flow.task(again["name"], start=again["start_s"] + 0.5, attempt=2)
    tasks = [t["task"] for t in flow.tasks]
    for k in range(draw(st.integers(1, 8))):
        size = draw(st.sampled_from([40, 100, 400]))
        lineage = draw(st.sampled_from([k + 1, 1]))
        file = flow.file(f"f{k}", size, version=k if lineage == 1 else 0, lineage=lineage)
        writers = draw(st.lists(st.sampled_from(tasks), max_size=3, unique=True))
        readers = draw(st.lists(st.sampled_from(tasks), max_size=6, unique=True))
        _write(draw, flow, file, size, writers)
        _read(draw, flow, file, size, readers)
    return flow


def _write(draw: st.DrawFn, flow: FlowBuilder, file: int, size: int, writers: list[int]) -> None:
    part = size // max(1, len(writers))
    for k, task in enumerate(writers):
        over = draw(st.sampled_from([0, 0, size // 20, size]))
        flow.write(task, file, k * part, min(size, (k + 1) * part + over), at=float(k), until=k + 2)


def _read(draw: st.DrawFn, flow: FlowBuilder, file: int, size: int, readers: list[int]) -> None:
    shape = draw(st.sampled_from(["whole", "parts", "strided", "random"]))
    header = draw(st.booleans())
    part = max(1, size // max(1, len(readers)))
    for k, task in enumerate(readers):
        at, until = float(10 + draw(st.integers(0, 3))), float(13 + draw(st.integers(0, 3)))
        peek = draw(st.integers(0, 4)) == 0
        if header or peek:
            flow.read(task, file, 0, max(1, size // 30), at, until)
        if peek:
            continue
        if shape == "whole":
            flow.read(task, file, 0, size, at, until)
        elif shape == "parts":
            over = draw(st.sampled_from([0, 0, part // 4, part // 2]))
            flow.read(task, file, k * part, min(size, (k + 1) * part + over), at, until)
        elif shape == "strided":
            for a in range(k * 10, size, 10 * len(readers)):
                flow.read(task, file, a, min(size, a + 10), at, until)
        else:
            a = draw(st.integers(0, size - 1))
            flow.read(task, file, a, draw(st.integers(a + 1, size)), at, until)


def summary(patterns: pa.Table, groups: pa.Table, edges: pa.Table) -> dict[str, Any]:
    """Convert the result to plain values that are comparable with the reference."""
    rows = patterns.to_pylist()
    ends = {e["edge"]: (e["producer"], e["file"], e["consumer"]) for e in edges.to_pylist()}
    own = [p for p in rows if p["edge"] is None]
    on_edges: dict[Any, set[str]] = {key: set() for key in ends.values()}
    for p in rows:
        if p["edge"] is not None:
            on_edges[ends[p["edge"]]].add(p["pattern"])
    return {
        "labels": {(p["file"], p["pattern"]) for p in own},
        "primary": {p["file"]: p["pattern"] for p in own if p["primary"]},
        "saves": {(p["file"], p["pattern"]): p["saves_bytes"] for p in own},
        "m": {p["file"]: json.loads(p["evidence"])["m"] for p in own if '"m":' in p["evidence"]},
        "groups": {(g["pattern"], g["task"], frozenset(g["files"])) for g in groups.to_pylist()},
        "edges": on_edges,
    }


def compare(found: dict[str, Any], expected: Expected) -> None:
    labels = {(file, name) for file, names in expected.labels.items() for name in names}
    assert found["labels"] == labels
    assert found["groups"] == expected.groups
    assert found["primary"] == expected.primary
    for key, saves in found["saves"].items():
        assert abs(saves - expected.saves[key]) <= 1, key
    for file, m in found["m"].items():
        assert m == pytest.approx(expected.m[file], abs=1e-4)
    assert found["edges"] == expected.edges


def run(flow: FlowBuilder, tables: Flow | None = None) -> dict[str, Any]:
    tables = tables or flow.flow()
    run_object = {"nodes": flow.nodes, "completeness": {"blind_to": []}}
    found = label(tables, flow.task_table(), flow.options, run_object)
    one_primary_each(found.patterns)
    return summary(found.patterns, found.groups, tables.edges)


def one_primary_each(patterns: pa.Table) -> None:
    """Check that every labelled file or edge has exactly one primary label."""
    count: dict[Any, int] = {}
    for p in patterns.to_pylist():
        key = (p["file"], p["edge"])
        count[key] = count.get(key, 0) + p["primary"]
        assert 0 <= p["confidence"] <= 1
    assert set(count.values()) <= {1}


def check(flow: FlowBuilder) -> None:
    expected = Reference(flow.flow(), flow.task_table(), flow.options, flow.nodes).run()
    compare(run(flow), expected)


@QUICK
@given(flows())
def test_labels_are_those_of_the_reference(flow: FlowBuilder) -> None:
    check(flow)


@pytest.mark.slow
@THOROUGH
@given(flows(most_tasks=30))
def test_labels_are_those_of_the_reference_thorough(flow: FlowBuilder) -> None:
    check(flow)


@pytest.mark.full
@settings(THOROUGH, max_examples=400)
@given(flows(most_tasks=30))
def test_labels_are_those_of_the_reference_more_thorough(flow: FlowBuilder) -> None:
    check(flow)


@settings(QUICK, max_examples=3)
@given(flows(), st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(flow: FlowBuilder, random: Any) -> None:
    def shuffled(table: pa.Table) -> pa.Table:
        return table.take(
            pa.array(random.sample(range(table.num_rows), table.num_rows), pa.int64())
        )

    tables = flow.flow()
    mixed = Flow(*(shuffled(t) for t in vars(tables).values()))
    assert run(flow, mixed) == run(flow, tables)


@settings(QUICK, max_examples=3)
@given(flows())
def test_names_do_not_matter(flow: FlowBuilder) -> None:
    before = run(flow)
    for t in flow.tasks:
        t.update({k: f"x{t[k]}\n$(y)" for k in ("name", "type", "command")})
    for f in flow.files:
        f["path"] = b"\xff/" + f["path"][::-1]
    assert run(flow) == before


@settings(QUICK, max_examples=3)
@given(flows(), st.integers(2, 5))
def test_splitting_accesses_does_not_matter(flow: FlowBuilder, pieces: int) -> None:
    before = run(flow)

    def split(rows: list[Any]) -> list[Any]:
        return [
            (t, f, a + (b - a) * k // pieces, a + (b - a) * (k + 1) // pieces, at, until)
            for t, f, a, b, at, until in rows
            for k in range(pieces)
        ]

    cut = replace(flow, reads=split(flow.reads), writes=split(flow.writes))
    assert run(cut) == before
