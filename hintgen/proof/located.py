"""Bytes that tasks read from their own node, and from others, where the store told the locations.

A store that can tell is asked after a recording (adapters/located.py): attribute `location` of a
file, `NODE=SHARE` with commas, the share of its bytes that lies there (without one: all).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

LOCATION = "location"

_BYTES = """
    WITH said AS (SELECT DISTINCT o.path, unnest(string_split(a.value, ',')) AS node
                  FROM b_attributes a JOIN b_opens o USING (file) WHERE a.name = 'location'),
         place AS (SELECT path, split_part(split_part(node, '=', 1), '.', 1) AS host,
                          max(coalesce(try_cast(nullif(split_part(node, '=', 2), '') AS DOUBLE),
                                       1.0)) AS share
                   FROM said GROUP BY ALL),
         known AS (SELECT DISTINCT path FROM place),
         rd AS (SELECT c.bytes, split_part(t.host, '.', 1) AS host, k.path
                FROM consumers c JOIN tasks t USING (task) JOIN files f USING (file)
                JOIN roots r ON true JOIN known k ON k.path = r.root || f.path
                WHERE NOT coalesce(t.engine, false))
    SELECT path, sum(bytes * coalesce(share, 0.0))::BIGINT AS local,
           sum(bytes * (1 - coalesce(share, 0.0)))::BIGINT AS remote
    FROM rd LEFT JOIN place USING (path, host) GROUP BY path"""


def located_bytes(analysis: Analysis, bundle: Bundle | None) -> tuple[int | None, int | None]:
    """(bytes read locally, bytes read from other nodes); None: nobody knows."""
    files = located_files(analysis, bundle)
    if files is None or not files.num_rows:
        return None, None
    local, remote = (sum(files.column(name).to_pylist()) for name in ("local", "remote"))
    return local, remote


def located_files(analysis: Analysis, bundle: Bundle | None) -> pa.Table | None:
    """The same by file: path (absolute), local, remote; None: the store was not asked."""
    import pyarrow as pa

    from tracehint.hintgen import query

    if bundle is None or LOCATION not in bundle.tables["attributes"].column("name").to_pylist():
        return None
    con = query.connect(analysis, bundle)
    roots = [root.encode("utf-8", "surrogateescape") for root in analysis.run["data_roots"]]
    con.register("roots", pa.table({"root": pa.array([r.rstrip(b"/") + b"/" for r in roots])}))
    return con.sql(_BYTES).to_arrow_table()
