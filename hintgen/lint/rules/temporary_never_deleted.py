"""Intermediate files that are still there when the run ends.

## What it finds
Files that tasks of the run wrote and read (or only their own writer used) and
that nobody deleted.

## Why it costs
They fill the store until somebody cleans up by hand; every later backup,
quota and directory listing carries them.

## Example
2,800 difference images, 11 GiB, needed for minutes, still there next month.

## What to do
Declare them temporary in the engine (`temp()` in Snakemake, `.INTERMEDIATE`
in make), delete them in the last task that reads them, or put them on a
scratch store: `tracehint hints` gives them a lifetime hint.

## What it cannot see
Whether you keep them on purpose, for a restart or for inspection. Suppress
the finding in the baseline then.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, Rule
from tracehint.hintgen.text.units import plural, size

RULE = Rule("TV001", "temporary-never-deleted", "info", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """Intermediate and scratch files that outlive the run, by template."""
    # Only the last version of a path occupies storage.
    sql = f"""
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(f.size_bytes) AS storage_bytes,
               max(ft.last_read_s) AS last_read_s
        FROM files f JOIN file_types ft USING (file)
        WHERE NOT f.deleted AND ft.n_producers > 0
          AND (f.role = 'scratch' OR (f.role = 'intermediate' AND ft.n_consumers > 0))
          AND f.version = (SELECT max(version) FROM files l WHERE l.lineage = f.lineage)
        GROUP BY {GROUP_SQL} HAVING sum(f.size_bytes) >= $min_storage_bytes"""
    for row in context.rows(sql):
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
