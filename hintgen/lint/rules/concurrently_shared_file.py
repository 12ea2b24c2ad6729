"""Tasks read and write one file in turns.

## What it finds
Files with the primary label *concurrently shared*: two or more tasks feed
each other through them, as with a database file or a counter.

## Why it costs
Locks and cache invalidation on every turn; no placement serves both sides,
so these files never get a hint.

## Example
Workers take their next piece of work from one SQLite file on a shared store.

## What to do
Use a queue or a database server, one file per worker, or let the engine deal
out the work.

## What it cannot see
Whether the turns are rare enough not to matter: it states their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TH007", "concurrently-shared-file", "info", "0.1.0")

_SQL = f"""
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {CONFIDENCE_SQL},
           max(ft.n_producers) AS writers
    FROM primary_label p JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE p.pattern = 'concurrently_shared' AND f.data
    GROUP BY {GROUP_SQL}"""


def check(context: Context) -> Iterator[Finding]:
    """Files that tasks read and write in turns, by template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) read and written in turns by "
            "several tasks"
        )
        yield context.finding(
            RULE, row, message, fix="use a queue, a server, or one file per worker"
        )
