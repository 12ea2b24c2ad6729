"""How sure a label is: a product of stated factors, each 1 when perfect (docs/patterns.md).

Temporary table made here:
    conf  k, exact, kept, near, peeks, sure_order, seen, confidence
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Options

# What a label is worth when the collector could not see how many bytes moved, or where.
# Labels that rest on which bytes were touched suffer most.
BLIND = {
    "bytes": {
        "broadcast": 0.6, "scatter": 0.3, "partly_shared": 0.3, "gather": 0.5, "reduce": 0.7,
        "distribute": 0.8, "pipeline": 0.8, "stage_in": 0.8, "stage_out": 0.9,
        "concurrently_shared": 0.7,
    },
}  # fmt: skip

# Bytes that are an upper bound (a mapped range) are more often right than wrong: half weight.
_EXACT = "0.5 + 0.5 * coalesce(case when isnan(exact_share) then null else exact_share end, 1)"

# A reader at the peek threshold could as well count, or not: 0.5 there, 1 at half or twice it.
_PEEKS = """
create temp table near_peek as
with r as (
    select file, greatest(coalesce(cover, u / nullif(s, 0), 1) / {peek_share}, u / {peek_bytes})
        as r
    from co semi join (select file from pk where readers >= 2 and peeks > 0) using (file)
    join sz using (file))
select file, min(case when r <= 0.5 or r >= 2 then 1 when r < 1 then 1.5 - r else 0.5 * r end)
    as peeks
from r group by file
"""

_ORDER = """
create temp table unsure as
select file, 1 - 0.5 * avg(uncertain::int) as sure_order from e group by file
having bool_or(uncertain)
"""

_KEPT = """
create temp table losses as
with involved as (select file, who as task from pr union select file, who as task from co)
select file, case when sum(lost + seen) > 0 then 1 - sum(lost) / sum(lost + seen) else 1 end as kept
from involved join lost_in using (task) group by file
"""
_NOTHING_LOST = "create temp table losses as select 0::bigint as file, 1.0 as kept limit 0"

_CONF = """
create temp table conf as
select *, exact * kept * near * peeks * sure_order * seen as confidence from (
    select k, {exact} as exact,
        greatest(0, least(1, coalesce(kept, 1))) as kept, near,
        coalesce(near_peek.peeks, 1) as peeks,
        coalesce(sure_order, 1) as sure_order, {seen} as seen
    from label lab join files_in using (file) left join losses using (file)
    left join near_peek using (file) left join unsure using (file))
"""


def rate(
    con: duckdb.DuckDBPyConnection, options: Options, run: Mapping[str, Any], lost: pa.Table | None
) -> None:
    """Make the table above; arguments as of `patterns.label`."""
    con.execute(
        _PEEKS.format(
            peek_share=max(options.peek_share, 1e-9), peek_bytes=max(options.peek_bytes, 1)
        )
    )
    con.execute(_ORDER)
    if lost is None or not lost.num_rows:
        con.execute(_NOTHING_LOST)
    else:
        con.register("lost_in", lost)
        con.execute(_KEPT)
    blind = [BLIND[code] for code in run["completeness"]["blind_to"] if code in BLIND]
    weights = (
        {p: min(table.get(p, 1.0) for table in blind) for p in BLIND["bytes"]} if blind else {}
    )
    cases = " ".join(f"when '{p}' then {w}" for p, w in weights.items())
    con.execute(
        _CONF.format(
            exact=_EXACT, seen=f"case pattern {cases} else 1 end::double" if cases else "1::double"
        )
    )
