"""Temporary files that are deleted long after their last reader.

## What it finds
Files that the run deleted itself, later than their last use, where size times
waiting time is at least 0.1 GB-hours.

## Why it costs
Scratch space is what limits how many tasks fit at the same time: space that
waits for a clean-up step at the very end is space that nobody can use.

## Example
A workflow removes 400 GB of tiles in its last rule, nine hours after the last
task that read them.

## What to do
Delete in the last reader, or let the engine do it: `temp()` in Snakemake,
garbage collection in Makeflow (`-g`), `cleanup` in Nextflow.

## What it cannot see
Whether the files were kept for a restart.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, seconds, size

RULE = LintRule("TV008", "temporary-kept-long", "info", "0.1.0", needs=("bundle",))

_GONE = "SELECT path FROM b_names WHERE op = 'unlink' LIMIT 1"
_SQL = f"""
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


def check(context: Context) -> Iterator[Finding]:
    """Temporary files that waited for their deletion, by template."""
    gone = context.rows(_GONE)
    for row in context.rows(_SQL) if gone else ():
        message = (
            f"{plural(row['files'], 'temporary file')} ({size(row['bytes'])}) deleted up to "
            f"{seconds(row['waited_s'])} after the last use"
        )
        yield context.finding(
            RULE, row, message, evidence=("waited_s",), fix="delete them in their last reader"
        )
