"""The unfolded file/task graph as GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.hintgen.draw.graphml import graphml
from tracehint.hintgen.draw.unfolded import Unfolded

if TYPE_CHECKING:
    from tracehint.hintgen.inputs import Input

COLUMNS = {
    "tasks": "task name type start_s end_s engine",
    "files": "file version path role size_bytes",
    "producers": "file task bytes how superseded",
    "consumers": "file task bytes peek",
    "edges": "file consumer bytes via",
    "patterns": "file edge pattern primary confidence saves_bytes",
}


def write(run: Input, target: Path) -> None:
    """One XML file."""
    graph = Unfolded(run.analysis)
    with target.open("wb") as stream:
        stream.writelines(graphml(graph.nodes, graph.links, False))
