"""What a run that has not happened yet takes over from those that have: times, sizes, bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.analyzer.sql import connect
from tracehint.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis

# Medians by type of task, by template of the name (digits as one), and by type and ending.
_LEARN = """
create temp table times as
    select type, median(end_s - start_s) as seconds from seen_tasks
    where not coalesce(engine, false) and end_s is not null group by type;
create temp table sizes as
    select key, median(size_bytes) as size from seen_files
    where size_bytes is not null group by key;
create temp table kinds as
    select type, ending, median(size_bytes) as size from seen_files
    join seen_producers using (run, file) join seen_tasks using (run, task)
    where size_bytes is not null group by all;
create temp table covers as
    select type, key, median(cover) as cover from seen_consumers
    join seen_tasks using (run, task) join seen_files using (run, file)
    where cover is not null group by all;
create temp table made as
    select file, any_value(type order by task) as type
    from producers join tasks using (task) group by file;
create temp table sized as
    select file, coalesce(size_bytes, sizes.size, kinds.size)::bigint as size_bytes,
        size_bytes is null and coalesce(sizes.size, kinds.size) is not null as learned,
        size_bytes is null and coalesce(sizes.size, kinds.size) is null as unknown
    from files left join sizes using (key) left join made using (file)
    left join kinds on kinds.type = made.type and kinds.ending = files.ending
"""
_TASKS = """
select tasks.* exclude (start_s, end_s),
    case when end_s is null and seconds is not null then coalesce(start_s, 0) else start_s end
        as start_s,
    coalesce(end_s, coalesce(start_s, 0) + seconds) as end_s
from tasks left join times using (type) order by task
"""
_FILES = """
select files.* exclude (size_bytes, key, ending), sized.size_bytes
from files left join sized using (file) order by file
"""
# What is declared only moves no byte that anybody saw.
_PRODUCERS = """
select p.* exclude (unique_bytes), case when learned and coalesce(p.unique_bytes, 0) = 0
    then sized.size_bytes else p.unique_bytes end as unique_bytes
from producers p left join sized using (file) order by p.file, p.task
"""
_CONSUMERS = """
select c.* exclude (unique_bytes), case when learned and coalesce(c.unique_bytes, 0) = 0
    then (sized.size_bytes * coalesce(covers.cover, 1))::bigint else c.unique_bytes end
    as unique_bytes
from consumers c left join sized using (file) left join tasks using (task)
left join files using (file) left join covers on covers.type = tasks.type and covers.key = files.key
order by c.file, c.task
"""
_FILLED = {"tasks": _TASKS, "files": _FILES, "producers": _PRODUCERS, "consumers": _CONSUMERS}
_COUNTS = """
select (select count(*) from tasks where end_s is null and not coalesce(engine, false)),
    (select count(*) from tasks join times using (type)
        where end_s is null and not coalesce(engine, false)),
    (select count(*) filter (learned) from sized), (select count(*) filter (unknown) from sized)
"""


def learned(analysis: Analysis, runs: Sequence[Analysis]) -> tuple[Analysis, list[str]]:
    """The analysis with times, sizes and bytes of `runs` where it has none, and notes about it.

    Raises InputError where the runs know nothing that is missing.
    """
    con = connect()
    try:
        for name in ("tasks", "files", "producers", "consumers"):
            own = getattr(analysis, name)
            con.register(name, _keyed(own) if name == "files" else own)
            con.register(f"seen_{name}", _joined([getattr(run, name) for run in runs]))
        con.execute(_LEARN)
        bare, timed, sized, unknown = con.execute(_COUNTS).fetchall()[0]
        tables = {
            name: con.sql(text).to_arrow_table().select(getattr(analysis, name).column_names)
            for name, text in _FILLED.items()
        }
    finally:
        con.close()
    if not timed and not sized and (bare or unknown):
        raise InputError(
            "the runs to learn from know neither the task types nor the file names of this one",
            "Give --learned a run of the same workflow.",
        )
    return dataclasses.replace(analysis, **tables), [
        f"learned from {len(runs)} run{'s' * (len(runs) > 1)}: the times of {timed} tasks and the "
        f"sizes of {sized} files; unknown stay {bare - timed} times and {unknown} sizes"
    ]


def _keyed(files: pa.Table) -> pa.Table:
    """With the template of the path (digits as one) and its ending."""
    import pyarrow.compute as pc

    path = files.column("path")
    key = pc.replace_substring_regex(path, rb"[0-9]+", b"0")
    ending = pc.replace_substring_regex(key, rb"(?s)^.*?((?:\.[^./]*)?)$", rb"\1")
    return files.append_column("key", key).append_column("ending", ending)


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables of several runs, with the number of the run."""
    import pyarrow as pa

    parts = []
    for number, table in enumerate(tables):
        keyed = _keyed(table) if "path" in table.column_names else table
        run = pa.array([number] * keyed.num_rows, pa.int64())
        parts.append(keyed.append_column("run", run))
    return pa.concat_tables(parts, promote_options="permissive")
