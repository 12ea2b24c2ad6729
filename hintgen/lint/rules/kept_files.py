"""Files that take space longer, or more often, than the run needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, column, lookup, rank_values
from tracehint.hintgen.file_users import Users, last_readers, members_of
from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context, set_sql
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.summary.tallies import sum_groups
from tracehint.hintgen.text.units import seconds, size
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa


_TEMPORARY_NEVER_DELETED = """\
Intermediate files that are still there when the run ends.

## What it finds
Files that tasks of the run wrote and read (or only their own writer used),
that were not deleted, and that do not look like results. What may be a result is
left alone: files read by independent tasks, and files that the
last tasks only look at (they write less than 5 % of what they read: checks,
indexes, statistics; also in several steps, where each makes one file of one,
as a preview is made). What make and ninja made is left alone too: they build a
file that is missing anew the next time, and all that depends on it.

## Why it costs
They fill the store until a user cleans up by hand; every later backup,
quota and directory listing carries them.

## Example
2,800 difference images, 11 GiB, needed for minutes, still there next month.

## What to do
Declare them temporary in the engine (`temp()` in Snakemake), delete them in
the last task that reads them, or put them on a scratch store: `tracehint hints`
gives them a lifetime hint.

## What it cannot see
Whether you keep them on purpose, for a restart or for inspection, and results
of which the last task makes a copy as large in another form. Suppress the
finding in the baseline then. A hint calls a file temporary only where the run
itself deleted it.
"""


MAX_STEPS = 4  # of a line, so that long chains cost no more time than broad graphs


def lines_of(users: Users, files: Ints) -> tuple[Ints, Ints]:
    """Return (files, the unread file at the end of each one's line). `files`: all of the run."""
    before, after = _list_steps(users)
    unread = files[~np.isin(files, users.read.file)]
    begin = np.concatenate([before, unread])
    reached, end = begin, np.full(len(begin), -1, np.int64)
    for _ in range(MAX_STEPS + 1):
        ended = np.isin(reached, unread)
        end[ended] = reached[ended]
        reached = lookup(before, after, reached)
    return begin[end >= 0], end[end >= 0]


def _list_steps(users: Users) -> tuple[Ints, Ints]:
    """Return (sorted files that one task reads, the file that it makes), of tasks that read one
    produced file and make one file that no other task makes."""
    made, read = users.made, users.read
    handed = np.isin(read.file, made.file)
    reads = members_of(read.task[handed], read.file[handed])
    makes = members_of(made.task, made.file)
    task = reads.groups[(reads.counts(reads.groups) == 1) & (makes.counts(reads.groups) == 1)]
    before, after = reads.only(task), makes.only(task)
    readers, makers = members_of(read.file, read.task), members_of(made.file, made.task)
    alone = (before != after) & (readers.counts(before) == 1) & (makers.counts(after) == 1)
    order = np.argsort(before[alone])
    return before[alone][order], after[alone][order]


_KEPT_BY_ENGINE = """\
SELECT file FROM writers JOIN b_driver USING (task)
                     WHERE driver IN ('make', 'gmake', 'ninja')"""

_VIEWS = ("looked_at", "line", "last_reader")  # see _add_views
# Only the last version of a path occupies storage.
_TEMPORARY_NEVER_DELETED_SQL = f"""
    WITH viewed AS (SELECT line.file FROM line JOIN files f USING (file)
                    JOIN files e ON e.file = line.last
                    WHERE e.size_bytes < $result_share * f.size_bytes),
         kept AS ({{kept}})
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(f.size_bytes) AS storage_bytes,
           max(ft.last_read_s) AS last_read_s
    FROM files f JOIN file_types ft USING (file)
    WHERE f.newest AND NOT f.deleted AND ft.n_producers > 0
      AND (f.role = 'scratch' OR (f.role = 'intermediate' AND ft.n_consumers > 0
          AND f.file NOT IN (FROM looked_at) AND f.file IN (SELECT file FROM last_reader)))
      AND f.file NOT IN (FROM viewed) AND f.file NOT IN (FROM kept)
    GROUP BY {GROUP_SQL} HAVING sum(f.size_bytes) >= $min_storage_bytes"""


@lint_rule("TV001", "info", "0.1.0", _TEMPORARY_NEVER_DELETED)
def temporary_never_deleted(context: Context) -> Iterator[Finding]:
    """Intermediate and scratch files that outlive the run, by template."""
    _add_views(context)
    kept = _KEPT_BY_ENGINE if context.bundle is not None else "SELECT NULL::BIGINT AS file LIMIT 0"
    found = context.rows(_TEMPORARY_NEVER_DELETED_SQL.format(kept=kept))
    for name in _VIEWS:
        context.con.unregister(name)
    for row in found:
        message = (
            f"{plural(row['files'], 'intermediate file')} ({size(row['bytes'])}) left behind "
            "after the last reader"
        )
        yield context.finding(
            temporary_never_deleted,
            row,
            message,
            evidence=("last_read_s",),
            fix="declare them temporary in the workflow, or delete them after their last reader",
        )


def _add_views(context: Context) -> None:
    """Register the views `last_reader`: files whose last reader is known; `looked_at`: files read
    only by final tasks that write little compared with what they read; and `line`: a file, and
    the last file of the chain of tasks that each make one file from one."""
    import pyarrow as pa

    users = context.users
    seen = _find_inspected(users, context.analysis.edges, context.settings.result_share)
    context.con.register("looked_at", pa.table({"file": seen}))
    files, _ = last_readers(users, context.analysis.edges)
    context.con.register("last_reader", pa.table({"file": files}))
    begin, end = lines_of(users, column(context.analysis.files, "file"))
    context.con.register("line", pa.table({"file": begin, "last": end}))


def _find_inspected(users: Users, edges: pa.Table, share: float) -> Ints:
    """Return the files all of whose readers feed no other task and write less than `share` of what
    they read."""
    made, read = users.made, users.read
    readers, place = rank_values(read.task)
    got = sum_groups(place, column(read.table, "unique_bytes", 0)[read.row], len(readers))
    at = lookup(readers, np.arange(len(readers)), made.task)
    own = at >= 0
    gave = sum_groups(at[own], column(made.table, "unique_bytes", 0)[made.row][own], len(readers))
    looks = ~np.isin(readers, column(edges, "producer")) & (gave < share * got)
    files, file = rank_values(read.file)
    looked = np.ones(len(files), bool)
    looked[file[~looks[place]]] = False
    return files[looked]


_OUTPUT_NEVER_READ = """\
A by-product that no task reads, of tasks whose other files are read.

## What it finds
Output files that no task read, written by tasks whose *other* output the run
did use. What the last tasks of a workflow write is its result and no finding, nor
is a file of a set (`ref.nsq`, `ref.ntf`) of which another one is read.

## Why it costs
The bytes were computed, sent and stored for nothing, and often the program
has a switch that leaves them out.

## Example
An image tool writes a weight map beside each image; the step after reads the
images only.

## What to do
Switch the by-product off, or write it to the node's scratch space and let it
go with the task.

## What it cannot see
Readers outside the run. Where a by-product is a result of its own, suppress
the finding in the baseline.
"""


@lint_rule("TV002", "info", "0.1.0", _OUTPUT_NEVER_READ)
def output_never_read(context: Context) -> Iterator[Finding]:
    """Unread outputs of task types that feed other tasks, by template."""
    sql = f"""
        WITH feeds AS (SELECT DISTINCT producer AS task FROM edges WHERE via <> 'declared'),
             unread AS (SELECT p.file, bool_and(p.task IN (FROM feeds)) AS midway
                        FROM producers p JOIN work t USING (task) GROUP BY p.file),
             beside AS MATERIALIZED (
               SELECT f.* FROM unread u JOIN files f USING (file) JOIN file_types ft USING (file)
               WHERE u.midway AND f.role IN ('output', 'intermediate') AND NOT f.deleted
                 AND coalesce(ft.n_consumers, 0) = 0),
             sets AS (SELECT DISTINCT {set_sql("path_text")} FROM files
                      WHERE path_text IS NOT NULL AND dir IN (SELECT dir FROM beside)
                        AND file IN (SELECT file FROM readers))
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(f.size_bytes) AS storage_bytes
        FROM beside f JOIN file_types ft USING (file)
        WHERE {set_sql("f.path_text")} NOT IN (FROM sets)
        GROUP BY {GROUP_SQL} HAVING sum(f.size_bytes) >= $min_storage_bytes"""
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) written beside files that "
            "are used, and read by no task"
        )
        yield context.finding(
            output_never_read,
            row,
            message,
            fix="leave the by-product out, or write it to node-local scratch space",
        )


