"""Table of all recorded accesses with task and file version, for users to inspect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

# A lineage of one version needs no search. Otherwise choose a version that the task used in the
# same way, preferably one in use at that time, else the last one that it used.
_ACCESSES = """
with used as (
    select file, task, true as reads, first_s, last_s from consumers
    union all select file, task, false, first_s, last_s from producers),
single as (
    select lineage, any_value(file) as file from versions group by lineage having count(*) = 1),
records as (
    select x.row, proc_task.task, x.host, x.proc, coalesce(single.file, -1) as sole, lineage,
        op, how, start, length, stride, "count", ops, bytes, exact,
        (first_ns - {zero}) / 1e9 as first_s, (last_ns - {zero}) / 1e9 as last_s
    from extents x left join proc_task using (proc) left join objects on objects.key = x.file
    left join single using (lineage)),
found as (
    select row, used.file
    from records join versions using (lineage)
    join used on used.file = versions.file and used.task = records.task and reads = (op = 'read')
    where sole < 0
    qualify row_number() over (partition by row
        order by records.first_s between used.first_s and used.last_s desc, used.file desc) = 1)
select task, case when sole >= 0 then sole else found.file end as file, op, how, start, length,
    stride, "count", ops, bytes, first_s, last_s, exact, host, proc
from records left join found using (row) order by row
"""


def accesses(bundle: Bundle, analysis: Analysis) -> pa.Table:
    """Return one row per record of the table `extents`, in recording order.

    Columns: task, file (rows of `analysis.tasks` and `.files`; null where there is none), op,
    how, start, length, stride, count, ops, bytes, first_s, last_s, exact, host, proc.
    """
    import numpy as np
    import pyarrow as pa

    from tracehint.analyzer import roots as root_paths
    from tracehint.analyzer.arrays import column
    from tracehint.analyzer.dataflow.accesses import EpochTasks
    from tracehint.analyzer.dataflow.identity import build_objects
    from tracehint.analyzer.execution.resources import connect
    from tracehint.analyzer.roots import data_roots
    from tracehint.analyzer.tasks.segmentation import segment_tasks

    segmented = segment_tasks(bundle, analysis.options)
    roots = data_roots(bundle, analysis.options.data_roots, segmented)
    procs = EpochTasks(segmented.proc_task, np.sort(column(segmented.tasks, "task")))
    objects = build_objects(bundle, procs.of, lambda p: root_paths.classify_paths(p, roots))
    extents = bundle.tables["extents"]
    tables = {
        "extents": extents.append_column("row", pa.array(np.arange(extents.num_rows))),
        "proc_task": segmented.proc_task,
        "objects": pa.table(
            {"key": objects.file_ids, "lineage": objects.lineage[objects.file_obj]}
        ),
        "versions": analysis.files.select(["file", "lineage"]),
        "consumers": analysis.consumers.drop_columns(["ranges", "how"]),
        "producers": analysis.producers.drop_columns(["ranges", "how"]),
    }
    con = connect()
    try:
        for name, table in tables.items():
            con.register(name, table)
        return con.sql(_ACCESSES.format(zero=bundle.manifest.started_ns)).to_arrow_table()
    finally:
        con.close()
