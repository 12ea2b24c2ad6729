"""Export of the graph to other programs: networkx, GraphML, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.model import Analysis
from tracehint.hintgen.report.drawing import build
from tracehint.hintgen.text.escape import text

if TYPE_CHECKING:
    import networkx as nx

    from tracehint.hintgen.report.drawing import Drawing


def to_networkx(analysis: Analysis, fold: bool = False) -> nx.DiGraph[str]:
    """Return the bipartite file/task graph: one node per task and file version, or per fold.

    Node attributes: kind, label, count, bytes, and role, pattern, confidence,
    saves_bytes (files) or start_s, end_s (tasks, seconds). Edge attributes:
    bytes, count, pattern, via, peek. Labels are visible text.

    >>> graph = to_networkx(analysis)                        # doctest: +SKIP
    >>> [n for n, d in graph.nodes(data=True) if d["kind"] == "file"]  # doctest: +SKIP
    """
    return drawing_to_networkx(build(analysis, fold))


def drawing_to_networkx(drawing: Drawing) -> nx.DiGraph[str]:
    """Convert the Drawing to a networkx graph."""
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(folded=drawing.folded)
    for node in drawing.nodes:
        graph.add_node(node.id, **_attributes(vars(node), "id"))
    for link in drawing.links:
        graph.add_edge(link.source, link.target, **_attributes(vars(link), "source", "target"))
    return graph


def _attributes(values: dict[str, Any], *without: str) -> dict[str, Any]:
    # GraphML has no null.
    return {
        k: text(v) if isinstance(v, str) else v
        for k, v in values.items()
        if k not in without and v is not None
    }


def to_graphml(drawing: Drawing) -> str:
    """Return GraphML, for Gephi, yEd, Cytoscape and others."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(drawing_to_networkx(drawing))) + "\n"


def to_json(drawing: Drawing) -> str:
    """Return `{"schema": "tracehint.graph/1", "folded", "nodes", "links", "left_out"}`."""
    document = {
        "schema": "tracehint.graph/1",
        "folded": drawing.folded,
        "nodes": [{"id": n.id, **_attributes(vars(n), "id")} for n in drawing.nodes],
        "links": [_attributes(vars(link)) for link in drawing.links],
        "left_out": drawing.left_out,
    }
    return json.dumps(document, indent=1)
