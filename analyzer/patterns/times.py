"""How many readers of one file version ran, and how many writers wrote, at the same time.

Temporary tables made here:
    rt   per file with several readers: together (most of their tasks at one time, ends included)
    wt   (where there are such) per file with several writers: together (ends excluded),
         appended (in turn, each where the one before stopped)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# Readers are simultaneous when their tasks run at the same time: a read of microseconds on
# the recorded machine is a read at the same time when every task has a node of its own.
_READERS = """
create temp table rt as
with mixed as (select file from fs where n >= 2 and not all_at_once),
events as (
    select file, start_s as moment, 1 as d from eff semi join mixed using (file)
    union all
    select file, end_s as moment, -1 as d from eff semi join mixed using (file)),
swept as (select file, sum(d) over (partition by file order by moment, d desc
        rows unbounded preceding) as deep from events)
select file, max(deep)::int as together from swept group by file
union all
select file, n::int as together from fs where n >= 2 and all_at_once
"""

_ALL_AT_ONCE = "create temp table rt as select file, n::int as together from fs where n >= 2"

_WRITERS = """
create temp table wt as
with many as (select file from ws where np >= 2),
spans as (select file, who, first_s, last_s from own semi join many using (file)),
-- bytes carried over from an earlier version have no times here: written before all others
events as (
    select file, first_s as moment, 1 as d from spans where first_s is not null
    union all
    select file, last_s as moment, -1 as d from spans where first_s is not null),
swept as (select file, sum(d) over (partition by file order by moment, d
        rows unbounded preceding) as deep from events),
ends as (
    select file, who, spans.first_s, min(r.a) as a, max(r.b) as b
    from spans join wsp r using (file, who) group by all),
steps as (
    select file, a = coalesce(lag(b) over (partition by file order by first_s nulls first, a), a)
        as follows
    from ends),
appended as (select file, bool_and(follows) as follows from steps group by file)
select file, greatest(1, coalesce(max(deep), 1))::int as together,
    coalesce(any_value(follows), false) as appended
from many left join swept using (file) left join appended using (file) group by file
"""


def measure(con: duckdb.DuckDBPyConnection) -> None:
    """Make the tables above."""
    staggered = con.execute("select 1 from fs where n >= 2 and not all_at_once limit 1").fetchone()
    con.execute(_READERS if staggered else _ALL_AT_ONCE)
    if con.execute("select 1 from ws where np >= 2 limit 1").fetchone():
        con.execute(_WRITERS)