_DUPLICATED_FILE = """\
A task makes an exact copy of a file of the run.

## What it finds
Tasks that read one file whole and wrote another of the same size, with the
kernel's own copy calls (`copy_file_range`, `sendfile`, clone) or by `cp`,
`install` or `rsync`; neither file is written to later.

## Why it costs
The bytes exist twice, and moved twice to get there.

## Example
A step "stages" its input with `cp ../proj/p_1.fits .` on the same store.

## What to do
Use a hard or symbolic link, give the program the path of the original, or
rename instead of copying when the original is not needed again.

## What it cannot see
Copies that a program makes with plain reads and writes.
"""


# In steps: few sizes are distinct, so sizes are compared only within a task.
_DUPLICATED_FILE_SQL = """
    WITH written AS (SELECT file, max(last_s) AS last_s FROM producers GROUP BY file),
         made AS MATERIALIZED (SELECT p.task, p.file, f.size_bytes, p.last_s,
                         list_has_any(p.how, ['copy_file_range', 'sendfile', 'clone', 'splice'])
                         AS by_kernel
                  FROM producers p JOIN files f USING (file) JOIN written w USING (file)
                  WHERE f.data AND NOT p.superseded AND f.version = 0
                    AND f.size_bytes >= $min_storage_bytes
                    AND p.unique_bytes = f.size_bytes
                    AND coalesce(p.last_s >= w.last_s, true)),
         pair AS MATERIALIZED (SELECT m.*, c.file AS read
                  FROM made m JOIN consumers c ON c.task = m.task AND c.file <> m.file
                  WHERE c.cover >= 0.999),
         copy AS (SELECT m.task, m.file, min(o.file) AS original, bool_or(m.by_kernel) AS by_kernel
                  FROM pair m JOIN files o ON o.file = m.read LEFT JOIN written w ON w.file = m.read
                  WHERE o.size_bytes - m.size_bytes = 0 AND o.data AND o.newest
                    AND coalesce(w.last_s <= m.last_s, true)
                  GROUP BY m.task, m.file)
    SELECT f.template, count(DISTINCT f.named) AS files, list_distinct(min(f.path, 5)) AS examples,
           t.type AS producers, coalesce(min(ft.consumers), '') AS consumers,
           sum(f.size_bytes) AS bytes, sum(f.size_bytes) AS storage_bytes,
           min(o.template) AS original, 0.95 AS confidence
    FROM copy JOIN files f USING (file) JOIN files o ON o.file = copy.original
         JOIN work t USING (task) JOIN file_types ft ON ft.file = copy.file
    WHERE by_kernel OR regexp_matches(t.command, '(^|[/ ])(cp|install|rsync) ')
    GROUP BY f.template, t.type, ft.consumers"""


