"""Placements, what each moves over the network, and the choice among them (docs/patterns.md).

A label asks for one placement (broadcast for one of a few replica counts). Placements are
compared by the bytes over the busiest link that wait after the last producer, then by all
bytes over the network, then by the number of copies, then by the default order.

Temporary tables made here:
    fc    per file: s, n, u (mean bytes per reader), net0, wait0 (the default placement)
    best  k, file, grp, ord, placement, net, wait, copies     each label's own placement
    chosen     k, file, grp, is_primary, placement, savings, runner-up, costs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Options

# Default order of the primary where the costs are the same.
ORDER = (
    "concurrently_shared", "scatter", "gather", "broadcast", "reduce", "distribute", "pipeline",
    "partly_shared", "stage_in", "stage_out",
)  # fmt: skip

# placement -> (network bytes, busiest link while reading); s bytes, n readers of u bytes each.
DEFAULTS = {
    "striped": (
        "(nodes - 1) / nodes * (s + n * u)",
        "case when n = 0 then 0 else greatest(u, n * u / nodes) end",
    ),
    "one-node": ("(nodes - 1) / nodes * (s + n * u)", "(nodes - 1) / nodes * n * u"),
    "local": ("(nodes - 1) / nodes * n * u", "(nodes - 1) / nodes * n * u"),
}  # fmt: skip

# pattern, placement, network, waiting, copies. `home` is the share of the bytes that is where
# it is needed: see _FACTS. `r` runs over the replica counts worth trying.
_PLACEMENTS = (
    ("pipeline", "'local'", "u * (1 - home)", "u * (1 - home)", "1"),
    ("stage_in", "'local'", "0", "0", "1"),
    ("scatter", "'scatter'", "s * (nodes - 1) / nodes", "0", "1"),
    ("reduce", "'collocation'", "u * (1 - home)", "0", "1"),
    ("distribute", "'balanced'", "u * (1 - home)", "0", "1"),
    (
        "gather",
        "'regions'",
        "case when n = 0 then 0 when n = 1 then s * (1 - home)"
        " else (nodes - 1) / nodes * n * u end",
        "case when n < 2 then 0 else greatest(u, n * u / least(nodes, np)) end",
        "1",
    ),
    *(
        (
            pattern,
            "case when r < 2 then 'default' else 'replicas=' || r end",
            "case when r < 2 then net0 else (r - 1) * s + remote * u end",
            "case when r < 2 then wait0 else greatest(u, remote * u / r) end",
            "r",
        )
        for pattern in ("broadcast", "partly_shared")
    ),
)

_COSTS = """
create temp table fc as
select fv.file, fv.s::double as s, fv.n::double as n, fv.np, nodes,
    case when fv.n > 0 then fv.u_sum / fv.n else 0 end as u, coalesce(rt.together, 1) as together,
    owned_max, owned_sum
from (select *, {nodes}::double as nodes from fv) fv
left join rt using (file) left join ws using (file)
"""

# Where a consumer has several pipeline inputs it can run at one of their producers only, and
# a producer's node can take one consumer without a queue: `home` is the smaller share.
_PIPELINE_HOME = """
create temp table piped as
with files as (select file, p, c, u::double as u from single
    semi join (select file from lab where pattern = 'pipeline') using (file) where alone),
pairs as (select p, c, sum(u) as bytes from files group by p, c),
ins as (select c, max(bytes) as most, sum(bytes) as total from pairs group by c),
outs as (select p, max(bytes) as most, sum(bytes) as total from pairs group by p)
select file, least(case when ins.total > 0 then ins.most / ins.total else 1 end,
    case when outs.total > 0 then outs.most / outs.total else 1 end) as home
from files join ins using (c) join outs using (p)
"""

# With more partners than nodes, a node that takes the group holds 1/N of it anyway.
_FACTS = """
create temp table facts as
select k, lab.file, lab.pattern, lab.grp, fc.* exclude (file),
    case lab.pattern
        when 'pipeline' then coalesce(piped.home, 1)
        when 'gather' then greatest(1 / nodes, case when owned_sum > 0 then owned_max / owned_sum
            else 0 end)
        else greatest(1 / nodes, case when grp.bytes > 0 then least(1, grp.largest / grp.bytes)
            else 0 end)
        end as home
from label lab join fc using (file) left join piped using (file) left join grp using (grp)
"""

# One copy per 3 or per 2 simultaneous readers; fewer than two copies are no replication. With
# more readers than nodes several run beside each copy: n - r readers are remote, or their share.
_REPLICAS = """
select *, greatest(0, n - r * greatest(1, n / nodes)) as remote from (
select distinct k, facts.file, pattern, grp, s, n, u, nodes, net0, wait0,
    least(nodes, n, greatest(least(2, together), x))::int as r
from (select *, unnest([ceil(together / 3), ceil(together / 2)]) as x
    from facts where pattern in ('broadcast', 'partly_shared')) facts
join base using (file))
"""

_ONE_COUNT = " qualify row_number() over (partition by file order by {wait}, {net}, r) = 1"

_OFFERS = """
create temp table offers as
select best.*, wait0, net0, wait < wait0 or (wait = wait0 and net < net0) as pays
from best join base using (file)
"""

# Of the groups of one file only the one that saves most stands for it.
_LOSERS = """
create temp table losers as
with rivals as (
    select file from offers where grp is not null group by file having count(*) > 1),
