"""Chains of pipeline files: a task with one task before it and one after it links two files.

Temporary table made here:
    chain   file, position (1 = first), length (files one after another)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

# A pair of tasks joined by at least one pipeline file; `after` is the pair that follows when
# the consumer of this one has a single predecessor and a single successor.
_PAIRS = """
create temp table pair as
with piped as (select file, p, c from single semi join
        (select file from lab where pattern = 'pipeline') using (file) where alone),
pairs as (select p, c, row_number() over (order by p, c) - 1 as k from piped group by p, c),
ins as (select c as task, count(*) as n from pairs group by c),
outs as (select p as task, count(*) as n, min(k) as k from pairs group by p)
select pairs.k, p, c, outs.k as after
from pairs left join (select * from outs semi join (select task from ins where n = 1)
    using (task) where n = 1) outs on outs.task = pairs.c
order by pairs.k
"""

_CHAIN = """
create temp table chain as
select file, position, length from single
join (select * from pair join place_in using (k)) q on q.p = single.p and q.c = single.c
where alone
"""


def place(after: Any) -> tuple[Any, Any]:
    """Position from 1 and length of the chain of each element.

    `after[k]` is the element that follows k, or -1; no element follows two others. Cycles
    cannot occur (they are concurrently shared); if one did, its positions are just numbers.
    """
    import numpy as np

    count = len(after)
    before = np.full(count, -1, np.int64)
    linked = np.flatnonzero(after >= 0)
    before[after[linked]] = linked

    def distance(step: Any) -> Any:
        # Pointer doubling: hops to the end of the chain in log2(length) rounds.
        hops, jump = (step >= 0).astype(np.int64), step.copy()
        for _ in range(64):
            active = np.flatnonzero(jump >= 0)
            if not len(active):
                break
            target = jump[active]
            hops[active] += hops[target]
            jump[active] = jump[target]
        return hops

    ahead, behind = distance(after), distance(before)
    return behind + 1, behind + ahead + 1


def number(con: duckdb.DuckDBPyConnection) -> None:
    """Make the table above."""
    import numpy as np
    import pyarrow as pa

    con.execute(_PAIRS)
    pairs = con.execute("select k, coalesce(after, -1) as after from pair order by k").fetchnumpy()
    after = np.asarray(pairs["after"], np.int64)
    position, length = place(after)
    con.register("place_in", pa.table({"k": pairs["k"], "position": position, "length": length}))
    con.execute(_CHAIN)
    con.unregister("place_in")
