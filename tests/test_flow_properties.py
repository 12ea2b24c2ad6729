"""Properties of any run: algorithms agree, cycles are folded, the form of records is irrelevant."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.flow_cut import Case, View

pytestmark = pytest.mark.slow

MORE = int(os.environ.get("TRACEHINT_EXAMPLES", "1"))  # factor for the number of examples
SIZE, TASKS, FILES = 40, 5, 3

Access = tuple[str, int, int, int, int, int, int, bool]
accesses = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "write", "write", "truncate", "deallocate"]),
        st.integers(0, TASKS),
        st.integers(0, FILES - 1),
        st.integers(0, SIZE),
        st.integers(1, SIZE),
        st.integers(0, 30),
        st.integers(0, 8),
        st.booleans(),
    ),
    max_size=30,
)
existing = st.tuples(*[st.sampled_from([True, False, None])] * FILES)


def play(rows: list[Access], existed: tuple[bool | None, ...], *, split: bool = False) -> Case:
    """Return a run of accesses with times that may overlap; task 0 is the engine.

    `split`: each access is recorded as two adjacent ones, at the same time.
    """
    case = Case()
    tasks = [case.engine, *(case.task(f"t{i}") for i in range(TASKS))]
    files = [case.run.file(f"/data/f{i}", existed=old) for i, old in enumerate(existed)]
    for op, who, what, start, length, at, long, exact in rows:
        task, file = tasks[who], files[what]
        # records of the same time are ordered differently: keep times distinct
        when = at + len(case.run.rows["extents"]) / 1000
        if op == "truncate":
            case.run.truncate(task, file, start, at=when)
            continue
        cuts = [start, start + length]
        if split and length > 1:
            cuts.insert(1, start + length // 2)
        for a, b in itertools.pairwise(cuts):
            case.run.access(
                op,
                task,
                file,
                a,
                b,
                at=when,
                until=when + long,
                exact=exact,
                how="mmap" if not exact else None,
            )
    return case


def tables(view: View) -> dict[str, Any]:
    names = ("files", "producers", "consumers", "edges")
    return {name: getattr(view.flow, name).to_pylist() for name in names}


@settings(max_examples=40 * MORE, deadline=None)
@given(accesses, existing)
def test_short_way_and_long_way_agree(rows: list[Access], existed: tuple[bool | None, ...]) -> None:
    case = play(rows, existed)
    assert tables(case.flow()) == tables(case.flow(general=True))


@settings(max_examples=16 * MORE, deadline=None)
@given(accesses, existing)
def test_partitions_do_not_matter(rows: list[Access], existed: tuple[bool | None, ...]) -> None:
    case = play(rows, existed)
    assert tables(case.flow()) == tables(case.flow(rows=1))


@settings(max_examples=16 * MORE, deadline=None)
@given(accesses, existing, st.randoms(use_true_random=False))
def test_order_of_records_does_not_matter(
    rows: list[Access], existed: tuple[bool | None, ...], dice: random.Random
) -> None:
    case = play(rows, existed)
    before = tables(case.flow())
    for name in ("extents", "opens", "files", "names", "processes"):
        dice.shuffle(case.run.rows[name])
    assert tables(case.flow()) == before


def facts(view: View) -> Any:
    """Return what must not depend on how accesses are split."""
    users = [
        {
            k: {t: (r["bytes"], r["unique_bytes"], r["ranges"]) for t, r in v.items()}
            for k, v in found.items()
        }
        for found in (view.producers, view.consumers)
    ]
    return view.edges, view.roles, users


@settings(max_examples=21 * MORE, deadline=None)
@given(accesses, existing)
def test_splitting_accesses_changes_nothing(
    rows: list[Access], existed: tuple[bool | None, ...]
) -> None:
    exact = [(*row[:7], True) for row in rows]
    whole, parts = play(exact, existed).flow(), play(exact, existed, split=True).flow()
    if not any(f["concurrent"] for f in whole.files.values()):
        assert facts(whole)[:2] == facts(parts)[:2]
        assert facts(whole)[2][0] == facts(parts)[2][0]


@settings(max_examples=40 * MORE, deadline=None)
@given(accesses, existing)
def test_no_cycles_once_shared_files_are_folded(
    rows: list[Access], existed: tuple[bool | None, ...]
) -> None:
    """Edges join tasks and versions; each shared component is one node."""
    view = play(rows, existed).flow()
    graph: nx.DiGraph[Any] = nx.DiGraph()
    shared = {f["file"] for f in view.files.values() if f["concurrent"]}
    for edge in view.flow.edges.to_pylist():
        graph.add_edge(("task", edge["producer"]), ("file", edge["file"]))
        graph.add_edge(("file", edge["file"]), ("task", edge["consumer"]))
    for component in nx.strongly_connected_components(graph):
        if len(component) > 1:
            files = {n for kind, n in component if kind == "file"}
            assert files <= shared


# A task updates its own file while another one reads it, after that one has read a part.
UPDATED = [
    ("read", 2, 1, 0, 2, 0, 1, False), ("write", 1, 1, 0, 2, 0, 0, False),
    ("read", 2, 1, 0, 1, 0, 0, False), ("write", 1, 1, 0, 1, 0, 0, False),
]  # fmt: skip  # a table


@settings(max_examples=27 * MORE, deadline=None)
@given(accesses, existing)
@example(UPDATED, (True, True, True))
def test_tables_fit_together(rows: list[Access], existed: tuple[bool | None, ...]) -> None:
    view = play(rows, existed).flow()
    for (p, path, version, c), row in view.edge_rows.items():
        key = (path, version)
        assert p != c
        assert 0 < row["bytes"] <= view.consumers[key][c]["unique_bytes"]
        made = view.producers[key][p]
        kept = made["owned_bytes"] if version else 0  # carried over from earlier versions
        assert row["bytes"] <= made["unique_bytes"] + kept
        assert not made["superseded"]
        assert view.file(path, version)["role"] == "intermediate"
    for users in (view.producers, view.consumers):
        for found in users.values():
            for name, row in found.items():
                assert name != "engine"
                assert row["unique_bytes"] == sum(b - a for a, b in row["ranges"])
                flat = [x for pair in row["ranges"] for x in pair]
                assert flat == sorted(set(flat))  # disjoint, sorted, not adjacent
                assert not flat or flat[-1] > flat[0]
    for path, version in view.roles:
        assert version == 0 or (path, version - 1) in view.roles
