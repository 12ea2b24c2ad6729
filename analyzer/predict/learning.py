"""Times, sizes and bytes of a run that has not happened yet, learned from recorded runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.analyzer.execution.resources import connect
from tracehint.errors import InputError
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis

# A type matches itself, else without the counter at its end: make_7 is learned from make_3 or make.
# Values are medians: times by type; sizes by path template (runs of digits as "0"), else by type
# and template of the file name, else by type and suffix; of inputs by template of the file name.
# A size of 0 is a placeholder's (nextflow -stub-run) if other runs have a larger one; the time of a
# task with only such outputs is ignored. Waiting for files is not learned. Recorded times have
# priority over those of an engine's log, in which waiting for slots counts as computing.
_LEARN = """
create temp macro stem(type) as
    coalesce(nullif(regexp_replace(type, '[-_.:#/ ]*[0-9]+$', ''), ''), type);
create temp table seen_kinds as
    select distinct type, unnest([type, stem(type)]) as kind from seen_tasks;
create temp table own_kinds as
    select type, case when type in (select kind from seen_kinds) then type else stem(type) end
        as kind
    from (select distinct type from tasks);
create temp table times as
    select kind, source is distinct from 'declared' as recorded,
        median(end_s - start_s - coalesce(io_wait_s, 0)) as seconds,
        bool_and(io_wait_s is not null) as alone
    from seen_tasks join seen_kinds using (type)
    where not coalesce(engine, false) and end_s is not null group by kind, recorded
    qualify row_number() over (partition by kind order by recorded desc) = 1;
create temp table sizes as
    select key, median(size_bytes) as size from seen_files
    where size_bytes is not null group by key;
create temp table seen_made as
    select kind, base, ending, size_bytes from seen_files join seen_producers using (run, file)
    join seen_tasks using (run, task) join seen_kinds using (type) where size_bytes is not null;
create temp table bases as
    select kind, base, median(size_bytes) as size from seen_made group by all;
create temp table endings as
    select kind, ending, median(size_bytes) as size from seen_made group by all;
create temp table inputs as
    select base, median(size_bytes) as size from seen_files
    anti join seen_producers using (run, file) where size_bytes is not null group by all;
create temp table seen_covers as
    select kind, key, base, cover from seen_consumers join seen_tasks using (run, task)
    join seen_kinds using (type) join seen_files using (run, file) where cover is not null;
create temp table covers as
    select kind, key, median(cover) as cover from seen_covers group by all;
create temp table base_covers as
    select kind, base, median(cover) as cover from seen_covers group by all;
create temp table made as
    select file, any_value(kind order by task) as kind
    from producers join tasks using (task) join own_kinds using (type) group by file;
create temp table guessed as
    select file, size_bytes, coalesce(sizes.size, bases.size, endings.size,
        case when made.kind is null then inputs.size end)::bigint as guess
    from files left join sizes using (key) left join made using (file)
    left join bases on bases.kind = made.kind and bases.base = files.base
    left join endings on endings.kind = made.kind and endings.ending = files.ending
    left join inputs on inputs.base = files.base;
create temp table sized as
    select file, coalesce(nullif(size_bytes, 0), guess, size_bytes) as size_bytes,
        coalesce(size_bytes, 0) = 0 and coalesce(guess, 0) > 0 as learned,
        size_bytes is null and guess is null as unknown
    from guessed;
create temp table stubs as
    select task from producers join files using (file) join sized using (file) group by task
    having bool_and(files.size_bytes = 0) and bool_or(sized.learned);
create temp table own_times as
    select task,
        end_s is not null and coalesce(source = 'declared' and recorded, false) as replaced,
        case when replaced or task in (select task from stubs) then null else end_s end as end_s
    from tasks left join own_kinds using (type) left join times using (kind);
create temp table timed as
    select task, seconds, alone from tasks join own_kinds using (type) join times using (kind)
"""
_TASKS = """
select tasks.* exclude (start_s, end_s, io_wait_s, source),
    case when own_times.end_s is null and seconds is not null then 'learned' else source end
        as source,
    case when own_times.end_s is null and alone then 0 else io_wait_s end as io_wait_s,
    case when tasks.end_s is null and seconds is not null then coalesce(start_s, 0) else start_s end
        as start_s,
    coalesce(own_times.end_s, coalesce(start_s, 0) + seconds) as end_s
