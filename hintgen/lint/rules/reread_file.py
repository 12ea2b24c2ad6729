"""A task reads the same bytes of a file several times.

## What it finds
Files of which a task read at least 1.5 times as many bytes as it distinctly
needed, with at least 1 MiB read again.

## Why it costs
What no cache holds crosses the network again on every pass.

## Example
A program makes one pass per column over a 2 GiB table.

## What to do
Read once and keep, copy the file to node-local space first, or ask the store
for a cache of the working set (`CacheSize`).

## What it cannot see
Whether a page cache served the second pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TV004", "reread-file", "info", "0.1.0")

_SQL = f"""
    SELECT {FILES_SQL}, sum(c.unique_bytes) AS bytes,
           sum(c.bytes - c.unique_bytes)::BIGINT AS network_bytes,
           sum(c.bytes) / sum(c.unique_bytes) AS factor, count(DISTINCT c.task) AS tasks
    FROM consumers c JOIN work t USING (task) JOIN files f USING (file)
         JOIN file_types ft USING (file)
    WHERE f.data AND c.unique_bytes > 0 AND c.bytes >= $reread_factor * c.unique_bytes
    GROUP BY {GROUP_SQL} HAVING sum(c.bytes - c.unique_bytes) >= $min_storage_bytes"""


def check(context: Context) -> Iterator[Finding]:
    """Files that single tasks read more than once, by template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} read {plural(row['files'], 'file')} "
            f"({size(row['bytes'])}) {row['factor']:.1f} times over"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("factor", "tasks"),
            assumed=("no cache on the reading node",),
        )
