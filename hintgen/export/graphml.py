"""The unfolded file/task graph as GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.hintgen.draw.build import links_of, make_nodes, nodes_of
from tracehint.hintgen.draw.graphml import graphml

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input


def write(run: Input, con: duckdb.DuckDBPyConnection, target: Path) -> None:
    """One XML file."""
    _ = run
    make_nodes(con, False)
    pieces = graphml(lambda: nodes_of(con), lambda: links_of(con, by_node=True), False)
    with target.open("wb") as stream:
        stream.writelines(pieces)
