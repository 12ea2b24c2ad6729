"""Bytes that tasks read from their own node, and from others, where the store told the locations.

`tracehint run` asks a store that can tell (attribute `location` of a file: nodes, with commas).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

LOCATION = "location"

_BYTES = """
    WITH place AS (SELECT o.path, string_split(any_value(a.value), ',') AS nodes
                   FROM b_attributes a JOIN b_opens o USING (file)
                   WHERE a.name = 'location' GROUP BY o.path),
         rd AS (SELECT c.bytes, split_part(t.host, '.', 1) AS host, p.nodes
                FROM consumers c JOIN tasks t USING (task) JOIN files f USING (file)
                JOIN roots r ON true JOIN place p ON p.path = r.root || f.path
                WHERE NOT coalesce(t.engine, false))
    SELECT coalesce(sum(bytes) FILTER (list_contains(nodes, host)), 0)::BIGINT,
           coalesce(sum(bytes) FILTER (NOT list_contains(nodes, host)), 0)::BIGINT,
           count(*)
    FROM rd"""


def located_bytes(analysis: Analysis, bundle: Bundle | None) -> tuple[int | None, int | None]:
    """(bytes read locally, bytes read from other nodes); None: nobody knows."""
    import pyarrow as pa

    from tracehint.hintgen import query

    if bundle is None or LOCATION not in bundle.tables["attributes"].column("name").to_pylist():
        return None, None
    con = query.connect(analysis, bundle)
    roots = [root.encode("utf-8", "surrogateescape") for root in analysis.run["data_roots"]]
    con.register("roots", pa.table({"root": pa.array([r.rstrip(b"/") + b"/" for r in roots])}))
    local, remote, rows = con.execute(_BYTES).fetchall()[0]
    return (int(local), int(remote)) if rows else (None, None)
