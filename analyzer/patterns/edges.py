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

_LABELS = """
select row_number() over (order by file, is_primary desc, pattern, grp) - 1 as row, k, file,
    pattern, is_primary as "primary", confidence, grp as "group", placement, saves_bytes,
    saves_wait_bytes, runner_up, runner_up_saves_bytes, sure_order
from (select k, file, pattern, grp from label)
join (select * exclude (file, grp) from chosen) using (k) join conf using (k)
order by row
"""

# Where all labels of the file hold so does its primary; else gather is the only one.
_ON_EDGES = """
with counted as (
    select e.edge, e.file, e.uncertain, aside.file is null as counts
    from e left join (
        select file, who as cw from co
        where peek and file in (select file from pk where not decides)) aside using (file, cw))
select edge, row, "primary" or not counts as "primary",
    confidence / sure_order * case when uncertain then 0.5 else 1 end as confidence
from full_label join counted using (file)
where counts or pattern in ('gather', 'concurrently_shared')
order by edge, row
"""
_COPIED = ("file", "pattern", "group", "placement", "saves_bytes", "saves_wait_bytes", "runner_up",
           "runner_up_saves_bytes")  # fmt: skip
_TEXTS = ("pattern", "placement", "runner_up")


def patterns_table(con: duckdb.DuckDBPyConnection, texts: pa.Table) -> pa.Table:
    """Table `patterns` of analyzer.model: the files' own labels, sorted by file, then the edges'.

    `texts` are those of `evidence.write`.

    The text columns are dictionaries: few texts are distinct, and the edges copy numbers.
    """
    import numpy as np
    import pyarrow as pa

    from tracehint.analyzer.model import PATTERNS

    labels = _encoded(con.sql(_LABELS).to_arrow_table())
    at = np.empty(texts.num_rows + 1, np.int64)  # labels are numbered from 1
    at[texts.column("k").to_numpy()] = np.arange(texts.num_rows)
    rows = pa.array(at[labels.column("k").to_numpy()])
    for name in ("evidence", "short"):
        labels = labels.append_column(name, texts.column(name).take(rows))
    narrow = labels.select(["row", "file", "pattern", "primary", "confidence", "sure_order"])
    con.register("full_label", narrow)
    edges = con.sql(_ON_EDGES).to_arrow_table()
    con.unregister("full_label")
    own = labels.append_column("edge", pa.nulls(labels.num_rows, pa.int64()))
    rows = edges.column("row").combine_chunks()
    copies = {name: labels.column(name).take(rows) for name in _COPIED}
    copies["evidence"] = labels.column("short").take(rows)
    copies |= {name: edges.column(name) for name in ("edge", "primary", "confidence")}
    del labels, edges, narrow, rows
    tables = [own, pa.table(copies)]
    return pa.concat_tables(t.select(PATTERNS.names).cast(PATTERNS) for t in tables)


def _encoded(labels: pa.Table) -> pa.Table:
    """The text columns as one array of numbers and the distinct texts each."""
    for name in _TEXTS:
        at = labels.schema.get_field_index(name)
        labels = labels.set_column(at, name, labels.column(name).dictionary_encode())
    return labels.unify_dictionaries().combine_chunks()
