"""The unfolded file/task graph as GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.hintgen.draw.build import build_on
from tracehint.hintgen.draw.export import to_graphml

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input


def write(run: Input, con: duckdb.DuckDBPyConnection, target: Path) -> None:
    """One XML file."""
    _ = run
    target.write_bytes(to_graphml(build_on(con, False)))