@lint_rule("TV007", "info", "0.1.0", _DUPLICATED_FILE)
def duplicated_file(context: Context) -> Iterator[Finding]:
    """Exact copies by template and copying task type."""
    for row in context.rows(_DUPLICATED_FILE_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) copied from {row['original']}"
        )
        yield context.finding(
            duplicated_file,
            row,
            message,
            evidence=("original",),
            assumed=("original and copy are on the shared store",),
            fix="link to the original, or rename it, instead of copying",
        )


_TEMPORARY_KEPT_LONG = """\
Temporary files that are deleted long after their last reader.

## What it finds
Files that the run deleted itself, later than their last use, where size times
waiting time is at least 0.1 GB-hours.

## Why it costs
Scratch space is what limits how many tasks fit at the same time: space that
waits for a clean-up step at the very end is space that no task can use.

## Example
A workflow removes 400 GB of tiles in its last rule, nine hours after the last
task that read them.

## What to do
Delete in the last reader, or let the engine do it: `temp()` in Snakemake,
garbage collection in Makeflow (`-g`), `cleanup` in Nextflow.

## What it cannot see
Whether the files were kept for a restart.
"""


_ANY_UNLINK_SQL = "SELECT path FROM b_names WHERE op = 'unlink' LIMIT 1"
_TEMPORARY_KEPT_LONG_SQL = f"""
    WITH gone AS (SELECT r.rel AS path_text, max(n.t_ns - b_run.origin_ns) / 1e9 AS at_s
                  FROM b_names n JOIN b_name_paths r ON r.path = n.path, b_run
                  WHERE n.op = 'unlink' GROUP BY r.rel),
         wait AS (SELECT f.file, greatest(0, g.at_s - greatest(coalesce(ft.last_read_s, 0),
                                                   coalesce(ft.written_s, 0))) AS s
                  FROM files f JOIN gone g USING (path_text) JOIN file_types ft USING (file)
                  WHERE f.deleted AND f.data AND ft.n_producers > 0
                    AND f.newest)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, max(w.s) AS waited_s,
           sum(f.size_bytes / 1e9 * w.s / 3600) AS gb_hours
    FROM wait w JOIN files f USING (file) JOIN file_types ft USING (file)
    GROUP BY {GROUP_SQL} HAVING gb_hours >= $min_gb_hours"""


@lint_rule("TV008", "info", "0.1.0", _TEMPORARY_KEPT_LONG, needs=("bundle",))
def temporary_kept_long(context: Context) -> Iterator[Finding]:
    """Temporary files that waited for their deletion, by template."""
    gone = context.rows(_ANY_UNLINK_SQL)
    for row in context.rows(_TEMPORARY_KEPT_LONG_SQL) if gone else ():
        message = (
            f"{plural(row['files'], 'temporary file')} ({size(row['bytes'])}) deleted up to "
            f"{seconds(row['waited_s'])} after the last use"
        )
        yield context.finding(
            temporary_kept_long,
            row,
            message,
            evidence=("waited_s",),
            fix="delete them in their last reader",
        )
