"""GraphML written a node at a time is what networkx writes, byte for byte."""

from __future__ import annotations

import io
from dataclasses import replace
from xml.sax.saxutils import quoteattr

import networkx as nx
import pyarrow as pa
import pytest

from tracehint.hintgen.draw import graphml as module
from tracehint.hintgen.draw.export import drawing_to_networkx, to_graphml
from tracehint.hintgen.draw.graphml import batch_of, graphml
from tracehint.hintgen.draw.model import Drawing, GraphNode, Link

TASKS = (
    GraphNode("t2", "task", "a <&> \"b\" 'c' é", 1, 5, start_s=None, end_s=None, type="x"),
    GraphNode("t1", "task", "b\n\x1b]\u202e", 1, 5, start_s=0.1, end_s=None, type="x"),
)
FILES = (
    GraphNode("f0", "file", "in\\xff.dat", 1, 1 << 40, "input", "broadcast", 0.25, 7, kinds=2),
    GraphNode("f1", "file", "]]>", 1, 0, "output"),
)
LINKS = (
    Link("f0", "t1", 10, 1, "broadcast"),
    Link("f0", "t2", 10, 1, "broadcast", peek=True),
    Link("t1", "f1", 3, 1),
    Link("t1", "f1", 4, 2, via="engine_copy"),
    Link("t2", "f0", 1, 1),
)
DRAWINGS = {
    "all": Drawing(TASKS + FILES, LINKS, False, {}),
    "timed": Drawing(tuple(replace(t, end_s=2.5) for t in TASKS) + FILES, LINKS[:2], True, {}),
    "no tasks": Drawing(FILES, (), False, {}),
    "nothing": Drawing((), (), True, {}),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_graphml_is_that_of_networkx(name: str) -> None:
    out = io.BytesIO()
    graph = drawing_to_networkx(DRAWINGS[name])
    nx.write_graphml_xml(graph, out, infer_numeric_types=True)
    assert to_graphml(DRAWINGS[name]) == out.getvalue()


def test_graphml_comes_in_batches() -> None:
    """Nothing holds the whole text: a batch has a bounded number of nodes."""
    count, rows = 50_000, 5_000
    nodes = [GraphNode(f"t{n}", "task", "x", 1, 1, start_s=0.0, end_s=1.0) for n in range(count)]
    pieces = graphml(
        lambda: (batch_of(nodes[at : at + rows]) for at in range(0, count, rows)),
        lambda: iter(()),
        False,
    )
    sizes = [piece.count(b"<node ") for piece in pieces]
    assert sum(sizes) == count
    assert max(sizes) <= count // 5


def test_links_between_the_same_nodes_may_lie_in_two_batches() -> None:
    node = batch_of([GraphNode("t1", "task", "x", 1, 1), GraphNode("f1", "file", "y", 1, 1)])
    links = [Link("t1", "f1", 1, 1), Link("t1", "f1", 2, 1, via="declared"), Link("f1", "t1", 3, 1)]
    whole = b"".join(graphml(lambda: iter([node]), lambda: iter([batch_of(links)]), False))
    parts = [batch_of([link]) for link in links]
    assert b"".join(graphml(lambda: iter([node]), lambda: iter(parts), False)) == whole
    assert whole.count(b"<edge ") == 2


def test_plain_names_are_not_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    monkeypatch.setattr(module, "quoteattr", lambda name: (looked.append(name), quoteattr(name))[1])
    plain = ["t1", "f22", "é"]
    assert module._quoted(pa.array(plain)).to_pylist() == list(map(quoteattr, plain))
    assert not looked
    for odd in (["a", 'b"c'], ["<"], ["a b", "c"], [], ["x\n"], [""]):
        shown = module._quoted(pa.array(odd, pa.string())).to_pylist()
        assert shown == list(map(quoteattr, odd))
