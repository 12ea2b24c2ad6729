"""One row per path of a run: what the hint rules are learned from.

Everything that grows with the run is SQL over the analysis tables. A store
places a file when it is created, so a path has one label: that of the version
whose placement saves most.
"""

from __future__ import annotations

import pyarrow as pa

from tracehint.analyzer.catalogue import asking_for
from tracehint.analyzer.model import Analysis
from tracehint.hintgen import relation
from tracehint.hintgen.hints.mapping import PATTERN_HINTS
from tracehint.hintgen.last_reader import add_last_reader
from tracehint.hintgen.typesets import add_type_sets

GROUP_BITS = 40  # of a group's number, where facts of several runs are joined; above it: the run

# Columns: path (binary), file, label (primary pattern), pattern (the same where it gives hints,
# else ""), confidence, saves_bytes, pays, grp, group_task, group_bytes,
# size_bytes, role, deleted, producers, consumers (lists of task numbers, peeks aside),
# producer_types, consumer_types (sorted lists), use, region_bytes, region_align, random,
# reread, last_reader (null: none that is last whatever the timing).
_MADE = """
create or replace temp table made as
select file, list_sort(list(distinct task)) as tasks from writers group by file
"""

# Where nothing is known about times (a declared run), nobody can say that readers overlap:
# `untimed` broadcasts count as paying from the cost of a call on.
# A reader that only peeks does not count, unless all do.
_READ = """
create or replace temp table read as
with c as (
  select file, task, type, first_s, bytes, unique_bytes, len(ranges) as pieces from readers
  where not coalesce(peek, false)
     or file not in (select file from readers where not coalesce(peek, false))
)
select file, list_sort(list(distinct task)) as tasks,
       list_sort(list(distinct type)) as types,
       median(case when unique_bytes > 0 then bytes / unique_bytes end) as reread,
       bool_and(first_s is null) as untimed, max(pieces) as pieces,
       median(unique_bytes) as median_read
from c group by file
"""

_LABEL = """
create or replace temp table label as
select file, arg_max(pattern, coalesce(confidence, 0)) as pattern,
       max(coalesce(confidence, 0)) as confidence,
       max(coalesce(saves_bytes, 0)) as saves_bytes, max("group") as grp,
       bool_or(coalesce(placement, '') <> 'default') as pays
from patterns where "primary" group by file
"""

# Regions: from what scatter readers read, or gather writers wrote.
_REGION = """
create or replace temp table region as
with r as (
  select c.file, unnest(c.ranges) as r from consumers c join label using (file)
  where pattern = 'scatter' and not coalesce(c.peek, false)
  union all
  select p.file, unnest(p.ranges) as r from producers p join label using (file)
  where pattern = 'gather' and not coalesce(p.superseded, false)
)
select file, median(r[2] - r[1])::bigint as region_bytes,
       list(distinct r[1]) as starts
from r where r[2] > r[1] group by file
"""

_USE = """
create or replace temp table use as
with one as (
  select m.file, r.tasks[1] as reader, unnest(m.tasks) as maker
  from made m join read r using (file) where len(r.tasks) = 1
), into_ as (select reader, count(distinct maker) as n from one group by reader),
out_ as (select maker, count(distinct reader) as n from one group by maker)
select file, bool_or(i.n >= 2) as gathers, bool_or(o.n >= 2) as spreads
from one join into_ i using (reader) join out_ o using (maker) group by file
"""

_ALL = """
with versions as (
  select f.*, l.pattern, l.confidence, l.saves_bytes, l.grp, l.pays,
         row_number() over (
           partition by f.path
           order by (l.pattern is not null) desc, coalesce(l.saves_bytes, 0) desc,
                    coalesce(f.size_bytes, 0) desc, f.version, f.file
         ) as rank
  from files f left join label l using (file)
  where f.role in ('input', 'intermediate', 'output') and f.path is not null
)
select v.path, v.file, coalesce(v.pattern, '') as label,
       case when v.pattern in {hinted} then v.pattern else '' end as pattern,
       coalesce(v.confidence, 0) as confidence,
       coalesce(v.saves_bytes, 0) as saves_bytes, v.grp, g.task as group_task,
       g.bytes as group_bytes,
       coalesce(v.pays or (v.pattern in {replicated} and r.untimed
                           and v.size_bytes >= {call_cost}), false) as pays,
       coalesce(v.size_bytes, 0) as size_bytes, v.role, coalesce(v.deleted, false) as deleted,
       coalesce(m.tasks, []) as producers, coalesce(r.tasks, []) as consumers,
       coalesce(t.words, []) as producer_types, coalesce(r.types, []) as consumer_types,
       case when r.tasks is null then 'unread'
            when len(r.tasks) >= 2 then 'shared'
            when m.tasks is null then 'input_once'
            when u.gathers and u.spreads then 'fan_both'
            when u.gathers then 'fan_in'
            when u.spreads then 'fan_out'
            else 'one_to_one' end as use,
       e.region_bytes, e.starts,
       coalesce(r.pieces > 16 and r.median_read / r.pieces < 65536, false) as random,
       r.reread, z.type as last_reader
from versions v left join made m using (file) left join read r using (file)
left join use u using (file) left join region e using (file)
left join last_reader z using (file) left join type_set s using (file)
left join type_words t on t.number = s.made
left join groups g on g."group" = v.grp
where v.rank = 1 order by v.path
"""


def facts_of(analysis: Analysis) -> pa.Table:
    """One row per path below the data roots, inputs, intermediates and outputs only."""
    import duckdb

    con = duckdb.connect()
    for name, table in analysis.tables().items():
        con.register(name, table)
    con.execute(relation.VIEWS)
    add_type_sets(con)
    for statement in (_MADE, _READ, _LABEL, _REGION, _USE):
        con.execute(statement)
    add_last_reader(con)
    query = _ALL.format(
        hinted=tuple(PATTERN_HINTS),
        replicated=asking_for("replication"),
        call_cost=int(analysis.options.call_cost_bytes),
    )
    result: pa.Table = con.sql(query).to_arrow_table()
    con.close()
    return result


_PER_PAIR = """
with pairs as (
  select producer_types, consumer_types, count(*) as files from facts
  where len(producers) > 0 and len(consumers) > 0
  group by producer_types, consumer_types, producers, consumers
)
select producer_types, consumer_types,
       case when min(files) = max(files) then max(files) else 0 end as most
from pairs group by producer_types, consumer_types having count(*) > 1
"""


def files_per_pair(facts: pa.Table) -> dict[tuple[tuple[str, ...], tuple[str, ...]], int]:
    """(producing types, consuming types) -> files with the same producers and consumers.

    0: it was not always the same number. Pairs of types with one pair of tasks are left out: what
    was seen once may follow the scale.
    """
    import duckdb

    con = duckdb.connect()
    con.register("facts", facts)
    rows = con.sql(_PER_PAIR).fetchall()
    con.close()
    return {(tuple(made), tuple(read)): most for made, read, most in rows}


def run_of(group: int) -> int:
    """The run that a group of joined facts belongs to."""
    return group >> GROUP_BITS


def nodes_of(analysis: Analysis) -> int:
    """Nodes that the analysis was made for, at least 2."""
    return max(2, int(analysis.run.get("nodes") or 0))
