"""The unfolded file/task graph as GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.hintgen.draw.build import link_batches, make_links, make_nodes, node_batches
from tracehint.hintgen.draw.graphml import graphml

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input


def write(run: Input, con: duckdb.DuckDBPyConnection, target: Path) -> None:
    """One XML file."""
    _ = run
    make_nodes(con, False)
    make_links(con)
    pieces = graphml(lambda: node_batches(con), lambda: link_batches(con), False)
    with target.open("wb") as stream:
        stream.writelines(pieces)
