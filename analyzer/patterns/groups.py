"""Reduce and distribute: groups of files around one task.

Temporary tables made here:
    grp    grp, pattern, task, files (count), partners (producers or consumers), bytes, share,
           largest (bytes of the largest partner), spread (coefficient of variation)
    inside grp, file, u (bytes that the file's only reader read)
    label   the rows of `lab` of all kinds, with a number `k`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Options

# Files with one reader that counts; p: every task that feeds it, `alone`: it is the file's only
# owner. The bytes of a file with several producers are split among them as the edges say.
_SINGLE = """
create temp table single as
select file, cw as c, pw as p, np = 1 and pw = writer as alone, u_sum::bigint as u,
    e.bytes as fed
from fed e join fv using (file)
where e.file not in (select file from cyc)
"""

_REDUCE = """
create temp table red as
with files as (select c, file, any_value(u) as u from single group by c, file),
sums as (select c, count(*) as files, sum(u)::double as bytes from files group by c
    having count(*) >= 2),
feeds as (select c, p, sum(fed)::double as fed from single semi join sums using (c) group by c, p),
fed as (select c, count(*) as partners, max(fed) as largest from feeds group by c
    having count(*) >= 2),
reads as (
    select co.who as c, sum(co.u)::double as total
    from (from co semi join fed on fed.c = co.who) co
    semi join e on e.file = co.file and e.cw = co.who group by co.who)
select 'reduce' as pattern, c as task, files, partners, bytes,
    case when total > 0 then bytes / total else 1 end as share,
    case when bytes > 0 then largest else 0 end as largest, null::double as spread
from sums join fed using (c) join reads using (c)
where bytes >= {share} * total
"""

_DISTRIBUTE = """
create temp table dis as
with feeds as (
    select p, c, count(*) as files, sum(u)::double as bytes from single where alone group by p, c)
select 'distribute' as pattern, p as task, sum(files)::bigint as files, count(*) as partners,
    sum(bytes) as bytes, 1.0 as share, max(bytes) as largest,
    case when sum(bytes) > 0 then stddev_pop(bytes) / avg(bytes) else 0 end as spread
from feeds group by p having count(*) >= 2
"""

_GROUPS = """
create temp table grp as
select row_number() over (order by pattern desc, task) as grp, *
from (from red union all by name from dis)
"""

_INSIDE = """
create temp table inside as
select distinct grp, file, u from grp join single on single.c = grp.task
where pattern = 'reduce'
union all
select grp, file, u from grp join single on single.p = grp.task
where pattern = 'distribute' and alone
"""

_LABELS = """
insert into lab select file, pattern, grp,
    case when pattern = 'reduce' then least(1, 0.5 * share / {share}) else 1 end
from inside join grp using (grp)
"""

_NUMBERED = "create temp table label as select row_number() over () as k, * from lab"

_TABLE = """
select grp as "group", pattern, task, members as files, bytes::bigint as bytes,
    coalesce(is_primary, false) as "primary", evidence
from grp join grp_text using (grp)
join (select grp, list(file order by file) as members from inside group by grp) using (grp)
left join (select grp, bool_or(is_primary) as is_primary from chosen where grp is not null
    group by grp) using (grp)
order by grp
"""


def find(con: duckdb.DuckDBPyConnection, options: Options) -> None:
    """Make the tables above."""
    share = max(options.reduce_min_share, 1e-9)
    con.execute(_SINGLE)
    con.execute(_REDUCE.format(share=share))
    con.execute(_DISTRIBUTE)
    con.execute(_GROUPS)
    con.execute(_INSIDE)
    con.execute(_LABELS.format(share=share))
    con.execute(_NUMBERED)


def groups_table(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Table `groups` of analyzer.model."""
    from tracehint.analyzer.model import GROUPS
    from tracehint.analyzer.sql import to_arrow

    return to_arrow(con, _TABLE, GROUPS)
