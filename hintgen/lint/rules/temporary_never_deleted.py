"""Intermediate files that are still there when the run ends.

## What it finds
Files that tasks of the run wrote and read (or only their own writer used),
that nobody deleted, and that do not look like results. What may be a result is
left alone: files whose readers know nothing of each other, and files that the
last tasks only look at (they write less than 5 % of what they read: checks,
indexes, statistics; also in several steps, where each makes one file of one,
as a preview is made). What make and ninja made is left alone too: they build a
file that is missing anew the next time, and all that depends on it.

## Why it costs
They fill the store until somebody cleans up by hand; every later backup,
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

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, lookup, numbered
from tracehint.analyzer.columns import column
from tracehint.hintgen.last_reader import last_readers
from tracehint.hintgen.lines import lines_of
from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.summary.tallies import summed
from tracehint.hintgen.text.units import plural, size

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.hintgen.users import Users

RULE = LintRule("TV001", "temporary-never-deleted", "info", "0.1.0")

_KEPT_BY_ENGINE = """SELECT file FROM writers JOIN b_driver USING (task)
                     WHERE driver IN ('make', 'gmake', 'ninja')"""

_VIEWS = ("looked_at", "line", "last_reader")  # see _add_views
# Only the last version of a path occupies storage.
_SQL = f"""
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


def check(context: Context) -> Iterator[Finding]:
    """Intermediate and scratch files that outlive the run, by template."""
    _add_views(context)
    kept = _KEPT_BY_ENGINE if context.bundle is not None else "SELECT NULL::BIGINT AS file LIMIT 0"
    found = context.rows(_SQL.format(kept=kept))
    for name in _VIEWS:
        context.con.unregister(name)
    for row in found:
        message = (
            f"{plural(row['files'], 'intermediate file')} ({size(row['bytes'])}) left behind "
            "after the last reader"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("last_read_s",),
            fix="declare them temporary in the workflow, or delete them after their last reader",
        )


def _add_views(context: Context) -> None:
    """The views `last_reader`: files of which it is known who reads them last; `looked_at`: files
    that only tasks at the end read that write little of what they read; and `line`: a file, and
    the last one of those that are made of it alone, one by one."""
    import pyarrow as pa

    users = context.users
    seen = _looked_at(users, context.analysis.edges, context.settings.result_share)
    context.con.register("looked_at", pa.table({"file": seen}))
    files, _ = last_readers(users, context.analysis.edges)
    context.con.register("last_reader", pa.table({"file": files}))
    begin, end = lines_of(users, column(context.analysis.files, "file"))
    context.con.register("line", pa.table({"file": begin, "last": end}))


def _looked_at(users: Users, edges: pa.Table, share: float) -> Ints:
    """Files of which every reader gives nothing on and writes less than `share` of what it
    read."""
    made, read = users.made, users.read
    readers, place = numbered(read.task)
    got = summed(place, column(read.table, "unique_bytes", 0)[read.row], len(readers))
    at = lookup(readers, np.arange(len(readers)), made.task)
    own = at >= 0
    gave = summed(at[own], column(made.table, "unique_bytes", 0)[made.row][own], len(readers))
    looks = ~np.isin(readers, column(edges, "producer")) & (gave < share * got)
    files, file = numbered(read.file)
    looked = np.ones(len(files), bool)
    looked[file[~looks[place]]] = False
    return files[looked]
