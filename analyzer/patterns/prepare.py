"""Writers and readers that count.

Temporary tables made here:
    t    task, engine, who, attempt, start_s, end_s   `who` is the last attempt of a retried task
    e    edge, file, pw, cw, bytes, via, uncertain     between different `who`
    pr   file, who, owned, unique_bytes, first_s, last_s   writers, superseded ones left out
    own  like pr, only those that own bytes (all, where nobody is known to own any)
    co   file, who, u, cover, peek, start_s, end_s (of its task), nr, lo, hi   all readers
    eff  like co, only the readers that decide
    pk   file, readers, peeks, decides     files with peeks; `decides`: they count
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehint.analyzer.patterns.ranges import covered_sql, spans_sql

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.patterns import FlowTables

_TASKS = """
create temp table t as select task, engine, task as who, coalesce(attempt, 1) as attempt,
    start_s, coalesce(end_s, 'infinity'::double) as end_s
from tasks_in
"""

# Attempts of one task share type, name and command; a new series begins at each attempt 1.
_TASKS_WITH_RETRIES = """
create temp table t as
with series as (
    select task, engine, coalesce(attempt, 1) as attempt, type, name, command, start_s,
        coalesce(end_s, 'infinity'::double) as end_s,
        sum(case when coalesce(attempt, 1) = 1 then 1 else 0 end)
            over (partition by type, name, command order by start_s, task) as series
    from tasks_in)
select task, engine, attempt, start_s, end_s,
    last_value(task) over (partition by type, name, command, series order by attempt, task
        rows between unbounded preceding and unbounded following) as who
from series
"""

# Two ways for each table: without retries a task stands for itself, and leaving out the few
# engines is cheaper than joining all tasks.
_ENGINES = "create temp table engines as select task from t where engine"

_EDGES = """
create temp table e as
select edge, file, producer as pw, consumer as cw, bytes, via, "order" = 'uncertain' as uncertain
from edges_in
where producer <> consumer and producer not in (from engines) and consumer not in (from engines)
"""
_EDGES_WITH_RETRIES = """
create temp table e as
select edge, file, p.who as pw, c.who as cw, bytes, via, order_in = 'uncertain' as uncertain
from (select *, "order" as order_in from edges_in) x
join t p on p.task = producer
join t c on c.task = consumer
where not p.engine and not c.engine and p.who <> c.who
"""

_PRODUCERS = """
create temp table pr as
select file, task as who, coalesce(owned_bytes, unique_bytes, bytes, 0) as owned,
    coalesce(unique_bytes, bytes, 0) as unique_bytes, first_s, last_s
from producers_in
where task not in (from engines) and not coalesce(superseded, false)
"""
_PRODUCERS_WITH_RETRIES = """
create temp table pr as
select file, who, sum(coalesce(owned_bytes, unique_bytes, bytes, 0))::bigint as owned,
    sum(coalesce(unique_bytes, bytes, 0))::bigint as unique_bytes,
    min(first_s) as first_s, max(last_s) as last_s
from producers_in join t using (task)
where not engine and not coalesce(superseded, false)
group by file, who
"""

_OWNERS = """
create temp table own as
select * from pr where owned > 0
union all by name
select * from pr where file not in (select file from pr where owned > 0)
"""

# The ranges stay in the view: few files need them, and they are most of the memory.
_SEEN = """
create temp view seen as
select file, {who} as who, coalesce(unique_bytes, bytes, 0) as u, cover,
    coalesce(peek, false) as peek, coalesce(len(ranges), 0) as nr, ranges[1][1] as lo,
    ranges[len(ranges)][2] as hi, ranges
from consumers_in {where}
"""
_PLAIN = {"who": "task", "where": "where task not in (from engines)"}
_LAST_ATTEMPT = {
    "who": "who",
    "where": "join t using (task) where not engine"
    " qualify row_number() over (partition by file, who order by attempt desc) = 1",
}

# A reader that only read back what it wrote itself has no edge and is no reader.
_SELFISH = """
create temp table selfish as
select file, who from seen semi join pr using (file, who)
anti join (select file, cw as who from e) using (file, who)
"""

# A reader that got the bytes through an engine's copy may have an edge only.
_CONSUMERS = """
create temp table co as
select seen.* exclude (ranges), start_s, end_s
from (from seen {less}) seen join t on t.task = seen.who
union all by name
select file, cw as who, max(bytes) as u, null::double as cover, false as peek,
    any_value(t.start_s) as start_s, any_value(t.end_s) as end_s, 0 as nr, null::bigint as lo,
    null::bigint as hi
from (from e anti join (select file, who as cw from seen
        semi join (select file from e where via <> 'data') using (file)) using (file, cw)
    where via <> 'data') e
join t on t.task = cw group by file, cw
"""

# Readers (a table like co) with their ranges, of some files only.
RANGED = """
select c.file, c.who, c.u, peek_not as wide, seen.ranges
from (select *, not peek as peek_not from {readers} semi join ({files}) using (file)) c
left join (from seen semi join ({files}) using (file)) seen using (file, who)
"""

_PEEKS = """
create temp table pk as
select file, count(*) as readers, count(*) filter (peek) as peeks,
    count(*) filter (peek) = count(*) as decides,
    coalesce(sum(u) filter (peek), 0) as peeked, coalesce(max(u) filter (not peek), 0) as most
from co semi join (select file from co where peek) using (file) group by file
"""

# Peeks that read most of what anybody read: an uneven scatter, not a look at a header.
_PEEKS_OF_MOST = """
update pk set decides = true from (
    select file, coalesce(sum(stop - start) filter (wide = 0 and deep > 0), 0)
        > sum(stop - start) filter (wide > 0) as most
    from ({covered}) group by file) x
where pk.file = x.file and x.most
"""

_EFFECTIVE = """
create temp {kind} eff as
select * from co {less}
"""
_ASIDE = "anti join (select file, true as peek from pk where not decides) using (file, peek)"


def prepare(con: duckdb.DuckDBPyConnection, flow: FlowTables, tasks: pa.Table) -> bool:
    """Register the flow as files_in, producers_in ... and make the tables above.

    Returns whether some task was tried more than once.
    """
    for name in ("files", "producers", "consumers", "edges"):
        con.register(f"{name}_in", getattr(flow, name))
    con.register("tasks_in", tasks)
    found = con.execute("select coalesce(max(attempt), 1) > 1 from tasks_in").fetchone()
    retried = bool(found and found[0])
    con.execute(_TASKS_WITH_RETRIES if retried else _TASKS)
    con.execute(_ENGINES)
    con.execute(_EDGES_WITH_RETRIES if retried else _EDGES)
    con.execute(_PRODUCERS_WITH_RETRIES if retried else _PRODUCERS)
    con.execute(_OWNERS)
    con.execute(_SEEN.format(**(_LAST_ATTEMPT if retried else _PLAIN)))
    con.execute(_SELFISH)
    selfish = con.execute("select 1 from selfish limit 1").fetchone()
    less = "anti join selfish using (file, who)" if selfish else ""
    con.execute(_CONSUMERS.format(less=less))
    con.execute(_PEEKS)
    mixed = "select file from pk where 0 < peeks and peeks < readers and peeked > most"
    if con.execute(f"{mixed} limit 1").fetchone():
        spans = spans_sql(RANGED.format(readers="co", files=mixed))
        con.execute(_PEEKS_OF_MOST.format(covered=covered_sql(spans)))
    aside = con.execute("select 1 from pk where not decides limit 1").fetchone()
    con.execute(_EFFECTIVE.format(kind="table" if aside else "view", less=_ASIDE if aside else ""))
    return retried