from tasks join own_times using (task) left join timed using (task) order by task
"""
_FILES = """
select files.* exclude (size_bytes, key, base, ending), sized.size_bytes
from files left join sized using (file) order by file
"""
# Accesses that are only declared have no recorded bytes.
_PRODUCERS = """
select p.* exclude (unique_bytes), case when learned and coalesce(p.unique_bytes, 0) = 0
    then sized.size_bytes else p.unique_bytes end as unique_bytes
from producers p left join sized using (file) order by p.file, p.task
"""
_CONSUMERS = """
select c.* exclude (unique_bytes), case when learned and coalesce(c.unique_bytes, 0) = 0
    then (sized.size_bytes * coalesce(covers.cover, base_covers.cover, 1))::bigint
    else c.unique_bytes end as unique_bytes
from consumers c left join sized using (file) left join tasks using (task)
left join own_kinds using (type) left join files using (file)
left join covers on covers.kind = own_kinds.kind and covers.key = files.key
left join base_covers on base_covers.kind = own_kinds.kind and base_covers.base = files.base
order by c.file, c.task
"""
_FILLED = {"tasks": _TASKS, "files": _FILES, "producers": _PRODUCERS, "consumers": _CONSUMERS}
_COUNTS = """
select (select count(*) from tasks join own_times using (task)
        where own_times.end_s is null and not coalesce(engine, false)),
    (select count(*) from tasks join own_times using (task) join timed using (task)
        where own_times.end_s is null and not coalesce(engine, false)),
    (select count(*) filter (replaced) from own_times),
    (select count(*) filter (learned) from sized), (select count(*) filter (unknown) from sized)
"""


def learn_times(analysis: Analysis, runs: Sequence[Analysis]) -> tuple[Analysis, list[str]]:
    """Return the analysis with missing times, sizes and bytes learned from `runs`, and notes.

    Raises InputError if data is missing and the runs provide none of it.
    """
    con = connect()
    try:
        for name in ("tasks", "files", "producers", "consumers"):
            own = getattr(analysis, name)
            con.register(name, _add_templates(own) if name == "files" else own)
            con.register(f"seen_{name}", _concat_runs([getattr(run, name) for run in runs]))
        con.execute(_LEARN)
        bare, timed, replaced, sized, unknown = con.execute(_COUNTS).fetchall()[0]
        tables = {
            name: con.sql(text).to_arrow_table().select(getattr(analysis, name).column_names)
            for name, text in _FILLED.items()
        }
    finally:
        con.close()
    if not timed and not sized and (bare or unknown):
        raise InputError(
            "the learned runs contain neither the task types nor the file names of this one",
            "Give --learned a run of the same workflow.",
        )
    notes = [
        f"the times of {plural(replaced, 'task')} are those of the recorded runs, not of the "
        "engine's log, in which waiting for slots and files counts as computing"
    ]
    return dataclasses.replace(analysis, **tables), [
        *(notes if replaced else []),
        f"learned from {plural(len(runs), 'run')}: the times of {plural(timed, 'task')} and the "
        f"sizes of {plural(sized, 'file')}; unknown: {plural(bare - timed, 'time')}, "
        f"{plural(unknown, 'size')}",
    ]


def _add_templates(files: pa.Table) -> pa.Table:
    """Add columns: template of the path (runs of digits as "0"), of its file name, and suffix."""
    import pyarrow.compute as pc

    path = files.column("path")
    key = pc.replace_substring_regex(path, rb"[0-9]+", b"0")
    base = pc.replace_substring_regex(key, rb"(?s)^.*/", b"")
    ending = pc.replace_substring_regex(key, rb"(?s)^.*?((?:\.[^./]*)?)$", rb"\1")
    made = {"key": key, "base": base, "ending": ending}
    for name, values in made.items():
        files = files.append_column(name, values)
    return files


def _concat_runs(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate the tables of several runs, with a column for the number of the run."""
    import pyarrow as pa

    parts = []
    for number, table in enumerate(tables):
        keyed = _add_templates(table) if "path" in table.column_names else table
        run = pa.array([number] * keyed.num_rows, pa.int64())
        parts.append(keyed.append_column("run", run))
    return pa.concat_tables(parts, promote_options="permissive")
