"""Shape of the regions that readers (scatter) or writers (gather) of one file touch.

Temporary tables made here, where such labels occur, both with columns file, regions,
region_bytes (mean), region_min, region_max, stride (null: one region), regular, alignment
(largest power of two that divides every start but 0; null: only 0):
    rr    scatter files, by reader, the shared header left out
    wg    gather files, by writer
and
    a2a   scatter files: files (how many files the same set of readers shares out)
    shares partly shared files: shared_bytes, shared_total, shared_ranges (the first 16)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehint.analyzer.patterns.prepare import RANGED
from tracehint.analyzer.patterns.ranges import spans_sql

if TYPE_CHECKING:
    import duckdb

_SHAPE = """
create temp table {name} as
with spans as ({spans}),
steps as (
    select file, a, b, a - lag(a) over (partition by file order by a, b) as step from spans)
select file, count(*) as regions, round(avg(b - a))::bigint as region_bytes,
    min(b - a) as region_min, max(b - a) as region_max,
    round(avg(step))::bigint as stride,
    min(b - a) = max(b - a) and coalesce(min(step) = max(step), true) as regular,
    case when bit_or(a) > 0 then bit_or(a) & -bit_or(a) end as alignment
from steps group by file
"""

# What lies inside the header that was set aside belongs to no region.
_READ = """
select file, greatest(a, coalesce(header_end, 0)) as a, b
from ({spans}) left join (select file, max(stop) as header_end from depth join fs using (file)
    where head and header > 0 group by file) using (file)
where b > coalesce(header_end, 0)
"""

_ALL_TO_ALL = """
create temp table a2a as
with sets as (
    select file, count(*) as n, sum(hash(who)::hugeint) as readers
    from eff semi join (select file from lab where pattern = 'scatter') using (file)
    group by file)
select file, count(*) over (partition by n, readers) as files from sets
"""

_SHARED = """
create temp table shares as
with part as (
    select file, start, stop, deep > 1 as many,
        row_number() over (partition by file order by start)
            - row_number() over (partition by file, deep > 1 order by start) as island
    from depth join fs using (file)
    semi join (select file from lab where pattern = 'partly_shared') using (file)
    where not (head and header > 0)),
runs as (
    select file, min(start) as a, max(stop) as b,
        row_number() over (partition by file order by min(start)) as k
    from part where many group by file, island)
select file, sum(b - a)::bigint as shared_bytes, count(*) as shared_total,
    list([a, b] order by a) filter (k <= 16) as shared_ranges
from runs group by file
"""


def measure(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables above from `lab`, `eff` and the writers."""
    scattered = RANGED.format(readers="eff", files="select file from lab where pattern = 'scatter'")
    found = {row[0] for row in con.execute("select distinct pattern from lab").fetchall()}
    if "scatter" in found:
        con.execute(_SHAPE.format(name="rr", spans=_READ.format(spans=spans_sql(scattered))))
        con.execute(_ALL_TO_ALL)
    gathered = "from wsp semi join (select file from lab where pattern = 'gather') using (file)"
    if "gather" in found:
        con.execute(_SHAPE.format(name="wg", spans=gathered))
    if "partly_shared" in found:
        con.execute(_SHARED)