totals as (
    select grp, sum(wait0 - wait) as wait, sum(net0 - net) as net
    from offers where grp is not null group by grp)
select k from offers join totals g using (grp) semi join rivals using (file)
qualify row_number() over (partition by file order by g.wait desc, g.net desc, ord) > 1
"""

# Equal costs get one number, in their order of preference: few numbers are compared and kept
# per file instead of rows. The default placement takes part with number 99.
_FIELD = """
create temp table field as
select file, wait, net, copies, ord, placement, k, pays, grp, wait0, net0 from offers
union all by name
select file, wait0 as wait, net0 as net, 1 as copies, 99 as ord, 'default' as placement
from base semi join offers using (file)
"""
_RANKS = """
create temp table ranks as
select wait, net, copies, ord, placement,
    row_number() over (order by wait, net, copies, ord, placement) as rank
from (select distinct wait, net, copies, ord, placement from field)
"""
_RANKED = """
create temp table ranked as
select field.file, k, grp, pays, wait0, net0, field.wait, field.net, field.copies,
    field.placement, rank
from field join ranks on field.wait is not distinct from ranks.wait
    and field.net is not distinct from ranks.net
    and field.copies = ranks.copies and field.ord = ranks.ord
    and field.placement = ranks.placement
"""

# `one`, `two`: the best placements of the file, the default among them; `k`: its primary label.
_CHOICE = """
create temp table chosen as
with top as (
    select file, min(rank) as one, min(rank, 2)[2] as two from ranked
    where k is null or placement <> 'default' group by file),
first as (
    select file, arg_min(k, rank) as k from {primaries} where k is not null group by file),
own as (
    select ranked.*, first.k is not null as is_primary, one, two,
        case when pays and wait0 - wait + net0 - net >= {call_cost} then placement
            else 'default' end as choice
    from ranked join top using (file) left join first using (k)
    where ranked.k is not null)
select own.k, own.file, grp, is_primary, choice as placement,
    case when choice = 'default' then 0 else round(net0 - own.net) end::bigint as saves_bytes,
    case when choice = 'default' then 0 else round(wait0 - own.wait) end::bigint
        as saves_wait_bytes,
    coalesce(case when a.placement <> choice then a.placement else b.placement end, 'default')
        as runner_up,
    coalesce(round(net0 - case when a.placement <> choice then a.net else b.net end), 0)::bigint
        as runner_up_saves_bytes,
    round(net0)::bigint as net0, round(wait0)::bigint as wait0, round(own.net)::bigint as net,
    round(own.wait)::bigint as wait, own.copies, own.placement as asked
from own join ranks a on a.rank = one left join ranks b on b.rank = two
"""


def choose(con: duckdb.DuckDBPyConnection, options: Options, nodes: int) -> None:
    """Make the tables above from `lab`, `fv` and `grp`, for `nodes` nodes."""
    network, waiting = DEFAULTS[options.default_placement]
    con.execute(_COSTS.format(nodes=max(1, nodes)))
    con.execute(
        f"create temp table base as select file, {network} as net0, {waiting} as wait0 from fc"
    )
    con.execute(_PIPELINE_HOME)
    con.execute(_FACTS)
    order = "case pattern " + " ".join(f"when '{p}' then {k}" for k, p in enumerate(ORDER)) + " end"
    con.execute(
        "create temp table best (k bigint, file bigint, grp bigint, ord int,"
        " placement varchar, net double, wait double, copies int)"
    )
    found = con.execute("select distinct pattern from label").fetchall()
    for pattern, placement, net, wait, copies in _PLACEMENTS:
        if (pattern,) not in found:
            continue
        several = copies == "r"
        con.execute(
            f"insert into best select k, file, grp, {order}, {placement}, {net}, {wait},"
            f" {copies} from {f'({_REPLICAS})' if several else 'facts'} where pattern = '{pattern}'"
            + (_ONE_COUNT.format(wait=wait, net=net) if several else "")
        )
    con.execute(
        f"insert into best select k, file, grp, {order}, 'default', net0, wait0, 1"
        " from label join base using (file)"
        " where pattern in ('concurrently_shared', 'stage_out')"
    )
    con.execute(_OFFERS)
    con.execute(_LOSERS)
    for statement in (_FIELD, _RANKS, _RANKED):
        con.execute(statement)
    some = con.execute("select 1 from losers limit 1").fetchone()
    primaries = "(from ranked anti join losers using (k))" if some else "ranked"
    con.execute(_CHOICE.format(call_cost=options.call_cost_bytes, primaries=primaries))
    con.execute("drop table field; drop table ranked; drop table ranks")
