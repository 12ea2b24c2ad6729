"""Tasks that feed each other both ways, and files with too many versions.

Temporary table made here:
    cyc   file, tasks (number of tasks in the component), reason (cycle, versions)

The flow folds such files into one row each and marks them; the search here also covers tables
that come from elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

    from tracehint.analyzer.model import Options

_ROUNDS = 64

# A cycle needs an edge that points back in any total order of the tasks: without one (nearly
# every run: producers start first) there is nothing to look for.
_BACKWARD = """
select 1 from e
join tasks_in p on p.task = pw join tasks_in c on c.task = cw
where (p.start_s, pw) > (c.start_s, cw) limit 1
"""

_CYCLES = """
create temp table cyc as
with versions as (
    select lineage from files_in where role <> 'software'
    group by lineage having count(*) > {max_versions}),
size as (select component, count(*) as tasks from component group by component),
cyclic as (
    select file, max(size.tasks) as tasks from e
    join component p on p.task = pw join component c on c.task = cw
    join size on size.component = p.component
    where p.component = c.component group by file),
both_ways as (select file from pr semi join co using (file, who))
select file, tasks, 'cycle' as reason from cyclic
union all
select file, null as tasks, case when file in (select file from both_ways) then 'cycle'
    else 'versions' end as reason
from files_in anti join cyclic using (file)
where role <> 'software' and (coalesce(concurrent, false) or lineage in (from versions))
"""


def components(pairs: Any) -> Any:
    """Strongly connected components with at least two tasks.

    `pairs` is an int64 array of shape (edges, 2); the result an int64 array of shape
    (members, 2): task, component. Tasks without a way in or out are peeled off first, so
    the search itself sees only the neighbourhood of the cycles.
    """
    import numpy as np

    for _ in range(_ROUNDS):
        keep = np.isin(pairs[:, 0], pairs[:, 1]) & np.isin(pairs[:, 1], pairs[:, 0])
        if keep.all():
            break
        pairs = pairs[keep]
    if not len(pairs):
        return np.empty((0, 2), np.int64)
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(pairs.tolist())
    found = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    rows = [(task, k) for k, members in enumerate(found) for task in members]
    return np.array(rows, np.int64).reshape(-1, 2)


def find(con: duckdb.DuckDBPyConnection, options: Options) -> None:
    """Make the table above from `e` and the files' versions."""
    con.execute("create temp table component (task bigint, component bigint)")
    if con.execute(_BACKWARD).fetchone():
        import numpy as np
        import pyarrow as pa

        columns = con.execute("select distinct pw, cw from e").fetchnumpy()
        rows = components(np.column_stack([columns["pw"], columns["cw"]]))
        found = pa.table({"task": rows[:, 0].copy(), "component": rows[:, 1].copy()})
        con.register("found_in", found)
        con.execute("insert into component select task, component from found_in")
        con.unregister("found_in")
    con.execute(_CYCLES.format(max_versions=options.max_versions))
