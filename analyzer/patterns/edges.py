"""Table `patterns`: the labels of the files, and their copies on the edges they hold for.

On an edge into a reader that was set aside as a peek only those labels hold that do not rest
on who read: gather and concurrently_shared. All others hold on every edge of their file (a
reduce's files have one reader that counts, a distribute's one producer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_TABLE = """
with full_label as (
    select l.file, l.pattern, l.grp, c.* exclude (k, file, grp), confidence, sure_order,
        evidence, short
    from label l join chosen c using (k) join conf using (k) join lab_evidence using (k)),
counted as (
    select e.edge, e.file, e.uncertain, eff.file is not null as counts
    from e left join eff on eff.file = e.file and eff.who = e.cw)
select file, null::bigint as edge, pattern, is_primary as "primary", confidence, grp as "group",
    evidence, placement, saves_bytes, saves_wait_bytes, runner_up, runner_up_saves_bytes
from full_label
union all by name
-- where all labels of the file hold so does its primary; else gather is the only one
select file, edge, pattern, is_primary or not counts as "primary",
    confidence / sure_order * case when uncertain then 0.5 else 1 end as confidence,
    grp as "group", short as evidence, placement, saves_bytes, saves_wait_bytes, runner_up,
    runner_up_saves_bytes
from full_label join counted using (file)
where counts or pattern in ('gather', 'concurrently_shared')
order by file, edge nulls first, "primary" desc, pattern, "group"
"""


def patterns_table(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Table `patterns` of analyzer.model, sorted by file, the file's own labels first."""
    from tracehint.analyzer.model import PATTERNS
    from tracehint.analyzer.sql import to_arrow

    return to_arrow(con, _TABLE, PATTERNS)
