"""How often each byte was read or written: sweeps over the ends of byte ranges.

Temporary tables made here:
    fs    per file: n, reader (one of them), u_sum, m, read_bytes (length of the union), header,
          gap_bytes, gaps, cover_min, cover_mean, cover_max
    ws    per file: np, owned_max, overlap (share of the written bytes with several writers)
    wsp   file, who, a, b   written by each owner of a file that has several, each byte once
    depth per irregular file: stretches [start, stop) read by `deep` readers, `head`: set aside
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Options


def spans_sql(source: str) -> str:
    """Rows of `source` (file, ranges, u, ...) once per range, as [a, b).

    Where the ranges are not known the first `u` bytes stand for them.
    """
    return f"""
    select * exclude (r), r[1] as a, r[2] as b from (
        select * exclude (ranges), unnest(ranges) as r from ({source}) where len(ranges) > 0)
    union all by name
    select * exclude (ranges), 0 as a, u as b from ({source})
    where coalesce(len(ranges), 0) = 0 and u > 0
    """


def covered_sql(spans: str) -> str:
    """Stretches [start, stop) of each file with the counts `deep` (all rows) and `wide`.

    `spans` has columns file, a, b, wide (bool). A file's stretches reach from its first to
    its last byte; deep = 0 is a gap.
    """
    return f"""
    select * from (
        select file, pos as start, lead(pos) over w as stop,
            sum(d) over w as deep, sum(dw) over w as wide
        from (
            select file, pos, sum(d) as d, sum(d * wide::int) as dw from (
                select file, a as pos, 1 as d, wide from ({spans})
                union all
                select file, b as pos, -1 as d, wide from ({spans}))
            group by file, pos)
        window w as (partition by file order by pos))
    where stop is not null
    """


_READERS = """
create temp table rd as
select file, count(*) as n, sum(u)::double as u_sum, max(u) as u_max, max(hi) as hi,
    coalesce(min(cover), 1) as cover_min, coalesce(avg(cover), 1) as cover_mean,
    coalesce(max(cover), 1) as cover_max,
    max(start_s) <= min(end_s) as all_at_once,
    count(*) = 1 or (max(nr) = 1 and min(nr) = 1 and min(lo) = max(lo) and min(hi) = max(hi))
        or max(u) = 0 as same,
    min(lo) as lo, any_value(who) as reader
from eff group by file
"""

_SIZES = """
create temp table sz as
select file, size_bytes as s from files_in where role <> 'software' and size_bytes is not null
union all
select file, greatest(coalesce(size_bytes, 0), case when size_bytes is null
    then coalesce(rd.hi, rd.u_max, w.written, 0) else 0 end) as s
from files_in left join rd using (file)
left join (select file, max(unique_bytes) as written from pr group by file) w using (file)
where role <> 'software' and size_bytes is null
"""

# The header ends at `h` at most: a cut there lets a stretch be inside or outside, never both.
_DEPTH = """
create temp table depth as
with odd as (select file, n, least({header_bytes}, floor(s * {header_share}))::bigint as h, lo, hi
             from rd join sz using (file) where n >= 2 and not same),
raw as ({covered}),
cut as (
    select file, start, least(stop, h) as stop, deep, n, h from raw join odd using (file)
    where start < h
    union all
    select file, greatest(start, h) as start, stop, deep, n, h from raw join odd using (file)
    where stop > h)
select file, start, stop, deep::int as deep, stop <= h and deep >= {readers} * n as head from cut
"""

_NO_DEPTH = """
create temp table depth (file bigint, start bigint, stop bigint, deep int, head boolean)
"""

_MEASURED = """
create temp table fs as
with odd as (
    select file, sum(stop - start) filter (deep > 0) as read_bytes,
        coalesce(sum(stop - start) filter (head), 0) as header,
        sum((stop - start) * deep) as moved,
        coalesce(sum((stop - start) * deep) filter (head), 0) as header_moved,
        coalesce(sum(stop - start) filter (deep = 0), 0) as gap_bytes,
        count(*) filter (deep = 0) as gaps
    from depth group by file),
even as (
    select rd.*, s, case when same and n >= 2 then greatest(0,
        least(hi, least({header_bytes}, floor(s * {header_share}))::bigint) - lo) end as head
    from rd join sz using (file))
select even.* exclude (head),
    coalesce(odd.read_bytes, hi - lo, 0) as read_bytes,
    case when odd.file is null then case when head < hi - lo then head else 0 end
        when odd.header < odd.read_bytes then odd.header else 0 end::bigint as header,
    case when odd.file is null then n::double
        when odd.header < odd.read_bytes
        then (odd.moved - odd.header_moved)::double / (odd.read_bytes - odd.header)
        else odd.moved::double / odd.read_bytes end as m,
    coalesce(odd.gap_bytes, 0)::bigint as gap_bytes, coalesce(odd.gaps, 0) as gaps
from even left join odd using (file)
"""

_WRITERS = """
create temp table wr as
select file, count(*) as np, max(owned) as owned_max, sum(owned)::double as owned_sum,
    any_value(who) as writer, min(first_s) as w_first, max(last_s) as w_last
from own group by file
"""

_OVERLAP = """
create temp table ws as
with deep as ({covered}),
x as (select file, sum(stop - start) filter (deep > 1) as several,
        sum(stop - start) filter (deep > 0) as written from deep group by file)
select wr.*, case when np < 2 then 0 else coalesce(several, 0) / written end as overlap
from wr left join x using (file)
"""

_WRITTEN = """
select file, who, unique_bytes as u, ranges
from producers_in join t using (task) semi join own using (file, who)
where not engine and not coalesce(superseded, false)
    and file in (select file from wr where np >= 2)
"""

# Attempts of one task may have written the same bytes: joined to one writer's ranges.
_JOINED = """
select file, who, min(a) as a, max(b) as b from (
    select *, sum(case when a <= before then 0 else 1 end)
        over (partition by file, who order by a, b rows unbounded preceding) as island
    from (select *, max(b) over (partition by file, who order by a, b
        rows between unbounded preceding and 1 preceding) as before from ({spans})))
group by file, who, island
"""


def measure(con: duckdb.DuckDBPyConnection, options: Options, *, retried: bool) -> None:
    """Make the tables above from `eff`, `own` and `producers_in`."""
    from tracehint.analyzer.patterns.prepare import RANGED

    con.execute(_READERS)
    con.execute(_SIZES)
    sizes = {"header_bytes": options.header_bytes, "header_share": options.header_share}
    odd = RANGED.format(readers="eff", files="select file from rd where n >= 2 and not same")
    uneven = con.execute("select 1 from rd where n >= 2 and not same limit 1").fetchone()
    con.execute(
        _NO_DEPTH
        if not uneven
        else _DEPTH.format(
            covered=covered_sql(spans_sql(odd)), readers=options.header_readers - 1e-9, **sizes
        )
    )
    con.execute(_MEASURED.format(**sizes))
    con.execute(_WRITERS)
    if not con.execute("select 1 from wr where np >= 2 limit 1").fetchone():
        con.execute("create temp table ws as select *, 0::double as overlap from wr")
        return
    spans = spans_sql(_WRITTEN)
    con.execute(f"create temp table wsp as {_JOINED.format(spans=spans) if retried else spans}")
    con.execute(_OVERLAP.format(covered=covered_sql("select file, a, b, false as wide from wsp")))
